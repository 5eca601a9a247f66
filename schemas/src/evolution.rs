//! What may change between the lock and the schemas.

use crate::load::LoadedEntity;
use crate::lock::Lock;
use crate::problem::{Place, Problems};

pub(crate) fn check(_: &[LoadedEntity], _: Option<&Lock>, _: &Place, _: &mut Problems) {}
