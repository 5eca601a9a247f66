//! `dynalake backfill`, `status`, `publish`: commands for a deployed stack.

mod backfill;
mod failed;
mod follow;
mod publish;
mod status;

pub(in crate::commands) use self::backfill::run as backfill;
pub(in crate::commands) use self::publish::run as publish;
pub(in crate::commands) use self::status::run as status;
