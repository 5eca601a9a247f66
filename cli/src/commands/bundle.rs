//! `dynalake bundle`: the zips of a deployment.

use serde_json::json;

use crate::args::{BundleArgs, Format};
use crate::bundle::{Bundle, FUNCTIONS, function, schemas, write};
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{Align, Printer, Sheet, number};

pub(super) fn run(args: &BundleArgs, printer: &mut Printer) -> Outcome {
    // A function with a bad schema would not start.
    catalog::load(&args.dir)?;
    let mut bundles = vec![schemas(&args.dir)?];
    for name in FUNCTIONS {
        bundles.push(function(&args.artifacts, name)?);
    }
    one_architecture(&bundles)?;
    write(&bundles, &args.out)?;
    match args.format {
        Format::Json => printer.json(&json!({"folder": args.out, "bundles": bundles}))?,
        Format::Table => {
            let mut sheet = Sheet::new([("zip", Align::Left), ("bytes", Align::Right)]);
            for bundle in &bundles {
                let path = args.out.join(&bundle.file);
                sheet.row([path.display().to_string(), number(bundle.bytes)]);
            }
            printer.table(&sheet)?;
        }
    }
    Ok(Exit::Ok)
}

/// A stack has one architecture.
fn one_architecture(bundles: &[Bundle]) -> Outcome<()> {
    let mut found: Vec<&str> = bundles
        .iter()
        .filter_map(|bundle| bundle.architecture)
        .collect();
    found.dedup();
    if found.len() > 1 {
        return Err(Failure::usage(format!(
            "the binaries are for different processors: {}",
            found.join(", ")
        ))
        .hint("build all of them for one"));
    }
    Ok(())
}
