//! `dynalake schemas …`: schema folders.

use dynalake_schemas::{Checked, Severity};
use serde_json::json;

use crate::args::{Format, SchemasCheckArgs, SchemasCommand};
use crate::exit::{Exit, Outcome};
use crate::output::Printer;

pub(super) fn run(command: &SchemasCommand, printer: &mut Printer) -> Outcome {
    match command {
        SchemasCommand::Check(args) => check(args, printer),
    }
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
            for severity in [Severity::Error, Severity::Warning] {
                for problem in problems
                    .iter()
                    .filter(|problem| problem.severity == severity)
                {
                    printer.block(problem.to_string())?;
                }
            }
            let counts = format!("{errors} errors, {warnings} warnings");
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
