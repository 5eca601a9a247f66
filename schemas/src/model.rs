//! What a schema folder says, once it has been read and checked.
//!
//! Plain data. Everything here is immutable after loading and free of I/O.

pub use crate::load::SchemaFiles;

/// A schema folder: one source table, many entities.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalog {
    /// Name of the lake database (Glue database), `[a-z0-9_]+`.
    pub database: String,
    /// The DynamoDB table that feeds the lake.
    pub source: Source,
    /// Entities in matching order: the first one whose conditions hold takes the item.
    /// The last one is always the built-in `unmatched`, which takes everything and has no columns.
    pub entities: Vec<Entity>,
    /// The files that say so.
    pub files: SchemaFiles,
}

/// The DynamoDB table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Table name. `None` accepts records and exports of any table.
    pub table: Option<String>,
    /// Partition key attribute.
    pub partition_key: KeyAttribute,
    /// Sort key attribute; `None` for a table without one.
    pub sort_key: Option<KeyAttribute>,
    /// Attributes that are plumbing: neither columns nor drift, still kept in `_rest`.
    /// Exact names, or prefixes that end in `*` (`aws:rep:*`).
    pub ignore: Vec<String>,
}

/// A key attribute of the source table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyAttribute {
    /// Attribute name, exactly.
    pub name: String,
    /// Declared key type; `S` unless `lake.toml` says otherwise.
    pub key_type: KeyType,
}

/// The three types a DynamoDB key may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyType {
    /// String.
    S,
    /// Number.
    N,
    /// Binary.
    B,
}

/// One entity type: how its items are recognised, and its lake table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Entity name, `[a-z][a-z0-9_]*`.
    pub name: String,
    /// Lake table name.
    pub table: String,
    /// What the entity is, for people: the table's comment in the catalog.
    pub description: Option<String>,
    /// Schema version, written to every row (`_schema`) and to the file footer.
    pub version: i32,
    /// How items are recognised.
    pub matcher: Matcher,
    /// Typed columns in declared order. Includes columns with [`Transform::Drop`], which exist
    /// only so that their attribute is kept out of the lake: they are in no file and no table.
    pub columns: Vec<Column>,
    /// Keep the old image of changes in `_old`.
    pub keep_old_image: bool,
}

/// A typed column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Column name in Arrow, Parquet and Athena: `[a-z0-9_]+`, unique in the table.
    pub name: String,
    /// Where its value comes from.
    pub source: ColumnSource,
    /// Type, with nested types, formats and field ids.
    pub ty: ColumnType,
    /// What is done with the clear value.
    pub transform: Option<Transform>,
    /// What happens to a record whose value does not fit.
    pub on_mismatch: OnMismatch,
    /// `false`: a value held inexactly (not a mismatch) is knowingly left out of `_rest`.
    pub lossless: bool,
    /// Stable Parquet field id.
    pub field_id: i32,
}

/// Where the value of a column comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnSource {
    /// Capture with this index in [`Matcher::captures`].
    Capture(usize),
    /// An attribute of the item.
    Attribute(AttributeName),
}

/// Which attribute fills a column or struct member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeName {
    /// Only the attribute of exactly this name (`attribute = "…"`).
    Exact(String),
    /// The attribute of exactly this name (the column's, in the table's `attribute_case`), else the
    /// one that `naming::column_name` turns into the same column name.
    Named(String),
}

impl AttributeName {
    /// The name as written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Exact(name) | Self::Named(name) => name,
        }
    }

    /// Whether an attribute of this name can be the one meant.
    pub fn may_take(&self, attribute: &str) -> bool {
        match self {
            Self::Exact(name) => name == attribute,
            Self::Named(name) => {
                name == attribute
                    || crate::naming::column_name(attribute) == crate::naming::column_name(name)
            }
        }
    }
}

/// Type of a column or of a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnType {
    /// `BOOL`.
    Boolean,
    /// `N`, integral, 32 bits signed.
    Int,
    /// `N`, integral, 64 bits signed.
    Bigint,
    /// `N` as the nearest 64-bit float. Exact only if its shortest decimal is the number.
    Double,
    /// `N` with at most `precision - scale` integer and `scale` fraction digits.
    Decimal {
        /// Total digits, 1 to 38.
        precision: u8,
        /// Fraction digits, 0 to `precision`.
        scale: i8,
    },
    /// `S`, or with [`StringFormat::Number`] an `N` as canonical text.
    String(StringFormat),
    /// `B`.
    Binary,
    /// Calendar day.
    Date(TimeFormat),
    /// Instant, milliseconds, UTC.
    Timestamp(TimeFormat),
    /// `L`; also takes a set, inexactly.
    Array(Box<Child>),
    /// `SS`, `NS` or `BS` by the type of its elements; becomes an array sorted by value.
    /// The element is `String(Text)`, `Int`, `Bigint`, `Double`, `Decimal` or `Binary`.
    Set(Box<Child>),
    /// `M` whose names are data.
    Map {
        /// Field id of the key.
        key_id: i32,
        /// Values.
        value: Box<Child>,
    },
    /// `M` whose names are known.
    Struct(Vec<Member>),
    /// Any AttributeValue as canonical DynamoDB JSON text.
    Json,
}

/// Element of an array or set, or value of a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Child {
    /// Type.
    pub ty: ColumnType,
    /// Stable Parquet field id.
    pub field_id: i32,
}

/// Member of a struct.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Field name, `[a-z0-9_]+`.
    pub name: String,
    /// Which map member fills it.
    pub attribute: AttributeName,
    /// Type.
    pub ty: ColumnType,
    /// Stable Parquet field id.
    pub field_id: i32,
}

/// What a `string` column reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringFormat {
    /// `S`.
    Text,
    /// `N`, as canonical plain decimal text (`format = "number"`).
    Number,
}

/// How an instant or a day is spelled in the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeFormat {
    /// `S`. Timestamp: reproduced as `YYYY-MM-DDTHH:MM:SS[.mmm]Z` (fraction only when not zero);
    /// date: `YYYY-MM-DD`.
    Iso8601,
    /// `N`, seconds since 1970-01-01 UTC; a date counts whole days' seconds.
    EpochSeconds,
    /// `N`, milliseconds.
    EpochMillis,
    /// `N`, microseconds.
    EpochMicros,
    /// `S`, exactly this chrono `strftime` pattern.
    Pattern(String),
}

/// What is done with the clear value of a column; it is then nowhere in the table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// Left out of the lake: no column, not in `_rest`, not in `_old`.
    Drop,
    /// The constant `***` when present. The column is `String(Text)`.
    Mask,
    /// Lower-case hex of HMAC-SHA-256 under the deployment's secret. The column is `String(Text)`.
    HmacSha256,
}

/// What happens to a record with a value that does not fit its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnMismatch {
    /// NULL in the column, the attribute whole in `_rest`, counted.
    #[default]
    Rest,
    /// The whole record goes to quarantine.
    Quarantine,
}

/// How items of an entity are recognised. All given conditions must hold.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matcher {
    /// Alternatives for the partition key's text; empty: any.
    pub partition_key: Vec<Template>,
    /// Alternatives for the sort key's text; empty: any.
    pub sort_key: Vec<Template>,
    /// Conditions on attributes.
    pub attributes: Vec<AttributeCondition>,
    /// Names of the captures of all templates, in order of first appearance.
    pub captures: Vec<String>,
    /// Higher wins where two entities could match one item.
    pub priority: i32,
}

/// A key template such as `ORDER#{order_date}#{order_id}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// As written.
    pub text: String,
    /// Parsed.
    pub segments: Vec<Segment>,
    /// A capture never spans this; empty: captures span everything.
    pub separator: String,
}

/// Part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// Exactly this text.
    Literal(String),
    /// One or more characters.
    Capture {
        /// Index in [`Matcher::captures`]; `None` for the anonymous `{_}`.
        index: Option<usize>,
        /// What the text must look like for the template to match.
        kind: CaptureKind,
    },
}

/// What captured text must look like for its template to match (`{n:int}`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureKind {
    /// One or more characters, none of them (part of) the separator.
    Any,
    /// `{name*}`: one or more characters, separators too.
    Rest,
    /// `{name:int}`: ASCII digits.
    Int,
    /// `{name:date}`: `YYYY-MM-DD`.
    Date,
    /// `{name:uuid}`: 8-4-4-4-12 hex digits.
    Uuid,
    /// `{name:ulid}`: 26 Crockford base32 characters.
    Ulid,
}

/// Condition on one top-level attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttributeCondition {
    /// Attribute name, exactly.
    pub attribute: String,
    /// What it must be.
    pub test: AttributeTest,
}

/// What an attribute must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeTest {
    /// Equal to one of these.
    OneOf(Vec<Scalar>),
    /// Present (`true`) or absent (`false`).
    Exists(bool),
    /// `S` that begins with this.
    Prefix(String),
    /// `S` that ends with this.
    Suffix(String),
}

/// A value an attribute is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// `S`.
    S(String),
    /// `N` in canonical plain decimal form.
    N(String),
    /// `BOOL`.
    Bool(bool),
}

/// What the router sees of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeView<'a> {
    /// `S`, unescaped.
    S(&'a str),
    /// `N` in canonical plain decimal form.
    N(&'a str),
    /// `BOOL`.
    Bool(bool),
    /// Any other type.
    Other,
}
