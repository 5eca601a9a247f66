//! Converts one data file: compressed bytes in, objects on the local disk out.
//!
//! Runs on a blocking thread. Memory: the plan's row-group budget, the copies that sorting and
//! encoding make of one table's share of it, one line, and a few buffers. Nothing here touches the
//! lake.
//!
//! Where the plan says so, a file is converted in parts: part k holds the lines that begin in the
//! decompressed bytes from k·P to (k+1)·P. So the disk holds the objects of one part, and a worker
//! whose time is over can be followed by another one. The last part has read all of the file and is
//! given only if MD5 and item count are right; the parts before it are seen by nobody until then.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dynalake_pipeline::layout;
use dynalake_pipeline::pipeline::{BatchError, Partitioning, Pipeline, Secrets};
use dynalake_pipeline::quarantine::{self, QuarantineEntry, RecordOrigin};
use dynalake_pipeline::record::{ChangeRecord, Origin};
use dynalake_pipeline::reject::Reject;
use dynalake_pipeline::report::Report;
use dynalake_schemas::Catalog;
use tempfile::TempDir;

use crate::data_file::{DataFileError, DataFileReader, Mark, Totals};
use crate::error::{ExportError, RefusalKind};
use crate::format::{DataFormat, LineReader};
use crate::line;
use crate::locate::Located;
use crate::manifest::{Summary, md5_text};
use crate::options::Progress;
use crate::report::accounted;
use crate::spool::{Naming, Spool, Spooled};
use crate::state::{Plan, StateKind};

/// Bytes of lines between two looks at the memory in use, and two reports of progress.
const CHECK_BYTES: usize = 1024 * 1024;
/// Bytes of quarantined payloads at which a quarantine object is closed.
const QUARANTINE_BYTES: usize = 8 * 1024 * 1024;

/// What all workers share.
pub(crate) struct Job {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) secrets: Secrets,
    pub(crate) plan: Plan,
    pub(crate) summary: Summary,
    pub(crate) spool: Option<PathBuf>,
    pub(crate) progress: Arc<dyn Progress>,
    /// Set when another worker has failed.
    pub(crate) stop: Arc<AtomicBool>,
}

/// A part of a data file, most often all of it, as objects on the local disk.
pub(crate) struct Converted {
    pub(crate) place: Place,
    pub(crate) objects: Vec<Spooled>,
    pub(crate) report: Report,
    /// Lines of an incremental export in quarantine whose keys cannot be read.
    pub(crate) without_keys: u64,
    /// Holds the objects' files.
    pub(crate) _folder: TempDir,
}

/// Where a part is in its data file. By default: all of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// Number of the part, from 0. A part in which no line begins does not exist.
    pub(crate) part: u64,
    /// Where it begins.
    pub(crate) from: Mark,
    /// Where the next part begins; `None` if this one is the last and the file is verified.
    pub(crate) next: Option<Mark>,
}

/// What is to be done after a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Convert the next part.
    GoOn,
    /// Leave the rest to another worker.
    Pause,
}

/// Objects of one part that have numbers of their own.
const OBJECTS_PER_PART: u64 = 100_000;

/// Converts a data file read from `compressed`, from a mark or from its beginning on, and gives each part
/// to `done`. `false`: the mark is not one of this file.
pub(crate) fn convert_data_file(
    job: &Job,
    file: &Located,
    compressed: impl std::io::Read,
    from: Option<Mark>,
    done: &mut dyn FnMut(Converted) -> Result<Then, ExportError>,
) -> Result<bool, ExportError> {
    let mut reader = DataFileReader::new(compressed);
    if let Some(mark) = from {
        let there = reader.skip_to(&mark);
        if !there.map_err(|error| unreadable(file, error))? {
            return Ok(false);
        }
    }
    loop {
        let converted = convert_part(job, file, &mut reader)?;
        let last = converted.place.next.is_none();
        if done(converted)? == Then::Pause || last {
            return Ok(true);
        }
    }
}

/// Converts the part that begins where the reader stands.
fn convert_part(
    job: &Job,
    file: &Located,
    reader: &mut DataFileReader<impl std::io::Read>,
) -> Result<Converted, ExportError> {
    let from = reader.mark();
    let part = job.plan.part_at(from);
    let end = |bytes: u64| bytes.saturating_mul(part.saturating_add(1));
    reader.set_limit(job.plan.part_bytes.map_or(u64::MAX, end));
    let mut worker = Worker::new(job, file, part)?;
    let mut reported = reader.bytes();
    let mut unchecked = 0;
    let mut first = true;
    while let Some((number, line)) = reader
        .next_line()
        .map_err(|error| unreadable(file, error))?
    {
        if std::mem::take(&mut first) {
            check_format(file, line)?;
        }
        unchecked += worker.take(number, line)?;
        if unchecked >= CHECK_BYTES {
            unchecked = 0;
            worker.make_room()?;
            worker.tell(reader.bytes() - reported);
            reported = reader.bytes();
            if job.stop.load(Ordering::Relaxed) {
                return Err(ExportError::Stopped);
            }
        }
    }
    let next = if reader.at_end().map_err(|error| unreadable(file, error))? {
        let totals = reader.finish().map_err(|error| unreadable(file, error))?;
        verify(file, &totals)?;
        None
    } else {
        Some(reader.mark())
    };
    worker.tell(reader.bytes() - reported);
    let items = reader.mark().items - from.items;
    worker.finish(items, Place { part, from, next })
}

/// An item as a line of a full export, and the road that it took.
pub(crate) type AgainLine = (String, Origin);

/// Converts items that were rows before, given in parts, like the lines of a data file.
pub(crate) fn convert_again<L>(
    job: &Job,
    file: &Located,
    parts: impl Iterator<Item = Result<L, ExportError>>,
) -> Result<Converted, ExportError>
where
    L: Iterator<Item = Result<AgainLine, ExportError>>,
{
    let mut worker = Worker::new(job, file, 0)?;
    let (mut items, mut unchecked) = (0, 0);
    for part in parts {
        for line in part? {
            let (line, origin) = line?;
            items += 1;
            unchecked += line.len();
            worker.origin = origin;
            worker.take(items, line.as_bytes())?;
            if unchecked >= CHECK_BYTES {
                unchecked = 0;
                worker.make_room()?;
            }
        }
    }
    worker.finish(items, Place::default())
}

struct Worker<'a> {
    job: &'a Job,
    file: &'a Located,
    lines: LineReader,
    pipeline: Pipeline,
    spool: Spool<'a>,
    /// The road that the lines took.
    origin: Origin,
    quarantined: Vec<QuarantineEntry>,
    quarantined_bytes: usize,
    untold_items: u64,
    without_keys: u64,
}

impl<'a> Worker<'a> {
    fn new(job: &'a Job, file: &'a Located, part: u64) -> Result<Self, ExportError> {
        let pipeline = Pipeline::new(Arc::clone(&job.catalog), &job.secrets, Partitioning::Whole)
            .map_err(ExportError::Setup)?;
        let name = &file.file.name;
        let stem = name.strip_suffix(file.file.format.suffix()).unwrap_or(name);
        let naming = Naming {
            folder: job.plan.kind.folder(),
            label: job.summary.label.clone(),
            data_file: format!("{}-{stem}", job.summary.export_id),
            first: first_object(part)?,
        };
        let spool = Spool::new(
            &job.catalog,
            naming,
            job.plan.object_bytes,
            job.spool.as_deref(),
        )?;
        Ok(Self {
            job,
            file,
            lines: LineReader::new(file.file.format),
            pipeline,
            spool,
            origin: match job.plan.kind {
                StateKind::Incremental => Origin::IncrementalExport,
                StateKind::Full | StateKind::Rolled | StateKind::Rebased => Origin::FullExport,
            },
            quarantined: Vec::new(),
            quarantined_bytes: 0,
            untold_items: 0,
            without_keys: 0,
        })
    }

    /// One line: into the columns, or into quarantine. Gives the bytes of its DynamoDB JSON, so that
    /// row groups end at the same items whatever the format.
    fn take(&mut self, number: u64, line: &[u8]) -> Result<usize, ExportError> {
        self.untold_items += 1;
        let at = self.job.summary.kind.at_ms();
        let kind = self.job.plan.kind;
        let origin = self.origin;
        let mut bytes = line.len();
        let read = self.lines.json(line).and_then(|json| {
            bytes = json.len();
            match kind {
                StateKind::Incremental => line::change(json, at),
                StateKind::Full | StateKind::Rolled | StateKind::Rebased => {
                    line::snapshot(json, at)
                }
            }
        });
        let outcome = match read {
            Ok(record) => self.pipeline.push(&ChangeRecord {
                origin,
                payload: line,
                ..record
            }),
            Err(reject) => {
                self.pipeline.count_reject(&reject);
                Err(reject)
            }
        };
        if let Err(reject) = outcome {
            self.forget(line);
            self.quarantine(number, line, reject)?;
        }
        Ok(bytes)
    }

    /// An item whose change cannot be read is in quarantine from now on, and in no table: what a full
    /// export with that item would give. Where not even its keys can be read, its row stays as it was.
    fn forget(&mut self, line: &[u8]) {
        if self.job.plan.kind != StateKind::Incremental {
            return;
        }
        let keys = self.lines.keys_json(line).ok();
        let delete = keys.and_then(|keys| line::delete(keys, self.job.summary.kind.at_ms()));
        let forgotten = delete.map(|delete| self.pipeline.push_tombstones(&delete));
        if !matches!(forgotten, Some(Ok(_))) {
            self.without_keys += 1;
        }
    }

    fn quarantine(&mut self, number: u64, line: &[u8], reject: Reject) -> Result<(), ExportError> {
        let origin = RecordOrigin::Export {
            export_id: self.job.summary.export_id.clone(),
            data_file: self.file.file.name.clone(),
            line: number,
        };
        let at = self.job.summary.kind.at_ms();
        // Says of what form the payload is, for its replay.
        let source = match self.job.plan.kind {
            StateKind::Incremental => Origin::IncrementalExport,
            StateKind::Full | StateKind::Rolled | StateKind::Rebased => Origin::FullExport,
        };
        let entry = QuarantineEntry::new(reject, source, origin, at, line.to_vec());
        self.quarantined.push(entry);
        self.quarantined_bytes += line.len();
        if self.quarantined_bytes >= QUARANTINE_BYTES {
            self.close_quarantine()?;
        }
        Ok(())
    }

    fn close_quarantine(&mut self) -> Result<(), ExportError> {
        let entries = std::mem::take(&mut self.quarantined);
        self.quarantined_bytes = 0;
        if entries.is_empty() {
            return Ok(());
        }
        let key = layout::quarantine_key(layout::day_of(self.job.summary.kind.at_ms()), &entries);
        let rows = u64::try_from(entries.len()).unwrap_or(u64::MAX);
        self.spool
            .add_bytes(key, &quarantine::to_jsonl(&entries), rows)
    }

    /// Writes row groups until the rows in memory are within the budget.
    fn make_room(&mut self) -> Result<(), ExportError> {
        let budget = usize::try_from(self.job.plan.row_group_bytes).unwrap_or(usize::MAX);
        while self.pipeline.buffered_bytes() > budget {
            let largest = self.pipeline.finish_largest();
            let Some(batch) = largest.map_err(|error| self.batch_error(&error))? else {
                break;
            };
            self.spool.write(&batch)?;
        }
        Ok(())
    }

    fn batch_error(&self, error: &BatchError) -> ExportError {
        ExportError::Encode {
            table: error.table.clone(),
            file: self.file.address.clone(),
            message: error.to_string(),
        }
    }

    fn tell(&mut self, bytes: u64) {
        let items = std::mem::take(&mut self.untold_items);
        self.job.progress.advanced(items, bytes);
    }

    fn finish(mut self, items: u64, place: Place) -> Result<Converted, ExportError> {
        let batches = self
            .pipeline
            .finish()
            .map_err(|error| self.batch_error(&error))?;
        for batch in batches {
            self.spool.write(&batch)?;
        }
        self.close_quarantine()?;
        let report = self.pipeline.take_report();
        let (objects, folder) = self.spool.finish()?;
        let written = |table: &str| {
            objects
                .iter()
                .filter(|object| object.table == table)
                .map(|object| object.rows)
                .sum::<u64>()
        };
        let all_written = report
            .tables
            .iter()
            .all(|(table, counts)| written(table) == counts.rows)
            && written("") == report.quarantined;
        if report.records != items || accounted(&report) != items || !all_written {
            return Err(ExportError::Unaccounted {
                file: self.file.address.clone(),
                items,
                accounted: accounted(&report),
            });
        }
        Ok(Converted {
            place,
            objects,
            report,
            without_keys: self.without_keys,
            _folder: folder,
        })
    }
}

/// Fails where lines are in another format than the file's name says: none of them could be read, or,
/// worse, JSON could be taken for Ion.
fn check_format(file: &Located, line: &[u8]) -> Result<(), ExportError> {
    match DataFormat::of_line(line) {
        Some(found) if found != file.file.format => Err(ExportError::refused(
            RefusalKind::OtherFormat,
            file.address.clone(),
            format!(
                "its first line is in {} but the manifest says {}",
                found.as_str(),
                file.file.format.as_str()
            ),
            "the file was changed or renamed; copy it again from where AWS wrote it",
        )),
        _ => Ok(()),
    }
}

fn first_object(part: u64) -> Result<u32, ExportError> {
    let number = part.checked_mul(OBJECTS_PER_PART);
    number
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| {
            ExportError::Setup("a data file has too many parts; make them larger".to_owned())
        })
}

fn verify(file: &Located, totals: &Totals) -> Result<(), ExportError> {
    if totals.md5 != file.file.md5 {
        return Err(ExportError::refused(
            RefusalKind::Checksum,
            file.address.clone(),
            format!(
                "its MD5 is {} but the manifest says {}",
                md5_text(&totals.md5),
                md5_text(&file.file.md5)
            ),
            "the file was changed or damaged; copy it again from where AWS wrote it",
        ));
    }
    if totals.items != file.file.item_count {
        return Err(ExportError::refused(
            RefusalKind::CountMismatch,
            file.address.clone(),
            format!(
                "it holds {} items but the manifest says {}",
                totals.items, file.file.item_count
            ),
            "file and manifest are not of one export; copy the export again",
        ));
    }
    Ok(())
}

fn unreadable(file: &Located, error: DataFileError) -> ExportError {
    match error {
        DataFileError::Source(source) => ExportError::Read {
            file: file.address.clone(),
            source,
        },
        damage => ExportError::refused(
            RefusalKind::DamagedFile,
            file.address.clone(),
            damage.to_string(),
            "copy the file again from where AWS wrote it",
        ),
    }
}
