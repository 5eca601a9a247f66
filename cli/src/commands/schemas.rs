//! `dynalake schemas …`: schema folders.

use std::path::Path;

use dynalake_pipeline::shell::quoted_path;

use dynalake_schemas::show::{ShownEntity, describe};
use dynalake_schemas::{Checked, Problems, Severity, ddl, lock};
use serde_json::json;

use crate::args::{
    Format, SchemasCheckArgs, SchemasCommand, SchemasDdlArgs, SchemasLockArgs, SchemasShowArgs,
};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Align, Printer, Sheet};

pub(super) fn run(command: &SchemasCommand, printer: &mut Printer) -> Outcome {
    match command {
        SchemasCommand::Check(args) => check(args, printer),
        SchemasCommand::Lock(args) => write_lock(args, printer),
        SchemasCommand::Show(args) => show(args, printer),
        SchemasCommand::Ddl(args) => print_ddl(args, printer),
    }
}

/// `1 error`, `2 errors`.
fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn check(args: &SchemasCheckArgs, printer: &mut Printer) -> Outcome {
    let Checked { catalog, problems } = dynalake_schemas::check(&args.dir);
    let (errors, warnings) = (problems.error_count(), problems.warning_count());
    match args.format {
        Format::Json => printer.json(&json!({
            "folder": args.dir,
            "errors": errors,
            "warnings": warnings,
            "problems": problems,
        }))?,
        Format::Table => {
            print_problems(&problems, printer)?;
            let counts = format!(
                "{}, {}",
                counted(errors, "error"),
                counted(warnings, "warning")
            );
            match &catalog {
                Some(catalog) => {
                    // The built-in `unmatched` is not the owner's.
                    let entities = catalog.entities.len().saturating_sub(1);
                    let database = &catalog.database;
                    printer.line(format!("{database}: {entities} entities, {counts}"))?;
                }
                None => printer.line(counts)?,
            }
        }
    }
    Ok(if problems.has_errors() {
        Exit::Findings
    } else {
        Exit::Ok
    })
}

/// Errors first, then warnings.
fn print_problems(problems: &Problems, printer: &mut Printer) -> Outcome<()> {
    for severity in [Severity::Error, Severity::Warning] {
        for problem in problems
            .iter()
            .filter(|problem| problem.severity == severity)
        {
            printer.block(problem.to_string())?;
        }
    }
    Ok(())
}

fn write_lock(args: &SchemasLockArgs, printer: &mut Printer) -> Outcome {
    match lock(&args.dir) {
        Ok(locked) => {
            print_problems(&locked.warnings, printer)?;
            let what = if locked.changed {
                "written"
            } else {
                "is up to date"
            };
            printer.line(format!("{} {what}", locked.path.display()))?;
            if locked.changed {
                printer.note("commit it together with the schemas");
            }
            Ok(Exit::Ok)
        }
        Err(problems) => {
            print_problems(&problems, printer)?;
            Err(Failure::findings(
                "the lock was not written: the schemas have errors",
            ))
        }
    }
}

fn show(args: &SchemasShowArgs, printer: &mut Printer) -> Outcome {
    let catalog = describe(&*catalog::load(&args.dir)?);
    if args.format == Format::Json {
        printer.json(&catalog)?;
        return Ok(Exit::Ok);
    }
    let key = |name: &str, ty: &str| {
        if ty == "S" {
            name.to_owned()
        } else {
            format!("{name} ({ty})")
        }
    };
    let mut keys = key(&catalog.partition_key.name, catalog.partition_key.key_type);
    if let Some(sort_key) = &catalog.sort_key {
        keys = format!("{keys}, {}", key(&sort_key.name, sort_key.key_type));
    }
    let source = catalog.source_table.as_deref().unwrap_or("any table");
    printer.line(format!("{}: from {source}, keys {keys}", catalog.database))?;
    for entity in &catalog.entities {
        printer.line("")?;
        show_entity(entity, printer)?;
    }
    Ok(Exit::Ok)
}

fn show_entity(entity: &ShownEntity, printer: &mut Printer) -> Outcome<()> {
    let priority = match entity.priority {
        0 => String::new(),
        priority => format!(", priority {priority}"),
    };
    printer.line(format!(
        "{} → table {}, version {}{priority}",
        entity.entity, entity.table, entity.version
    ))?;
    if let Some(description) = &entity.description {
        printer.line(format!("  {description}"))?;
    }
    printer.line(format!("  {}", entity.matching))?;
    if entity.columns.is_empty() {
        return Ok(());
    }
    let mut sheet = Sheet::new([
        ("column", Align::Left),
        ("type", Align::Left),
        ("Athena", Align::Left),
        ("Arrow", Align::Left),
        ("from", Align::Left),
        ("notes", Align::Left),
        ("field id", Align::Right),
    ]);
    for column in &entity.columns {
        let mut notes = Vec::new();
        notes.extend(column.format.clone());
        notes.extend(column.transform.map(str::to_owned));
        if column.on_mismatch != "rest" {
            notes.push(format!("on mismatch: {}", column.on_mismatch));
        }
        if !column.lossless {
            notes.push("not lossless".to_owned());
        }
        sheet.row([
            column.name.clone(),
            column.declared_type.clone(),
            column.athena_type.clone().unwrap_or_default(),
            column.arrow_type.clone().unwrap_or_default(),
            format!("{} {}", column.from, column.source),
            notes.join("; "),
            column
                .field_id
                .map_or_else(String::new, |id| id.to_string()),
        ]);
    }
    printer.table(&sheet)?;
    Ok(())
}

fn print_ddl(args: &SchemasDdlArgs, printer: &mut Printer) -> Outcome {
    let catalog = catalog::load(&args.dir)?;
    check_location(&args.location, &args.dir)?;
    printer.raw(&ddl::create_tables(&catalog, &args.location))?;
    Ok(Exit::Ok)
}

/// Athena reads S3 only, and a quote would end the literal.
fn check_location(location: &str, dir: &Path) -> Outcome<()> {
    let is_s3 = location
        .strip_prefix("s3://")
        .is_some_and(|rest| !rest.trim_matches('/').is_empty());
    if is_s3
        && !location.contains(['\'', '"', '`', '\\'])
        && !location.chars().any(char::is_control)
    {
        return Ok(());
    }
    Err(
        Failure::usage(format!("`--location {location}` is not an S3 location")).hint(format!(
            "for example `dynalake schemas ddl {} --location s3://bucket/lake`",
            quoted_path(dir)
        )),
    )
}
