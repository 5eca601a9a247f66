//! `dynalake infer SOURCE --out DIR`: schemas from a table's items.

use std::io::Write;
use std::path::Path;

use dynalake_export_job::Source;
use dynalake_export_job::infer::read::{self, ItemFiles, ReadError};
use dynalake_export_job::infer::{InferError, InferOptions, InferReport, Inference, Inferred};
use dynalake_export_job::manifest::SUMMARY_NAME;
use dynalake_pipeline::shell::quoted_path;
use dynalake_pipeline::store::{LakeUri, Store};
use dynalake_schemas::naming::{column_name, is_table_name};
use tokio::runtime::Handle;

use super::export::failure as export_failure;
use crate::args::{Format, InferArgs};
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

pub(super) async fn run(args: &InferArgs, printer: &mut Printer) -> Outcome {
    refuse_overwriting(args)?;
    let files = files(args).await?;
    let inference = Inference::new(InferOptions {
        database: database(&args.out),
        table: files.table.clone(),
        partition_key: args.partition_key.clone(),
        sort_key: args.sort_key.clone(),
    });
    let size = files.files.iter().map(|file| file.size).sum();
    printer.note(format!(
        "{} files, {}; they are read several times",
        number(u64::try_from(files.files.len()).unwrap_or(u64::MAX)),
        bytes(size)
    ));
    let mut progress = Progress::new(size);
    let found = tokio::task::block_in_place(|| {
        let runtime = Handle::current();
        read::infer(&files, inference, &runtime, &mut |pass, size| {
            progress.passed(pass, size);
        })
    });
    let found = found.map_err(failure)?;
    write(&args.out, &found)?;
    match args.format {
        Format::Json => printer.json(&found.report)?,
        Format::Table => print(args, &found.report, printer)?,
    }
    Ok(Exit::Ok)
}

/// Tenths of each pass on stderr.
struct Progress {
    total: u64,
    pass: u32,
    done: u64,
    said: u64,
}

impl Progress {
    fn new(total: u64) -> Self {
        Self {
            total,
            pass: 0,
            done: 0,
            said: 0,
        }
    }

    fn passed(&mut self, pass: u32, size: u64) {
        if pass != self.pass {
            (self.pass, self.done, self.said) = (pass, 0, 0);
        }
        self.done = self.done.saturating_add(size);
        let tenth = self.done.saturating_mul(10).checked_div(self.total);
        let tenth = tenth.unwrap_or(10);
        // Small sources are done before anybody reads it.
        if tenth > self.said && self.total > 64 << 20 {
            self.said = tenth;
            // Nothing can be done about a closed stderr.
            drop(writeln!(std::io::stderr(), "pass {pass}: {} %", tenth * 10));
        }
    }
}

fn refuse_overwriting(args: &InferArgs) -> Outcome<()> {
    let Ok(entries) = std::fs::read_dir(&args.out) else {
        return Ok(());
    };
    let is_schema = |name: &Path| {
        let extension = name.extension().unwrap_or_default();
        extension == "toml" || extension == "lock"
    };
    let holds_schemas = entries.flatten().any(|entry| is_schema(&entry.path()));
    if holds_schemas && !args.force {
        let shown = args.out.display();
        return Err(Failure::usage(format!("`{shown}` holds schema files already"))
            .hint("give another folder to compare with, or `--force` to replace files of the same names"));
    }
    Ok(())
}

/// The database's name from the folder's.
fn database(out: &Path) -> String {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let name = column_name(&name);
    if is_table_name(&name) {
        name
    } else {
        "lake".to_owned()
    }
}

async fn files(args: &InferArgs) -> Outcome<ItemFiles> {
    let (store, key) = match lake::parse(&args.source)? {
        LakeUri::S3 { bucket, prefix } => {
            let bucket = lake::existing(&format!("s3://{bucket}"), &args.s3).await?;
            (bucket, prefix)
        }
        LakeUri::Local(path) => {
            let summary = if path.is_dir() {
                path.join(SUMMARY_NAME)
            } else {
                path.clone()
            };
            if summary.ends_with(SUMMARY_NAME) && summary.is_file() {
                let source = Source::local(&summary).map_err(export_failure)?;
                return read::export(&source).await.map_err(export_failure);
            }
            if path.is_dir() {
                (Store::local(path), String::new())
            } else {
                let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let store = Store::local(folder.unwrap_or(Path::new(".")));
                (store, name.into_owned())
            }
        }
    };
    read::find(store, &key).await.map_err(export_failure)
}

fn write(out: &Path, found: &Inferred) -> Outcome<()> {
    let cannot = |error: std::io::Error| {
        Failure::usage(format!("`{}` cannot be written: {error}", out.display()))
    };
    std::fs::create_dir_all(out).map_err(cannot)?;
    for (name, text) in &found.files {
        std::fs::write(out.join(name), text).map_err(cannot)?;
    }
    Ok(())
}

fn failure(error: ReadError) -> Failure {
    match error {
        ReadError::Source(error) => export_failure(error),
        ReadError::Infer(error) => {
            let hint = match error {
                InferError::NoItems => {
                    "give an export's folder, or files of items in DynamoDB JSON"
                }
                InferError::NoKeys => "name them: `--partition-key NAME --sort-key NAME`",
                InferError::Draft(_) => {
                    "this is a fault of dynalake; report it with the text above"
                }
            };
            Failure::usage(error).hint(hint)
        }
    }
}

fn print(args: &InferArgs, report: &InferReport, printer: &mut Printer) -> Outcome<()> {
    let sort = report
        .sort_key
        .as_ref()
        .map_or_else(String::new, |name| format!(", sort key {name}"));
    let guessed = if report.keys_guessed {
        " (guessed)"
    } else {
        ""
    };
    printer.line(format!(
        "{} items, partition key {}{sort}{guessed}",
        number(report.items),
        report.partition_key
    ))?;
    let by = report.type_attribute.as_ref().map_or_else(
        || "told apart by the words that keys begin with".to_owned(),
        |name| format!("told apart by attribute {name}"),
    );
    printer.line(format!("{by}; separator `{}`", report.separator))?;
    let mut sheet = Sheet::new([
        ("entity", Align::Left),
        ("items", Align::Right),
        ("bytes", Align::Right),
        ("columns", Align::Right),
        ("partition key", Align::Left),
        ("sort key", Align::Left),
        ("confidence", Align::Left),
    ]);
    for entity in &report.entities {
        sheet.row([
            entity.name.clone(),
            number(entity.items),
            bytes(entity.bytes),
            entity.columns.to_string(),
            entity.partition_key.clone(),
            entity.sort_key.clone(),
            entity.confidence.to_owned(),
        ]);
    }
    printer.table(&sheet)?;
    if args.explain {
        for entity in &report.entities {
            printer.line(format!("{}: {}", entity.name, entity.by))?;
        }
    }
    for rejected in &report.rejected {
        printer.line(format!("turned down: {rejected}"))?;
    }
    if report.unmatched > 0 {
        printer.warning(format!(
            "{} items are of no entity; they go to `unmatched`",
            number(report.unmatched)
        ));
    }
    if report.unreadable > 0 {
        printer.warning(format!(
            "{} lines are no items with these keys",
            number(report.unreadable)
        ));
    }
    printer.note(format!(
        "schemas written; look them over, then `dynalake schemas check {}`",
        quoted_path(&args.out)
    ));
    Ok(())
}
