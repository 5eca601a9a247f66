//! `dynalake baselines list LAKE`.

use dynalake_pipeline::baseline::{self, BaselineKind, BaselineRecord, LockRecord};
use dynalake_pipeline::shell::quoted;
use serde::Serialize;

use crate::args::{BaselinesListArgs, Format};
use crate::cell;
use crate::exit::{Exit, Outcome};
use crate::lake;
use crate::output::{Align, Printer, Sheet, bytes, number};

#[derive(Debug, Serialize)]
struct Listing {
    lake: String,
    /// Label of the baseline that readers take.
    current: Option<String>,
    /// Oldest first.
    baselines: Vec<BaselineRecord>,
    lock: Option<LockRecord>,
}

pub(super) async fn run(args: &BaselinesListArgs, printer: &mut Printer) -> Outcome {
    let store = lake::existing(&args.lake, &args.s3).await?;
    let baselines = baseline::list(&store).await?;
    let listing = Listing {
        lake: args.lake.clone(),
        current: baselines.last().map(|newest| newest.label.clone()),
        baselines,
        lock: baseline::lock_holder(&store).await?,
    };
    match args.format {
        Format::Json => printer.json(&listing)?,
        Format::Table => print(&listing, printer)?,
    }
    Ok(Exit::Ok)
}

fn print(listing: &Listing, printer: &mut Printer) -> Outcome<()> {
    if listing.baselines.is_empty() {
        printer.note(format!(
            "`{}` has no baseline; `dynalake export convert` commits one",
            quoted(&listing.lake)
        ));
    } else {
        let mut sheet = Sheet::new([
            ("baseline", Align::Left),
            ("", Align::Left),
            ("kind", Align::Left),
            ("export", Align::Left),
            ("committed", Align::Left),
            ("tables", Align::Right),
            ("rows", Align::Right),
            ("objects", Align::Right),
            ("bytes", Align::Right),
        ]);
        for record in listing.baselines.iter().rev() {
            let is_current = listing.current.as_ref() == Some(&record.label);
            let counts = || record.tables.values();
            sheet.row([
                record.label.clone(),
                if is_current { "current" } else { "" }.to_owned(),
                kind(record.kind).to_owned(),
                record.export_id.clone(),
                cell::instant(record.committed_at_ms),
                counts().filter(|table| table.rows > 0).count().to_string(),
                number(counts().map(|table| table.rows).sum()),
                number(counts().map(|table| table.objects).sum()),
                bytes(counts().map(|table| table.bytes).sum()),
            ]);
        }
        printer.table(&sheet)?;
    }
    if let Some(lock) = &listing.lock {
        printer.warning(format!(
            "locked by {} ({}) since {}; if that process is dead: `dynalake baselines unlock {}`",
            lock.holder,
            lock.purpose,
            cell::instant(lock.since_ms),
            quoted(&listing.lake)
        ));
    }
    Ok(())
}

fn kind(kind: BaselineKind) -> &'static str {
    match kind {
        BaselineKind::FullExport => "full export",
        BaselineKind::Rolled => "rolled forward",
    }
}
