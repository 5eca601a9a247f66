//! What the lake remembers of an export: plan, finished data files, completion.
//!
//! ```text
//! state/exports/<export id>/plan.json               how the first run converts it
//! state/exports/<export id>/<data file>.json        one per data file that is whole in the lake
//! state/exports/<export id>/parts/<data file>.<n>.json   one per part of a data file but the last
//! state/exports/<export id>/complete.json           everything is, and the totals are right
//! state/export-seconds/<export label>.json          which full export or roll owns the partition
//!                                                   `export=<label>`
//! ```
//! No record holds a time or anything else of the run: two runs write the same bytes. A data file's
//! record is written after its objects, `complete.json` after all records.

use std::collections::{BTreeMap, HashMap};

use dynalake_pipeline::layout;
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::report::Report;
use dynalake_schemas::Catalog;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data_file::Mark;
use crate::locate::Located;
use crate::manifest::{ExportKind, Summary, hex, md5_text};
use crate::report::TableOutcome;
use crate::spool::Spooled;
use crate::worker::Converted;

/// Form of the records below; part of the plan.
pub(crate) const FORMAT: u32 = 1;
/// Version of this program; part of the plan.
pub(crate) const WRITER: &str = env!("CARGO_PKG_VERSION");

/// What a state folder is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateKind {
    /// A full export, whose rows are a baseline's.
    #[default]
    Full,
    /// An incremental export, whose rows wait in `deltas/` to be rolled into a baseline.
    Incremental,
    /// A baseline rolled forward by incremental exports.
    Rolled,
    /// A baseline's rows that are decoded again, to be rolled forward with other schemas.
    Rebased,
}

impl StateKind {
    /// Folder of the lake that the rows go to.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Full | Self::Rolled => layout::SNAPSHOT,
            Self::Incremental | Self::Rebased => layout::DELTAS,
        }
    }
}

impl From<ExportKind> for StateKind {
    fn from(kind: ExportKind) -> Self {
        match kind {
            ExportKind::Full { .. } => Self::Full,
            ExportKind::Incremental { .. } => Self::Incremental,
        }
    }
}

/// Key of the record that says that an export is whole in the lake.
pub fn complete_key(export_id: &str) -> String {
    format!("state/exports/{export_id}/complete.json")
}

/// `complete.json`: the export is whole in the lake and all totals are right.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complete {
    /// Form of this record.
    pub format: u32,
    /// What is whole.
    #[serde(default)]
    pub kind: StateKind,
    /// The export's id.
    pub export_id: String,
    /// The export's ARN.
    pub export_arn: String,
    /// The source table's ARN.
    pub table_arn: String,
    /// Begin of an incremental export's window, milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_time: Option<i64>,
    /// The export's time, or the end of its window, milliseconds since 1970-01-01 UTC.
    pub export_time: i64,
    /// Value of the partition `export=…`.
    pub label: String,
    /// Fingerprint of the schemas and secrets it was converted with.
    pub catalog: String,
    /// Items of the export.
    pub items: u64,
    /// Items in quarantine.
    pub quarantined: u64,
    /// Data files.
    pub files: u64,
    /// Per lake table.
    pub tables: BTreeMap<String, TableOutcome>,
}

/// `plan.json`: everything on which the bytes in the lake depend, besides the export itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) format: u32,
    #[serde(default)]
    pub(crate) kind: StateKind,
    pub(crate) export_id: String,
    pub(crate) export_arn: String,
    pub(crate) label: String,
    /// Version of this program.
    pub(crate) writer: String,
    /// Fingerprint of schemas and secrets.
    pub(crate) catalog: String,
    /// Bytes of decoded rows at which a worker writes a row group.
    pub(crate) row_group_bytes: u64,
    /// Bytes at which an object is closed.
    pub(crate) object_bytes: u64,
    /// Decompressed bytes of a data file that are converted at a time. `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) part_bytes: Option<u64>,
    /// Tables that may have objects.
    pub(crate) tables: Vec<String>,
}

/// An object that is whole in the lake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObjectRecord {
    /// Lake table; empty for quarantine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl From<&Spooled> for ObjectRecord {
    fn from(object: &Spooled) -> Self {
        Self {
            table: object.table.clone(),
            key: object.key.clone(),
            rows: object.rows,
            bytes: object.bytes,
        }
    }
}

/// A data file, or a part of one, that is whole in the lake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    pub(crate) format: u32,
    pub(crate) data_file: String,
    pub(crate) md5: String,
    /// Fingerprint of schemas and secrets.
    pub(crate) catalog: String,
    pub(crate) bytes_in: u64,
    pub(crate) objects: Vec<ObjectRecord>,
    pub(crate) report: Report,
    /// Lines of an incremental export in quarantine whose keys cannot be read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) without_keys: u64,
    /// Of a part: where it begins and ends. `None`: this record is of the whole data file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) span: Option<Span>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Beginning and end of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) from: Mark,
    pub(crate) to: Mark,
}

/// Bytes at which something ends; part of the plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) row_group: u64,
    pub(crate) object: u64,
    pub(crate) part: Option<u64>,
}

impl Plan {
    pub(crate) fn new(
        summary: &Summary,
        catalog: &Catalog,
        secrets: &Secrets,
        sizes: Sizes,
    ) -> Self {
        Self {
            format: FORMAT,
            kind: summary.kind.into(),
            export_id: summary.export_id.clone(),
            export_arn: summary.export_arn.clone(),
            label: summary.label.clone(),
            writer: WRITER.to_owned(),
            catalog: fingerprint(catalog, secrets),
            row_group_bytes: sizes.row_group,
            object_bytes: sizes.object,
            part_bytes: sizes.part,
            tables: catalog
                .entities
                .iter()
                .map(|entity| entity.table.clone())
                .collect(),
        }
    }

    /// What a roll has in common with an export.
    pub(crate) fn rolled(
        export_id: String,
        label: String,
        catalog: &Catalog,
        secrets: &Secrets,
        (row_group_bytes, object_bytes): (u64, u64),
    ) -> Self {
        Self {
            format: FORMAT,
            kind: StateKind::Rolled,
            export_arn: export_id.clone(),
            export_id,
            label,
            writer: WRITER.to_owned(),
            catalog: fingerprint(catalog, secrets),
            row_group_bytes,
            object_bytes,
            part_bytes: None,
            tables: catalog.entities.iter().map(|e| e.table.clone()).collect(),
        }
    }

    /// What the keys of this export's objects of a table begin with. Windows may share a label, so the
    /// id is part of it.
    pub(crate) fn objects_prefix(&self, table: &str) -> String {
        let prefix = layout::export_prefix(self.kind.folder(), table, &self.label);
        match self.kind {
            StateKind::Full | StateKind::Rolled => prefix,
            StateKind::Incremental | StateKind::Rebased => format!("{prefix}{}-", self.export_id),
        }
    }

    /// [`Plan::objects_prefix`] of all tables.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = String> {
        self.tables.iter().map(|table| self.objects_prefix(table))
    }

    /// Number of the part that begins at a mark.
    pub(crate) fn part_at(&self, mark: Mark) -> u64 {
        self.part_bytes
            .map_or(0, |bytes| mark.offset / bytes.max(1))
    }

    /// Whether a run with `other`'s settings may go on with this plan (and its sizes).
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        (
            self.format,
            &self.export_arn,
            &self.label,
            &self.writer,
            &self.catalog,
        ) == (
            other.format,
            &other.export_arn,
            &other.label,
            &other.writer,
            &other.catalog,
        )
    }
}

impl FileRecord {
    /// The record of a part; of the whole data file, if it has one only.
    pub(crate) fn new(plan: &Plan, file: &Located, converted: &Converted) -> Self {
        Self {
            format: FORMAT,
            data_file: file.file.name.clone(),
            md5: md5_text(&file.file.md5),
            catalog: plan.catalog.clone(),
            bytes_in: file.size,
            objects: converted.objects.iter().map(ObjectRecord::from).collect(),
            report: converted.report.clone(),
            without_keys: converted.without_keys,
            span: converted.place.next.map(|to| Span {
                from: converted.place.from,
                to,
            }),
        }
    }

    /// The record of a data file whose last part is `last`.
    pub(crate) fn of_parts(parts: &[Self], last: &Self) -> Self {
        let mut whole = Self {
            objects: Vec::new(),
            report: Report::default(),
            without_keys: 0,
            ..last.clone()
        };
        for part in parts.iter().chain([last]) {
            whole.objects.extend(part.objects.iter().cloned());
            whole.report.merge(&part.report);
            whole.without_keys += part.without_keys;
        }
        whole
    }

    /// Where the next part begins, if this record is of the part that begins at `from`, of the same
    /// data file under the same plan, and not of the last one.
    pub(crate) fn goes_on_at(&self, plan: &Plan, file: &Located, from: Mark) -> Option<Mark> {
        let span = self.span.filter(|span| span.from == from)?;
        self.is_of(plan, file).then_some(span.to)
    }

    fn is_of(&self, plan: &Plan, file: &Located) -> bool {
        self.format == FORMAT
            && self.data_file == file.file.name
            && self.md5 == md5_text(&file.file.md5)
            && self.catalog == plan.catalog
    }

    /// Whether this record is of the same data file under the same plan, with all rows there.
    pub(crate) fn holds(&self, plan: &Plan, file: &Located, there: &HashMap<String, u64>) -> bool {
        self.is_of(plan, file)
            && self.span.is_none()
            && self.report.records == file.file.item_count
            && self
                .objects
                .iter()
                .filter(|object| !object.table.is_empty())
                .all(|object| there.get(&object.key) == Some(&object.bytes))
    }
}

pub(crate) fn folder(export_id: &str) -> String {
    format!("state/exports/{export_id}/")
}

pub(crate) fn plan_key(export_id: &str) -> String {
    format!("{}plan.json", folder(export_id))
}

/// Whether a key in an export's folder is that of a data file's record.
pub(crate) fn is_data_file_record(export_id: &str, key: &str) -> bool {
    key.strip_prefix(&folder(export_id))
        .is_some_and(|name| name.ends_with(".gz.json") && !name.contains('/'))
}

/// A data file's name ends in `.gz`, so that this is no other record's key.
pub(crate) fn file_key(export_id: &str, data_file: &str) -> String {
    format!("{}{data_file}.json", folder(export_id))
}

/// Key of the record of a part. The number is the part's, which names it for good.
pub(crate) fn part_key(export_id: &str, data_file: &str, part: u64) -> String {
    format!("{}parts/{data_file}.{part:05}.json", folder(export_id))
}

/// SHA-256 over the schemas and the secrets that transforms use, as hex. The text hashed is the
/// `Debug` form of everything that decides on routing and columns: not of the database's name, which a
/// stage may choose, nor of the files, whose comments do not matter.
pub(crate) fn fingerprint(catalog: &Catalog, secrets: &Secrets) -> String {
    let mut hash = Sha256::new();
    let Catalog {
        source, entities, ..
    } = catalog;
    hash.update(format!("{source:?} {entities:?}"));
    if let Some(key) = &secrets.hmac_key {
        // Hashed together with the schemas, so that the record is no hash of the secret alone.
        hash.update(Sha256::digest(key));
    }
    hex(&hash.finalize())
}
