//! `dynalake status --stack NAME`: how a deployed stack does.

mod aws;
mod check;
mod lake;

use serde::Serialize;

use self::check::{Check, Verdict};
use crate::World;
use crate::args::{Format, StatusArgs};
use crate::cloud::Deployment;
use crate::exit::{Exit, Outcome};
use crate::output::{Align, Printer, Sheet};

/// Days that are looked back.
const DAYS: i32 = 7;

#[derive(Debug, Serialize)]
struct Status {
    stack: String,
    lake: String,
    table: String,
    /// Something needs attention.
    attention: bool,
    checks: Vec<Check>,
}

pub(in crate::commands) async fn run(
    args: &StatusArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let deployment = Deployment::find(&args.stack).await?;
    let mut checks = vec![aws::stack(&deployment)];
    checks.extend(aws::checks(&deployment, world.now).await?);
    checks.extend(lake::checks(&deployment, &args.s3, world.now).await?);
    checks.push(aws::alarms(&deployment).await);
    let status = Status {
        stack: args.stack.clone(),
        lake: deployment.lake()?.to_owned(),
        table: deployment.output("TableName")?.to_owned(),
        attention: checks.iter().any(Check::needs_attention),
        checks,
    };
    match args.format {
        Format::Json => printer.json(&status)?,
        Format::Table => print(&status, printer)?,
    }
    Ok(if status.attention {
        Exit::Findings
    } else {
        Exit::Ok
    })
}

fn print(status: &Status, printer: &mut Printer) -> Outcome<()> {
    let mut sheet = Sheet::new([
        (status.stack.as_str(), Align::Left),
        ("", Align::Left),
        ("", Align::Left),
    ]);
    for check in &status.checks {
        let word = match check.verdict {
            Verdict::Ok => "ok",
            Verdict::Attention => "LOOK",
            Verdict::Unknown => "unknown",
        };
        sheet.row([check.name.to_owned(), word.to_owned(), check.says.clone()]);
    }
    printer.table(&sheet)?;
    for check in &status.checks {
        if let Some(next) = &check.next {
            printer.note(format!("{}: {next}", check.name));
        }
    }
    Ok(())
}
