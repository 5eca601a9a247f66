//! `dynalake export run`, `status`, `resume`, `list`: the real command, its real DynamoDB client, and
//! a DynamoDB that behaves well (MiniStack) or as a test wants it (`ScriptedDynamo`).

mod ministack;
mod scripted;
mod world;

pub use self::world::{Ran, now_ms, ran};
