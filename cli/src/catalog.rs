//! Schema folders and secrets, as commands that write need them.

use std::path::Path;
use std::sync::Arc;

use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::stream::config::{HMAC_KEY, parse_hmac_key};
use dynalake_schemas::Catalog;

use crate::World;
use crate::exit::{Failure, Outcome};

/// Reads a schema folder; all its problems at once are the failure.
pub(crate) fn load(folder: &Path) -> Outcome<Arc<Catalog>> {
    Catalog::load(folder).map(Arc::new).map_err(|problems| {
        Failure::usage(format!("the schemas cannot be used:\n{problems}")).hint(format!(
            "repair them until `dynalake schemas check {}` is content",
            folder.display()
        ))
    })
}

/// Secrets of transforms, from the same variables as the stream Lambda's.
pub(crate) fn secrets(world: &World) -> Outcome<Secrets> {
    let hmac_key = match (world.environment)(HMAC_KEY) {
        Some(text) if !text.is_empty() => Some(
            parse_hmac_key(&text)
                .map_err(|problem| Failure::usage(format!("`{HMAC_KEY}`: {problem}")))?,
        ),
        _ => None,
    };
    Ok(Secrets { hmac_key })
}
