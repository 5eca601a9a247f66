//! `dynalake publish --stack NAME`: the views once more.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::args::{Format, PublishArgs};
use crate::cloud::{Deployment, Invoked};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Align, Printer, Sheet, number};

/// What the function's step `publish` gives back.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Published {
    created: Vec<String>,
    updated: Vec<String>,
    deleted: Vec<String>,
    unchanged: u64,
}

pub(in crate::commands) async fn run(args: &PublishArgs, printer: &mut Printer) -> Outcome {
    let deployment = Deployment::find(&args.stack).await?;
    let function = deployment.output("ExportFunctionName")?;
    let event = json!({"step": "publish"});
    let invoked = deployment.functions().invoke(function, &event).await;
    let answer = match invoked.map_err(|refused| refused.needing("lambda:InvokeFunction"))? {
        Invoked::Answer(answer) => answer,
        Invoked::Failed(error) => {
            return Err(Failure::remote(format!(
                "the function `{function}` could not publish: {} ({})",
                error.message, error.kind
            ))
            .hint(format!(
                "more is in its log: `aws logs tail /dynalake/{}/export --since 10m`",
                args.stack
            )));
        }
    };
    let published: Published = serde_json::from_value(answer).map_err(|error| {
        Failure::remote(format!(
            "the answer of the function `{function}` is not understood: {error}"
        ))
        .hint("is this the `dynalake` of the stack's version?")
    })?;
    match args.format {
        Format::Json => printer.json(&published)?,
        Format::Table => print(&published, printer)?,
    }
    Ok(Exit::Ok)
}

fn print(published: &Published, printer: &mut Printer) -> Outcome<()> {
    let mut sheet = Sheet::new([("view", Align::Left), ("", Align::Left)]);
    for (names, what) in [
        (&published.created, "created"),
        (&published.updated, "updated"),
        (&published.deleted, "deleted"),
    ] {
        for name in names {
            sheet.row([name.clone(), what.to_owned()]);
        }
    }
    if !sheet.is_empty() {
        printer.table(&sheet)?;
    }
    printer.line(format!("{} unchanged", number(published.unchanged)))?;
    Ok(())
}
