//! The columns that every table has before its typed ones: where a row comes from, in which order
//! it happened, and what no typed column holds.
//!
//! They come first in every file, in the order of [`ALL`], with the field ids 1 to 12. Typed
//! columns follow in declared order, with field ids from [`FIRST_TYPED_ID`].

use arrow::datatypes::{DataType, TimeUnit};

/// Partition key as text. Never NULL.
pub const PK: usize = 0;
/// Sort key as text; NULL for a table without one.
pub const SK: usize = 1;
/// `INSERT`, `MODIFY`, `REMOVE` or `SNAPSHOT`. Never NULL.
pub const OP: usize = 2;
/// Of a REMOVE: `user`, `ttl` or `moved`.
pub const REASON: usize = 3;
/// Change time, or the export's time: milliseconds UTC. Never NULL.
pub const AT: usize = 4;
/// Stream label; NULL in snapshots.
pub const STREAM: usize = 5;
/// Sequence number, 40 digits; NULL in snapshots.
pub const SEQ: usize = 6;
/// The record's `eventID`; NULL in snapshots.
pub const EVENT_ID: usize = 7;
/// `stream`, `full_export`, `incremental_export` or `replay`. Never NULL.
pub const SOURCE: usize = 8;
/// The entity's schema version. Never NULL.
pub const SCHEMA: usize = 9;
/// DynamoDB JSON of all attributes not held exactly by a column; NULL when there are none.
pub const REST: usize = 10;
/// DynamoDB JSON of the old image; NULL unless the entity keeps it.
pub const OLD: usize = 11;
/// Number of row columns; the index of the first typed column.
pub const COUNT: usize = 12;
/// Field id of the first typed column; ids below it belong to row columns, now and later.
pub const FIRST_TYPED_ID: i32 = 100;

/// One of the columns that every table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowColumn {
    /// Name.
    pub name: &'static str,
    /// Parquet field id.
    pub field_id: i32,
    /// Kind of value.
    pub kind: RowColumnKind,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// What it holds, for the catalog.
    pub comment: &'static str,
}

/// Kind of value in a row column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowColumnKind {
    /// Text.
    Text,
    /// Milliseconds UTC.
    Timestamp,
    /// 32-bit integer.
    Int,
}

impl RowColumnKind {
    /// In Arrow.
    pub fn arrow_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            Self::Int => DataType::Int32,
        }
    }

    /// In Athena.
    pub fn athena_type(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Timestamp => "timestamp",
            Self::Int => "int",
        }
    }
}

/// All row columns, in file order.
pub const ALL: [RowColumn; COUNT] = {
    use RowColumnKind::{Int, Text, Timestamp};
    [
        column("_pk", 1, Text, false, "partition key as text"),
        column("_sk", 2, Text, true, "sort key as text"),
        column("_op", 3, Text, false, "INSERT, MODIFY, REMOVE or SNAPSHOT"),
        column("_reason", 4, Text, true, "of a REMOVE: user, ttl or moved"),
        column(
            "_at",
            5,
            Timestamp,
            false,
            "change time, or the time of the export",
        ),
        column("_stream", 6, Text, true, "stream label"),
        column(
            "_seq",
            7,
            Text,
            true,
            "sequence number, padded to 40 digits",
        ),
        column("_event_id", 8, Text, true, "event id of the stream record"),
        column(
            "_source",
            9,
            Text,
            false,
            "stream, full_export, incremental_export or replay",
        ),
        column("_schema", 10, Int, false, "schema version of the row"),
        column(
            "_rest",
            11,
            Text,
            true,
            "DynamoDB JSON of what no column holds exactly",
        ),
        column(
            "_old",
            12,
            Text,
            true,
            "DynamoDB JSON of the old image, where it is kept",
        ),
    ]
};

const fn column(
    name: &'static str,
    field_id: i32,
    kind: RowColumnKind,
    nullable: bool,
    comment: &'static str,
) -> RowColumn {
    RowColumn {
        name,
        field_id,
        kind,
        nullable,
        comment,
    }
}
