//! One data file: its parts converted, their objects and records put, and the record of the whole.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dynalake_pipeline::store::{ObjectReader, Store};
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;

use crate::error::{ExportError, RefusalKind};
use crate::lake::Lake;
use crate::locate::Located;
use crate::state::FileRecord;
use crate::threads::Threads;
use crate::worker::{Converted, Job, Then, convert_data_file};

/// What became of a data file.
pub(crate) enum FileOutcome {
    /// It is whole in the lake.
    Whole(Box<FileRecord>),
    /// At least one more part of it is in the lake; there are others.
    Paused,
}

/// Converts what is not yet in the lake of a data file. After each part `go_on` says whether there is time
/// for another one.
///
/// Nothing of a part is put before it was converted to its end, and its record after its objects.
pub(crate) async fn convert_file(
    source: &Store,
    lake: &Arc<Lake>,
    job: &Arc<Job>,
    file: Located,
    threads: &Threads,
    go_on: Arc<dyn Fn() -> bool + Send + Sync>,
) -> Result<FileOutcome, ExportError> {
    let mut parts = lake.parts(&job.plan, &file).await?;
    loop {
        if job.stop.load(Ordering::Relaxed) {
            return Err(ExportError::Stopped);
        }
        let work = Work {
            lake: Arc::clone(lake),
            job: Arc::clone(job),
            file: file.clone(),
            go_on: Arc::clone(&go_on),
            runtime: Handle::current(),
        };
        let reader = source.open_read(&file.key).await?;
        let resumed = !parts.is_empty();
        let task = threads.run(move || work.run(reader, parts));
        let outcome = task.await.ok_or_else(|| ExportError::Worker {
            file: file.address.clone(),
            message: "the worker panicked".to_owned(),
        })??;
        match outcome {
            Some(outcome) => {
                if matches!(outcome, FileOutcome::Whole(_)) {
                    job.progress.file_done(&file.file.name, false);
                }
                return Ok(outcome);
            }
            // The parts are those of another file of this name, which was repaired since.
            None if resumed => parts = Vec::new(),
            None => return Err(changed(&file)),
        }
    }
}

/// The work on a thread of its own.
struct Work {
    lake: Arc<Lake>,
    job: Arc<Job>,
    file: Located,
    go_on: Arc<dyn Fn() -> bool + Send + Sync>,
    runtime: Handle,
}

impl Work {
    /// `None`: the parts are not of this file.
    fn run(
        &self,
        reader: ObjectReader,
        mut parts: Vec<FileRecord>,
    ) -> Result<Option<FileOutcome>, ExportError> {
        let compressed = Blocking {
            reader,
            runtime: self.runtime.clone(),
        };
        let from = parts.last().and_then(|part| part.span).map(|span| span.to);
        let mut outcome = FileOutcome::Paused;
        let mut done = |converted: Converted| {
            let record = self.runtime.block_on(self.put(&converted, &parts))?;
            if record.span.is_none() {
                outcome = FileOutcome::Whole(Box::new(record));
                return Ok(Then::Pause);
            }
            parts.push(record);
            Ok(if (self.go_on)() {
                Then::GoOn
            } else {
                Then::Pause
            })
        };
        let known = convert_data_file(&self.job, &self.file, compressed, from, &mut done)?;
        Ok(known.then_some(outcome))
    }

    /// Puts a part's objects, then its record: the one of the whole file after the last part.
    async fn put(
        &self,
        converted: &Converted,
        before: &[FileRecord],
    ) -> Result<FileRecord, ExportError> {
        for object in &converted.objects {
            stopped(&self.job.stop)?;
            self.lake.put_object(object).await?;
        }
        stopped(&self.job.stop)?;
        let plan = &self.job.plan;
        let record = FileRecord::new(plan, &self.file, converted);
        if record.span.is_some() {
            self.lake
                .put_part_record(plan, converted.place.part, &record)
                .await?;
            return Ok(record);
        }
        let whole = FileRecord::of_parts(before, &record);
        self.lake.put_file_record(plan, &whole).await?;
        Ok(whole)
    }
}

fn stopped(stop: &AtomicBool) -> Result<(), ExportError> {
    if stop.load(Ordering::Relaxed) {
        return Err(ExportError::Stopped);
    }
    Ok(())
}

fn changed(file: &Located) -> ExportError {
    ExportError::refused(
        RefusalKind::DamagedFile,
        file.address.clone(),
        "it changed while it was read",
        "convert again once nobody writes to the export any more",
    )
}

/// An object's bytes for a blocking thread.
pub(crate) struct Blocking {
    pub(crate) reader: ObjectReader,
    pub(crate) runtime: Handle,
}

impl io::Read for Blocking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.runtime.block_on(self.reader.read(buffer))
    }
}
