//! Schema folders and secrets, as commands that write need them.

use std::path::Path;
use std::sync::Arc;

use dynalake_pipeline::pipeline::Secrets;
use dynalake_schemas::Catalog;

use crate::World;
use crate::exit::{Failure, Outcome};

/// Environment variable with the key of `hmac_sha256` columns, as in the stream Lambda.
const HMAC_KEY: &str = "DYNALAKE_HMAC_KEY";

/// Reads a schema folder; all its problems at once are the failure.
pub(crate) fn load(folder: &Path) -> Outcome<Arc<Catalog>> {
    Catalog::load(folder).map(Arc::new).map_err(|problems| {
        Failure::usage(format!("the schemas cannot be used:\n{problems}")).hint(format!(
            "repair them until `dynalake schemas check {}` is content",
            folder.display()
        ))
    })
}

/// Secrets of transforms, from the environment.
pub(crate) fn secrets(world: &World) -> Secrets {
    Secrets {
        hmac_key: (world.environment)(HMAC_KEY).map(String::into_bytes),
    }
}
