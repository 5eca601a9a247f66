//! `dynalake export run`, `status`, `resume`, `list`: from asking DynamoDB for an export to a
//! committed baseline.

mod drive;
mod list;
mod resume;
mod run;
mod status;
mod watch;

pub(in crate::commands) use self::list::run as list;
pub(in crate::commands) use self::resume::run as resume;
pub(in crate::commands) use self::run::run;
pub(in crate::commands) use self::status::run as status;

use std::path::Path;

use dynalake_export_job::request::{
    RequestError, RequestRecord, Step, TableArn, Wanted, store as requests,
};
use dynalake_pipeline::shell::{quoted, quoted_path};
use dynalake_pipeline::store::Store;

use self::drive::{Ended, drive};
use crate::World;
use crate::args::{ConversionArgs, ConvertArgs, S3Args, WaitArgs};
use crate::cell;
use crate::exit::{Exit, Failure, Outcome};
use crate::output::Printer;
use crate::waiting::Unfinished;

/// What goes on with a request needs.
struct Errand<'a> {
    lake: &'a str,
    schemas: &'a Path,
    store: &'a Store,
    wait: &'a WaitArgs,
    conversion: &'a ConversionArgs,
    s3: &'a S3Args,
    /// Requests of the lake, for the estimate.
    earlier: &'a [RequestRecord],
}

/// Goes on with a request until its rows are in the lake. Interrupted, it says how to go on.
async fn finish(
    errand: &Errand<'_>,
    record: RequestRecord,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let resume = resume_command(errand.lake, &record.id, errand.schemas);
    let unfinished = Unfinished::new("what DynamoDB does goes on without us. To go on", &resume);
    let outcome = uninterrupted(errand, record, &resume, world, printer).await;
    unfinished.over();
    outcome
}

async fn uninterrupted(
    errand: &Errand<'_>,
    mut record: RequestRecord,
    resume: &str,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    if record.next(world.now) != Step::Done {
        let ended = drive(errand, &mut record, resume, world, printer.is_watched()).await?;
        if ended == Ended::NotWaited {
            printer.note(format!(
                "request {} is made; when the export is done, convert it: `{resume}`",
                record.id
            ));
            return Ok(Exit::Ok);
        }
    }
    let told = |failure: Failure| {
        failure.hint(format!(
            "the export is whole in its bucket; to go on: `{resume}`"
        ))
    };
    let exit = Box::pin(convert(errand, &record, world, printer))
        .await
        .map_err(told)?;
    record.converted = true;
    record.committed = !errand.conversion.no_commit;
    requests::save(errand.store, &record).await?;
    Ok(exit)
}

/// Converts the exports of a request as `dynalake export convert` does.
async fn convert(
    errand: &Errand<'_>,
    record: &RequestRecord,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let args = ConvertArgs {
        sources: record.sources(),
        lake: errand.lake.to_owned(),
        schemas: errand.schemas.to_owned(),
        workers: errand.conversion.workers,
        memory_mb: errand.conversion.memory_mb,
        target_mb: None,
        spool: errand.conversion.spool.clone(),
        replace: false,
        no_commit: errand.conversion.no_commit,
        format: errand.conversion.report,
        s3: errand.s3.clone(),
    };
    super::run(&args, world, printer).await
}

fn resume_command(lake: &str, id: &str, schemas: &Path) -> String {
    format!(
        "dynalake export resume {} {id} --schemas {}",
        quoted(lake),
        quoted_path(schemas)
    )
}

fn table_arn(text: &str) -> Outcome<TableArn> {
    TableArn::parse(text).map_err(Failure::usage)
}

/// An export in a few words.
fn words(wanted: &Wanted) -> String {
    match wanted {
        Wanted::Full { at_ms } => format!("full export of {}", cell::instant(*at_ms)),
        Wanted::Incremental { window, .. } => format!(
            "changes from {} to {}",
            cell::instant(window.from_ms),
            cell::instant(window.to_ms)
        ),
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Store(error) => Self::from(error),
            other => {
                Self::findings(other).hint("use the dynalake that wrote it, or remove the object")
            }
        }
    }
}
