//! What the demo says at its end: what arrived, what did not and why, a few rows, what to try next.

use std::path::Path;

use dynalake_export_job::ConvertReport;
use dynalake_pipeline::quarantine::{QuarantineEntry, RecordOrigin};
use dynalake_pipeline::shell::quoted;
use dynalake_pipeline::store::Store;
use dynalake_pipeline::stream::Summary;

use super::HMAC_KEY;
use super::folder::DemoFolder;
use crate::World;
use crate::args::{RowFormat, S3Args, ShowArgs};
use crate::commands::{quarantine, show};
use crate::exit::Outcome;
use crate::output::{Align, Printer, Sheet, number};

pub(super) async fn tell(
    folder: &DemoFolder,
    export: &ConvertReport,
    stream: &Summary,
    store: &Store,
    world: &World,
    printer: &mut Printer,
) -> Outcome<()> {
    let lake = folder.lake().display().to_string();
    printer.line(format!(
        "A shop in one DynamoDB table: {} items of an export and {} changes of its stream are now \
         typed tables in {lake}",
        export.items, stream.report.records
    ))?;
    printer.line("")?;
    printer.table(&arrived(export, stream))?;

    printer.line("")?;
    printer.line("In quarantine, whole and with the reason:")?;
    for entry in quarantine::all_entries(store).await? {
        quarantined(&entry, printer)?;
    }

    printer.line("")?;
    printer.line("Orders as the export saw them (`_rest` and other row columns left out):")?;
    let columns = [
        "order_id",
        "order_date",
        "status",
        "total",
        "placed_at",
        "coupon_codes",
        "note",
    ];
    show::run(&rows(&lake, "orders", &columns, false), printer).await?;
    printer.line("")?;
    printer.line("What happened to orders since:")?;
    let columns = ["_at", "_op", "order_id", "status", "total", "shipped_at"];
    show::run(&rows(&lake, "orders", &columns, true), printer).await?;
    printer.line("")?;
    printer.line("Deletes, by whom:")?;
    for table in ["idempotency_keys", "products"] {
        let mut args = rows(&lake, table, &["_at", "_pk", "_op", "_reason"], true);
        args.conditions.push("_op=REMOVE".to_owned());
        show::run(&args, printer).await?;
    }
    printer.line("")?;
    next(folder, export, world, printer)
}

fn arrived(export: &ConvertReport, stream: &Summary) -> Sheet {
    let mut tables: Vec<&String> = export
        .tables
        .keys()
        .chain(stream.report.tables.keys())
        .collect();
    tables.sort_unstable();
    tables.dedup();
    let mut sheet = Sheet::new([
        ("table", Align::Left),
        ("rows of the export", Align::Right),
        ("changes of the stream", Align::Right),
    ]);
    let count = |rows: Option<u64>| rows.map_or_else(String::new, number);
    for table in tables {
        sheet.row([
            table.clone(),
            count(export.tables.get(table).map(|outcome| outcome.counts.rows)),
            count(stream.report.tables.get(table).map(|counts| counts.rows)),
        ]);
    }
    let quarantined = [export.quarantined, stream.report.quarantined];
    let [of_export, of_stream] = quarantined.map(number);
    sheet.row(["(quarantine)".to_owned(), of_export, of_stream]);
    sheet
}

fn quarantined(entry: &QuarantineEntry, printer: &mut Printer) -> Outcome<()> {
    let from = match entry.origin {
        RecordOrigin::Stream { .. } => "stream",
        RecordOrigin::Export { .. } => "export",
    };
    let path = entry
        .path
        .as_deref()
        .map(|path| format!(" at `{path}`"))
        .unwrap_or_default();
    let entity = entry
        .entity
        .as_deref()
        .map(|entity| format!(" of a {entity}"))
        .unwrap_or_default();
    printer.line(format!(
        "  {from}, {}{path}{entity}: {}",
        entry.reason.as_str(),
        entry.message
    ))?;
    Ok(())
}

fn rows(lake: &str, table: &str, columns: &[&str], changes: bool) -> ShowArgs {
    ShowArgs {
        lake: lake.to_owned(),
        table: table.to_owned(),
        limit: 20,
        conditions: Vec::new(),
        changes,
        export: None,
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        format: RowFormat::Table,
        s3: S3Args::default(),
    }
}

/// Commands that work as they stand, from the folder in which the demo was started.
fn next(
    folder: &DemoFolder,
    export: &ConvertReport,
    world: &World,
    printer: &mut Printer,
) -> Outcome<()> {
    let program = quoted(&world.program);
    let path = |path: &Path| quoted(&path.display().to_string());
    let (lake, schemas, event) = (
        path(&folder.lake()),
        path(&folder.schemas()),
        path(&folder.event()),
    );
    let payment = path(&folder.schemas().join("payment.toml"));
    let export = path(&folder.export().join("AWSDynamoDB").join(&export.export_id));
    let key = format!("DYNALAKE_HMAC_KEY={HMAC_KEY}");
    printer.line("Try next:")?;
    for (what, commands) in [
        (
            "what is in the lake",
            vec![format!("{program} tables {lake}")],
        ),
        (
            "a table as it is now, or was at an instant",
            vec![
                format!("{program} current {lake} orders"),
                format!("{program} current {lake} orders --as-of 2026-11-01T09:00:00Z"),
            ],
        ),
        (
            "rows as they were written, with exact values",
            vec![
                format!("{program} show {lake} products --format json"),
                format!(
                    "{program} show {lake} orders --where status=paid --columns order_id,total,lines"
                ),
                format!("{program} show {lake} unmatched --changes"),
            ],
        ),
        (
            "SQL: views for Athena, and lake.sql for DuckDB (`duckdb -init lake.sql`)",
            vec![
                format!("{program} sql {lake} --engine athena"),
                format!("{program} duckdb {lake}"),
            ],
        ),
        (
            "the schemas",
            vec![
                format!("{program} schemas show {schemas}"),
                format!("{program} schemas ddl {schemas} --location s3://bucket/lake"),
            ],
        ),
        (
            "why records are in quarantine",
            vec![format!("{program} quarantine show {lake} --payload")],
        ),
        (
            "the same event or export again: the same objects",
            vec![
                format!("{key} {program} replay {event} --lake {lake} --schemas {schemas}"),
                format!(
                    "{key} {program} export convert {export} --lake {lake} --schemas {schemas}"
                ),
            ],
        ),
        (
            "repair a schema (a payment was larger than its column), and take the record in",
            vec![
                format!(
                    "sed -i.bak -e 's/^version = 1/version = 2/' \
                     -e 's/^amount = .*/amount = \"decimal(14,2)\"/' {payment}"
                ),
                format!("{program} schemas check {schemas}"),
                format!("{key} {program} quarantine replay {lake} --schemas {schemas}"),
                format!("{program} show {lake} payments"),
            ],
        ),
    ] {
        printer.line(format!("  # {what}"))?;
        for command in commands {
            printer.line(format!("  {command}"))?;
        }
    }
    Ok(())
}
