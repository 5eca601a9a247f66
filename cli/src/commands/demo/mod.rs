//! `dynalake demo`: a small lake from made-up data, through the real code, with no account and no
//! network. All times in the data are fixed, so that every run builds the same lake.

mod folder;
mod story;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use dynalake_export_job::{
    ConvertOptions, ConvertReport, NoProgress, Source, commit_export, convert,
};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::record::Origin;
use dynalake_pipeline::store::Store;
use dynalake_pipeline::stream::{Context, Summary, handle};
use dynalake_schemas::Catalog;

use self::folder::DemoFolder;
use crate::World;
use crate::args::DemoArgs;
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Printer;

/// Items of the export, one per line.
const ITEMS: &str = include_str!("items.jsonl");
/// A stream event as Lambda gets it.
const EVENT: &str = include_str!("event.json");
/// 2026-11-01T00:00:00Z: the time of the export, in milliseconds.
const EXPORT_TIME: i64 = 1_793_491_200_000;
/// 2026-11-02T01:00:02Z: when the event is received, two seconds after its newest record.
const RECEIVED_AT: i64 = EXPORT_TIME + 90_002_000;
/// Who commits the export, as far as the lake is told.
const HOLDER: &str = "demo";
/// Key of `hmac_sha256` columns. Not a secret: the data is made up.
const HMAC_KEY: &str = "demo-key-not-a-secret";

pub(super) async fn run(args: &DemoArgs, world: &World, printer: &mut Printer) -> Outcome {
    let folder = DemoFolder::prepare(&args.dir, args.force)?;
    let catalog = catalog::load(&folder.schemas())?;
    let secrets = Secrets {
        hmac_key: Some(HMAC_KEY.as_bytes().to_vec()),
    };
    let store = Store::local(folder.lake());
    let export = convert_export(&folder, &store, &catalog, &secrets).await?;
    let stream = take_event(&folder, &store, &catalog, &secrets).await?;
    story::tell(&folder, &export, &stream, &store, world, printer).await?;
    Ok(Exit::Ok)
}

/// Writes an export as AWS does, converts it, and commits it as a baseline.
async fn convert_export(
    folder: &DemoFolder,
    store: &Store,
    catalog: &Arc<Catalog>,
    secrets: &Secrets,
) -> Outcome<ConvertReport> {
    let table = catalog
        .source
        .table
        .clone()
        .unwrap_or_else(|| "app-single-table".to_owned());
    let spec = ExportSpec {
        data_files: 2,
        ..ExportSpec::new(table, EXPORT_TIME)
    };
    let export = write_full_export(&folder.export(), &spec, ITEMS.lines())
        .map_err(|error| cannot_write(&folder.export(), &error))?;
    let source = Source::local(&export).map_err(super::export::failure)?;
    let options = ConvertOptions::default();
    let catalog = Arc::clone(catalog);
    let report = convert(
        &source,
        store,
        catalog,
        secrets,
        &options,
        Arc::new(NoProgress),
    )
    .await
    .map_err(super::export::failure)?;
    commit_export(store, &report.export_id, HOLDER, RECEIVED_AT)
        .await
        .map_err(super::export::failure)?;
    Ok(report)
}

/// Writes the event to a file, and takes it as the Lambda does.
async fn take_event(
    folder: &DemoFolder,
    store: &Store,
    catalog: &Arc<Catalog>,
    secrets: &Secrets,
) -> Outcome<Summary> {
    let path = folder.event();
    let parent = path.parent().unwrap_or(&path);
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&path, EVENT))
        .map_err(|error| cannot_write(&path, &error))?;
    let context = Context::new(Arc::clone(catalog), secrets.clone(), store.clone())
        .map_err(|error| Failure::usage(error.chain()))?;
    handle(EVENT.as_bytes(), RECEIVED_AT, &context, Origin::Stream)
        .await
        .map_err(|error| super::replay::failure("the demo's event", &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write `{}`: {error}", path.display()))
        .hint("give a folder that you may write to: `dynalake demo DIR`")
}
