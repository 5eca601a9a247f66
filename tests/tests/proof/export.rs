//! Full exports at random instants, converted and committed at others.

use std::path::PathBuf;
use std::sync::Arc;

use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use dynalake_export_job::format::DataFormat;
use dynalake_export_job::{
    ConvertOptions, ExportError, NoProgress, Source as Files, commit_export, convert,
};
use dynalake_pipeline::current::rule::MARGIN_MS;
use dynalake_pipeline::pipeline::Secrets;
use dynalake_tests::Random;
use tokio::runtime::Runtime;

use crate::lake::{Lake, SECRET};
use crate::source::{SECOND, Source, TABLE};

/// An export that AWS has finished.
pub struct Export {
    folder: PathBuf,
    /// Its id.
    pub id: String,
}

impl Export {
    /// Scans the table while nobody writes, and writes that down as AWS does. The export's time is in
    /// whole seconds of a clock that is up to half the margin off.
    pub fn take(source: &mut Source, lake: &Lake, random: &mut Random) -> Self {
        let at = Self::instant(source, random);
        Self::take_at(source, lake, at, random)
    }

    /// An export that is written already.
    pub fn of(folder: PathBuf, id: String) -> Self {
        Self { folder, id }
    }

    /// The time of an export that is taken now, by its own clock; no other has it.
    pub fn instant(source: &mut Source, random: &mut Random) -> i64 {
        let limit = MARGIN_MS / 2 - SECOND;
        let off = *random.pick(&[0, 0, SECOND, -SECOND, limit, -limit]);
        Self::own_second(source, source.now + off)
    }

    /// A second belongs to one export.
    fn own_second(source: &mut Source, at: i64) -> i64 {
        let mut at = at.div_euclid(SECOND) * SECOND;
        while !source.exported.insert(at) {
            at += SECOND;
            source.now += SECOND;
        }
        at
    }

    /// The first export that is good after records were lost: time passes until its time B is just
    /// more than 2M after the last of them.
    pub fn take_after_gap(source: &mut Source, lake: &Lake, random: &mut Random) -> Self {
        let Some(last_lost) = source.last_lost else {
            return Self::take(source, lake, random);
        };
        let limit = MARGIN_MS / 2 - SECOND;
        let off = *random.pick(&[0, limit, -limit]);
        let earliest = (last_lost + 2 * MARGIN_MS).div_euclid(SECOND) * SECOND + SECOND;
        source.now = source.now.max(earliest - off);
        let at = Self::own_second(source, source.now + off);
        Self::take_at(source, lake, at, random)
    }

    fn take_at(source: &mut Source, lake: &Lake, at: i64, random: &mut Random) -> Self {
        let mut items = source.scan();
        source.points.push((at, items.clone()));
        random.shuffle(&mut items);
        let spec = ExportSpec {
            data_files: 1 + random.below(4),
            format: *random.pick(&[DataFormat::Json, DataFormat::Ion]),
            ..ExportSpec::new(TABLE, at)
        };
        let texts = items.iter().map(ToString::to_string);
        let bucket = lake.folder.path().join("exports");
        Self {
            folder: write_full_export(&bucket, &spec, texts).unwrap(),
            id: spec.export_id(),
        }
    }

    /// Converts it, sometimes after a conversion that broke off, and makes it a baseline.
    pub fn commit(&self, lake: &Lake, now: i64, runtime: &Runtime, random: &mut Random) {
        self.convert_whole(lake, runtime, random);
        let commit = || commit_export(&lake.store, &self.id, "proof", now);
        runtime.block_on(Box::pin(commit())).unwrap();
        if random.chance(20) {
            // Again is no harm.
            runtime.block_on(Box::pin(commit())).unwrap();
        }
    }

    /// Converts it, sometimes after a conversion that broke off.
    pub fn convert_whole(&self, lake: &Lake, runtime: &Runtime, random: &mut Random) {
        if random.chance(30) {
            let stop = u64::try_from(random.below(8)).unwrap();
            match self.convert(lake, Some(stop), runtime) {
                Ok(()) | Err(ExportError::Stopped) => {}
                Err(error) => panic!("the conversion failed: {error}"),
            }
        }
        self.convert(lake, None, runtime)
            .unwrap_or_else(|error| panic!("the conversion failed: {error}"));
    }

    fn convert(
        &self,
        lake: &Lake,
        stop_after_puts: Option<u64>,
        runtime: &Runtime,
    ) -> Result<(), ExportError> {
        let secrets = Secrets {
            hmac_key: Some(SECRET.as_bytes().to_vec()),
        };
        let options = ConvertOptions {
            workers: std::num::NonZeroUsize::new(2),
            spool: Some(lake.folder.path().to_owned()),
            stop_after_puts,
            ..ConvertOptions::default()
        };
        let files = Files::local(&self.folder).unwrap();
        let catalog = Arc::clone(&lake.catalog);
        let progress = Arc::new(NoProgress);
        let run = convert(&files, &lake.store, catalog, &secrets, &options, progress);
        let report = runtime.block_on(Box::pin(run))?;
        assert_eq!(
            report.quarantined, 0,
            "the model makes nothing that is quarantined: {report:?}"
        );
        Ok(())
    }
}
