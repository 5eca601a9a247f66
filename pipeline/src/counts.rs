//! Counting as rows are written: by index, folded into a [`Report`] by name only when asked.

use std::collections::BTreeMap;

use crate::decode::names::NameId;
use crate::decode::plan::EntityPlan;
use crate::decode::row::RowScratch;
use crate::decode::value::Fit;
use crate::report::TableReport;

/// Distinct undeclared attribute names that are counted by name per table; the rest count as `…`.
const MAX_NAMES: usize = 1000;

/// Counts of one entity's rows.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    rows: u64,
    extra_tombstones: u64,
    /// By path: mismatches, inexact values.
    fits: Vec<(u64, u64)>,
    /// By name.
    undeclared: Vec<u64>,
    other_names: u64,
}

/// What one row adds, until it is certain that the row stays.
#[derive(Debug, Default)]
pub(crate) struct PendingCounts {
    notes: Vec<(usize, usize, Fit)>,
    names: Vec<(usize, NameId)>,
    other_names: Vec<usize>,
}

impl PendingCounts {
    pub(crate) fn clear(&mut self) {
        self.notes.clear();
        self.names.clear();
        self.other_names.clear();
    }

    /// Takes over what a row of this entity ran into.
    pub(crate) fn add(&mut self, entity: usize, row: &RowScratch) {
        self.notes
            .extend(row.notes().iter().map(|&(path, fit)| (entity, path, fit)));
        self.names
            .extend(row.undeclared.iter().map(|&name| (entity, name)));
        self.other_names
            .extend(std::iter::repeat_n(entity, row.undeclared_unknown));
    }

    /// The rows stay: counts them.
    pub(crate) fn commit(&mut self, counts: &mut [Counts]) {
        for &(entity, path, fit) in &self.notes {
            let Some(counts) = counts.get_mut(entity) else {
                continue;
            };
            let (mismatches, inexact) = slot(&mut counts.fits, path);
            match fit {
                Fit::Exact => {}
                Fit::Inexact => *inexact += 1,
                Fit::Mismatch => *mismatches += 1,
            }
        }
        for &(entity, name) in &self.names {
            if let Some(counts) = counts.get_mut(entity) {
                *slot(&mut counts.undeclared, name) += 1;
            }
        }
        for &entity in &self.other_names {
            if let Some(counts) = counts.get_mut(entity) {
                counts.other_names += 1;
            }
        }
        self.clear();
    }
}

impl Counts {
    /// Counts a row.
    pub(crate) fn row(&mut self, extra: bool) {
        self.rows += 1;
        self.extra_tombstones += u64::from(extra);
    }

    /// The counts by name; starts again at zero. `None` when there is nothing to tell.
    pub(crate) fn take(&mut self, plan: &EntityPlan) -> Option<TableReport> {
        let counts = std::mem::take(self);
        if counts.rows == 0 {
            return None;
        }
        let mut report = TableReport {
            rows: counts.rows,
            extra_tombstones: counts.extra_tombstones,
            ..TableReport::default()
        };
        for (path, (mismatches, inexact)) in counts.fits.iter().enumerate() {
            let Some(path) = plan.paths.get(path) else {
                continue;
            };
            add(&mut report.mismatches, path, *mismatches);
            add(&mut report.inexact, path, *inexact);
        }
        let mut other_names = counts.other_names;
        for (name, &count) in counts.undeclared.iter().enumerate() {
            match plan.names.get(name) {
                Some(name) if report.undeclared.len() < MAX_NAMES => {
                    add(&mut report.undeclared, &name.text, count);
                }
                _ => other_names += count,
            }
        }
        add(&mut report.undeclared, "…", other_names);
        Some(report)
    }
}

fn add(counts: &mut BTreeMap<String, u64>, name: &str, count: u64) {
    if count > 0 {
        *counts.entry(name.to_owned()).or_default() += count;
    }
}

fn slot<T: Clone + Default>(values: &mut Vec<T>, index: usize) -> &mut T {
    if values.len() <= index {
        values.resize(index + 1, T::default());
    }
    let last = values.len() - 1;
    #[expect(
        clippy::indexing_slicing,
        reason = "the vector was just made long enough"
    )]
    &mut values[index.min(last)]
}
