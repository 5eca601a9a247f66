//! `dynalake duckdb LAKE`: writes `lake.sql`, with which DuckDB opens the lake.

use std::path::Path;

use dynalake_pipeline::publish;
use dynalake_pipeline::store::LakeUri;
use dynalake_schemas::views::{DuckDbLake, S3Access, duckdb};

use crate::World;
use crate::args::{DuckdbArgs, S3Args};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::Printer;

pub(super) async fn run(args: &DuckdbArgs, world: &World, printer: &mut Printer) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let catalog = catalog::of_lake(args.schemas.as_deref(), &store, printer).await?;
    let location = location(&args.lake, &args.s3, world)?;
    let (baseline, path) = if let Some(output) = &args.output {
        let baseline = publish::current_baseline(&store).await?;
        let text = duckdb::script(&catalog, baseline.as_ref(), &location);
        std::fs::write(output, text).map_err(|error| {
            Failure::usage(format!("cannot write `{}`: {error}", output.display()))
        })?;
        (baseline, output.display().to_string())
    } else {
        let baseline = publish::lake_sql(&store, &catalog, &location).await?;
        (baseline, store.address(publish::LAKE_SQL))
    };
    let reads = match baseline {
        Some(baseline) => format!("baseline {}", baseline.label),
        None => "no baseline yet: tables hold what changes tell".to_owned(),
    };
    printer.line(format!("{path} written ({reads})"))?;
    if path.starts_with("s3://") {
        printer.note("DuckDB takes scripts from local files: copy it, or use `--output FILE`");
    } else {
        printer.note(format!("open the lake: `duckdb -init {path}`"));
    }
    Ok(Exit::Ok)
}

/// Where DuckDB finds the lake, from any working directory.
pub(super) fn location(lake: &str, s3: &S3Args, world: &World) -> Outcome<DuckDbLake> {
    match lake::parse(lake)? {
        LakeUri::Local(path) => Ok(DuckDbLake {
            root: absolute(&path)?,
            s3: None,
        }),
        uri @ LakeUri::S3 { .. } => {
            let set = |name: &str| (world.environment)(name).filter(|value| !value.is_empty());
            Ok(DuckDbLake {
                root: uri.to_string(),
                s3: Some(S3Access {
                    region: set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")),
                    endpoint: s3.endpoint.clone().or_else(|| set("AWS_ENDPOINT_URL")),
                    path_style: s3.path_style,
                }),
            })
        }
    }
}

fn absolute(path: &Path) -> Outcome<String> {
    let cannot = |problem: &dyn std::fmt::Display| {
        Failure::usage(format!(
            "DuckDB cannot be told of `{}`: {problem}",
            path.display()
        ))
    };
    let absolute = std::path::absolute(path).map_err(|error| cannot(&error))?;
    // A lake that is there is called by its own name, whatever links lead to it.
    let absolute = absolute.canonicalize().unwrap_or(absolute);
    match absolute.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(cannot(&"its name is not UTF-8")),
    }
}
