//! `dynalake export run`: checks, then asks for exports, and goes on until they are in the lake.

use dynalake_export_job::format::DataFormat;
use dynalake_export_job::request::{
    ExportView, Refusal, RequestRecord, Stage, Stretch, TableArn, Target, Wanted, plan_full,
    plan_incremental, store as requests,
};
use dynalake_pipeline::baseline;
use dynalake_pipeline::shell::{quoted, quoted_path};
use dynalake_pipeline::store::Store;

use super::{Errand, finish, resume_command, table_arn, words};
use crate::World;
use crate::args::{DataFileFormat, ExportRunArgs, ViewArg};
use crate::catalog;
use crate::cloud::{Call, Exports};
use crate::commands::current::instant;
use crate::exit::{Failure, Outcome};
use crate::lake;
use crate::output::Printer;

pub(in crate::commands) async fn run(
    args: &ExportRunArgs,
    world: &World,
    printer: &mut Printer,
) -> Outcome {
    let table = table_arn(&args.table_arn)?;
    let target = target(args, &table)?;
    // What would fail after the export, which costs money, had better fail before it.
    let catalog = catalog::load(&args.schemas)?;
    catalog::secrets(world)?;
    if let Some(expected) = catalog.source.table.as_deref()
        && expected != table.name()
    {
        return Err(Failure::usage(format!(
            "the schemas are for table `{expected}`, the ARN is of `{}`",
            table.name()
        ))
        .hint("give that table's ARN, or the folder with this table's schemas"));
    }
    let store = lake::writable(&args.lake, &args.s3).await?;
    let earlier = requests::list(&store).await?;
    if !args.anew {
        refuse_second(&earlier, &table, args)?;
    }
    let wanted = plan(args, &table, &store, world).await?;
    let record = RequestRecord::new(target, &wanted, world.now);
    let record = requests::create(&store, record).await?;
    for wanted in &wanted {
        printer.note(format!("asking for a {}", words(wanted)));
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

/// A request that was interrupted is gone on with, not made again: exports cost money.
fn refuse_second(earlier: &[RequestRecord], table: &TableArn, args: &ExportRunArgs) -> Outcome<()> {
    let unfinished = |record: &&RequestRecord| {
        record.target.table_arn == table.as_str()
            && !matches!(
                record.stage(),
                Stage::Failed | Stage::Converted | Stage::Committed
            )
    };
    match earlier.iter().rev().find(unfinished) {
        None => Ok(()),
        Some(record) => Err(Failure::usage(format!(
            "request {} for this table is not finished",
            record.id
        ))
        .hint(format!(
            "go on with it: `{}`",
            resume_command(&args.lake, &record.id, &args.schemas)
        ))
        .hint("or ask for another export all the same, with `--anew`")),
    }
}

/// What to ask for, as far as the table's point-in-time recovery allows it.
async fn plan(
    args: &ExportRunArgs,
    table: &TableArn,
    store: &Store,
    world: &World,
) -> Outcome<Vec<Wanted>> {
    let exports = Exports::open(table).await?;
    let recovery = exports.recovery(table).await.map_err(|refused| {
        refused.failure(Call {
            table_arn: table.as_str(),
            bucket: &args.bucket,
        })
    })?;
    let refused = |refusal: Refusal| {
        let remedy = refusal.remedy(table, &full_command(args));
        Failure::usage(refusal).hint(remedy)
    };
    if !args.incremental {
        let asked = args.export_time.as_deref().map(instant).transpose()?;
        return plan_full(recovery, asked, world.now).map_err(refused);
    }
    let current = baseline::current(store, None).await?;
    if let Some(other) = &current
        && other.table_arn != table.as_str()
    {
        return Err(Failure::usage(format!(
            "the lake's baseline {} is of {}, not of {table}",
            other.label, other.table_arn
        ))
        .hint("one lake holds one table: give this table's lake"));
    }
    let view = match args.view {
        ViewArg::New => ExportView::NewImage,
        ViewArg::NewAndOld => ExportView::NewAndOldImages,
    };
    let given = |text: &Option<String>| text.as_deref().map(instant).transpose();
    let stretch = Stretch {
        from_ms: given(&args.from)?.or(current.map(|record| record.at_ms)),
        to_ms: given(&args.to)?,
    };
    plan_incremental(recovery, stretch, view, world.now).map_err(refused)
}

fn target(args: &ExportRunArgs, table: &TableArn) -> Outcome<Target> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if args.bucket.is_empty() || !args.bucket.bytes().all(plain) {
        return Err(
            Failure::usage(format!("`{}` is not the name of a bucket", args.bucket))
                .hint("give `--bucket NAME`, and what keys begin with by `--prefix`"),
        );
    }
    let trimmed = |text: &Option<String>| {
        let text = text.as_deref().map(|text| text.trim_matches('/'));
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    };
    Ok(Target {
        table_arn: table.as_str().to_owned(),
        bucket: args.bucket.clone(),
        prefix: trimmed(&args.prefix),
        bucket_owner: args.bucket_owner.clone(),
        kms_key: args.kms_key.clone(),
        format: match args.format {
            DataFileFormat::Json => DataFormat::Json,
            DataFileFormat::Ion => DataFormat::Ion,
        },
    })
}

/// The command that takes a full export to the same place.
fn full_command(args: &ExportRunArgs) -> String {
    let optional = [
        ("--prefix", &args.prefix),
        ("--kms-key", &args.kms_key),
        ("--bucket-owner", &args.bucket_owner),
    ];
    let optional: String = optional
        .iter()
        .filter_map(|(name, value)| Some(format!(" {name} {}", quoted(value.as_ref()?))))
        .collect();
    format!(
        "dynalake export run --table-arn {} --bucket {}{optional} --lake {} --schemas {}",
        args.table_arn,
        args.bucket,
        quoted(&args.lake),
        quoted_path(&args.schemas)
    )
}
