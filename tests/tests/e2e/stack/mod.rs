//! `dynalake backfill`, `status`, `publish` and `replay --failed` on a stack in MiniStack: its
//! CloudFormation, Step Functions, Lambda, CloudWatch and S3.
//!
//! The stack has the outputs of `infra/base.yaml` and stand-ins for what they name; the workflow waits
//! until the table has an item `gate`/`open`.

mod backfill;
mod replay;
mod status;
mod world;
