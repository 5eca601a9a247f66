//! What an inference says of itself.

use serde::Serialize;

/// The evidence.
#[derive(Debug, Clone, Serialize)]
pub struct InferReport {
    /// Items seen.
    pub items: u64,
    /// Lines or items that could not be read, or have no keys.
    pub unreadable: u64,
    /// Partition key attribute.
    pub partition_key: String,
    /// Sort key attribute.
    pub sort_key: Option<String>,
    /// Whether the keys were guessed.
    pub keys_guessed: bool,
    /// The attribute that tells the type.
    pub type_attribute: Option<String>,
    /// Separator of key parts.
    pub separator: String,
    /// Entity types.
    pub entities: Vec<EntityReport>,
    /// Items that no entity takes.
    pub unmatched: u64,
    /// Alternatives that were turned down, and why.
    pub rejected: Vec<String>,
}

/// The evidence for one entity type.
#[derive(Debug, Clone, Serialize)]
pub struct EntityReport {
    /// Entity and table.
    pub name: String,
    /// Items.
    pub items: u64,
    /// Bytes of the items' JSON text.
    pub bytes: u64,
    /// Columns.
    pub columns: usize,
    /// `high`, `medium` or `low`.
    pub confidence: &'static str,
    /// What tells its items.
    pub by: String,
    /// Shape of its partition keys, data masked.
    pub partition_key: String,
    /// Shape of its sort keys, data masked.
    pub sort_key: String,
}
