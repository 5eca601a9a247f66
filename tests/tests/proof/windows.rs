//! Incremental exports between the instants of earlier exports, rolled into new baselines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use dynalake_export_job::commit_export;
use dynalake_export_job::export_writer::{ExportSpec, NetEffect, write_incremental_export};
use dynalake_export_job::manifest::ExportView;
use dynalake_export_job::roll::{RollOptions, RollReport, Unwatched, roll};
use dynalake_pipeline::baseline;
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::store::Store;
use dynalake_tests::Random;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::export::Export;
use crate::lake::{Lake, SECRET};
use crate::model::key_of;
use crate::source::{Source, TABLE};

/// A window that AWS has exported.
pub struct Window {
    from: i64,
    to: i64,
    export: Export,
}

/// All windows of a story.
#[derive(Default)]
pub struct Windows(Vec<Window>);

impl Windows {
    /// Exports what has changed since an earlier export, full or not; nothing where there is none.
    pub fn take(&mut self, source: &mut Source, lake: &Lake, random: &mut Random) {
        let at = Export::instant(source, random);
        let items = source.scan();
        let from = source.points.iter().filter(|(begin, _)| *begin < at);
        let from: Vec<i64> = from.map(|(begin, _)| *begin).collect();
        // Mostly the last one, so that there are chains.
        let last = from.last().copied();
        let begin = if random.chance(80) {
            last
        } else {
            from.first().copied()
        };
        let Some(begin) = begin else { return };
        let before = source.points.iter().find(|(at, _)| *at == begin);
        let effects = effects(&before.expect("a point").1, &items, at);
        source.points.push((at, items));
        let view = *random.pick(&[ExportView::NewImage, ExportView::NewAndOldImages]);
        let spec = ExportSpec {
            data_files: 1 + random.below(3),
            ..ExportSpec::incremental(TABLE, begin, at, view)
        };
        let bucket = lake.folder.path().join("exports");
        let folder: PathBuf = write_incremental_export(&bucket, &spec, &effects).unwrap();
        self.0.push(Window {
            from: begin,
            to: at,
            export: Export::of(folder, spec.export_id()),
        });
    }

    /// Rolls the baseline before some window forward to its end, sometimes after a roll that broke
    /// off. `false` where no chain of windows leads there.
    pub fn roll(&self, lake: &Lake, now: i64, runtime: &Runtime, random: &mut Random) -> bool {
        let list = baseline::list(&lake.store);
        let baselines = runtime.block_on(Box::pin(list)).unwrap();
        let known: BTreeSet<i64> = baselines.iter().map(|record| record.at_ms).collect();
        let mut ends: Vec<&Window> = self.0.iter().collect();
        random.shuffle(&mut ends);
        // Mostly one that is not rolled yet.
        ends.sort_by_key(|end| known.contains(&end.to));
        let again = random.chance(10);
        let found = ends
            .into_iter()
            .filter(|end| again || !known.contains(&end.to))
            .find_map(|end| Some((end.to, self.chain(end, &known)?)));
        let Some((end, mut chain)) = found else {
            return false;
        };
        random.shuffle(&mut chain);
        for window in &chain {
            window.export.convert_whole(lake, runtime, random);
        }
        let ids: Vec<String> = chain
            .iter()
            .map(|window| window.export.id.clone())
            .collect();
        if random.chance(30) {
            let stop = u64::try_from(random.below(60)).unwrap();
            // What it says does not matter: it may just be done.
            run(lake, &lake.store.stopping_after(stop), &ids, runtime).ok();
        }
        let report = run(lake, &lake.store, &ids, runtime).unwrap();
        assert!(report.done);
        let commit = commit_export(&lake.store, &report.export_id, "proof", now);
        let (record, _) = runtime.block_on(Box::pin(commit)).unwrap();
        assert_eq!(record.at_ms, end);
        true
    }

    /// The windows from a baseline to the end of this one; `None` where none leads there.
    fn chain<'w>(&'w self, end: &'w Window, known: &BTreeSet<i64>) -> Option<Vec<&'w Window>> {
        let mut chain = vec![end];
        let mut from = end.from;
        while !known.contains(&from) {
            let before = self.0.iter().find(|window| window.to == from)?;
            from = before.from;
            chain.push(before);
        }
        Some(chain)
    }
}

fn run(
    lake: &Lake,
    store: &Store,
    ids: &[String],
    runtime: &Runtime,
) -> Result<RollReport, dynalake_export_job::ExportError> {
    let secrets = Secrets {
        hmac_key: Some(SECRET.as_bytes().to_vec()),
    };
    // Little, so that runs are merged in several passes and tables have several objects.
    let options = RollOptions {
        memory_bytes: 0,
        row_group_bytes: 1 << 16,
        object_bytes: 1 << 14,
        spool: Some(lake.folder.path().to_owned()),
        ..RollOptions::default()
    };
    let watch = Arc::new(Unwatched);
    let rolled = roll(store, &lake.catalog, &secrets, ids, &options, watch);
    runtime.block_on(Box::pin(rolled))
}

/// What became of all items between two scans.
fn effects(before: &[Value], after: &[Value], at: i64) -> Vec<NetEffect> {
    let by_key = |items: &[Value]| -> BTreeMap<(String, String), Value> {
        items
            .iter()
            .map(|item| (key_of(item), item.clone()))
            .collect()
    };
    let (before, after) = (by_key(before), by_key(after));
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| NetEffect {
            keys: json!({"PK": {"S": key.0}, "SK": {"S": key.1}}).to_string(),
            before: before.get(key).map(ToString::to_string),
            after: after.get(key).map(ToString::to_string),
            written_micros: (at - 1) * 1000,
        })
        .collect()
}
