//! `dynalake export resume LAKE [REQUEST]`: goes on with a request, whoever made it.

use dynalake_export_job::request::{RequestRecord, Stage, store as requests};
use dynalake_pipeline::shell::{quoted, quoted_path};

use super::{Errand, finish};
use crate::World;
use crate::args::ExportResumeArgs;
use crate::catalog;
use crate::exit::{Exit, Failure, Outcome};
use crate::lake;
use crate::output::Printer;
use crate::suggest::nearest;

pub(in crate::commands) async fn run(
    args: &ExportResumeArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    catalog::load(&args.schemas)?;
    catalog::secrets(world)?;
    let store = lake::existing(&args.lake, &args.s3).await?;
    let earlier = requests::list(&store).await?;
    let Some(mut record) = choose(&earlier, args)? else {
        printer.note("no request of this lake is unfinished");
        return Ok(Exit::Ok);
    };
    let again = record.retry_failed(world.now);
    if again > 0 {
        printer.note(format!("asking again for {again} that failed"));
        requests::save(&store, &record).await?;
    }
    let errand = Errand {
        lake: &args.lake,
        schemas: &args.schemas,
        store: &store,
        wait: &args.wait,
        conversion: &args.conversion,
        s3: &args.s3,
        earlier: &earlier,
    };
    finish(&errand, record, world, printer).await
}

fn choose(records: &[RequestRecord], args: &ExportResumeArgs) -> Outcome<Option<RequestRecord>> {
    if let Some(id) = &args.request {
        let Some(record) = records.iter().find(|record| record.id == *id) else {
            let failure = Failure::usage(format!("the lake has no request `{id}`"));
            let ids = records.iter().map(|record| record.id.as_str());
            return Err(match nearest(id, ids) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!(
                    "`dynalake export status {}` lists them",
                    quoted(&args.lake)
                )),
            });
        };
        return Ok((record.stage() != Stage::Committed).then(|| record.clone()));
    }
    let mut unfinished = records
        .iter()
        .filter(|record| record.stage() != Stage::Committed);
    let first = unfinished.next();
    let others: Vec<&str> = unfinished.map(|record| record.id.as_str()).collect();
    match (first, others.as_slice()) {
        (Some(first), [_, ..]) => Err(Failure::usage(format!(
            "several requests are unfinished: {}, {}",
            first.id,
            others.join(", ")
        ))
        .hint(format!(
            "say which: `dynalake export resume {} REQUEST --schemas {}`",
            quoted(&args.lake),
            quoted_path(&args.schemas)
        ))),
        (first, _) => Ok(first.cloned()),
    }
}
