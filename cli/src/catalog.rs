//! Schema folders and secrets, as commands that write need them.

use std::path::Path;
use std::sync::Arc;

use dynalake_pipeline::kept_schemas::{self, KeptSchemas, KeptSchemasError};
use dynalake_pipeline::lambda::config::{HMAC_KEY, parse_hmac_key};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::shell::quoted_path;
use dynalake_pipeline::store::Store;
use dynalake_schemas::Catalog;

use crate::World;
use crate::exit::{Failure, Outcome};
use crate::output::Printer;

/// Reads a schema folder; all its problems at once are the failure.
pub(crate) fn load(folder: &Path) -> Outcome<Arc<Catalog>> {
    Catalog::load(folder).map(Arc::new).map_err(|problems| {
        Failure::usage(format!("the schemas cannot be used:\n{problems}")).hint(format!(
            "repair them until `dynalake schemas check {}` is content",
            quoted_path(folder)
        ))
    })
}

/// The schemas to read a lake with: those of the folder, else those that the lake's current baseline
/// was made with.
pub(crate) async fn of_lake(
    folder: Option<&Path>,
    store: &Store,
    printer: &mut Printer,
) -> Outcome<Arc<Catalog>> {
    if let Some(folder) = folder {
        return load(folder);
    }
    let kept = kept_schemas::current(store).await.map_err(not_kept)?;
    Ok(said(kept, printer))
}

/// The schemas to read an export with, be it committed or not: those of the folder, else those that it
/// was converted with.
pub(crate) async fn of_export(
    folder: Option<&Path>,
    store: &Store,
    label: &str,
    printer: &mut Printer,
) -> Outcome<Arc<Catalog>> {
    if let Some(folder) = folder {
        return load(folder);
    }
    let kept = kept_schemas::of_export(store, label).await;
    Ok(said(kept.map_err(not_kept)?, printer))
}

fn said(kept: KeptSchemas, printer: &mut Printer) -> Arc<Catalog> {
    printer.note(format!(
        "schemas: those of export {} (`--schemas DIR` gives others)",
        kept.label
    ));
    Arc::new(kept.catalog)
}

/// The same where there need not be any: `None` where the lake keeps none.
pub(crate) async fn of_lake_if_kept(store: &Store) -> Outcome<Option<Catalog>> {
    match kept_schemas::current(store).await {
        Ok(kept) => Ok(Some(kept.catalog)),
        Err(KeptSchemasError::NoBaseline | KeptSchemasError::NotKept { .. }) => Ok(None),
        Err(error) => Err(not_kept(error)),
    }
}

fn not_kept(error: KeptSchemasError) -> Failure {
    match error {
        KeptSchemasError::Baseline(error) => Failure::from(error),
        error => Failure::usage(error).hint("give the schema folder: `--schemas DIR`"),
    }
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
