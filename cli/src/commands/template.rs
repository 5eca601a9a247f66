//! `dynalake template`: the CloudFormation template of a deployment.

use std::fs;

use crate::args::TemplateArgs;
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Printer;
use crate::template::render;

pub(super) fn run(args: &TemplateArgs, printer: &mut Printer) -> Outcome {
    let catalog = catalog::load(&args.dir)?;
    let text = render(&catalog)?;
    match &args.out {
        None => printer.raw(&text)?,
        Some(file) => {
            fs::write(file, &text).map_err(|error| {
                Failure::usage(format!("{} cannot be written: {error}", file.display()))
            })?;
            printer.line(format!("{}, {} bytes", file.display(), text.len()))?;
        }
    }
    Ok(Exit::Ok)
}
