//! The worker function: its steps, one by one, in the workflow's definition, and its views in Glue.

mod cloud;
mod definition;
mod failures;
mod glue;
mod incremental;
mod steps;
mod workflow;
mod world;
