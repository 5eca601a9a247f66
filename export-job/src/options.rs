//! What the caller may choose, and how it is told of progress.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use dynalake_schemas::Catalog;

/// Settings of a conversion.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// Data files converted at once. `None`: one per CPU core.
    pub workers: Option<NonZeroUsize>,
    /// Megabytes of decoded rows held in memory, all workers together. Peak memory of the process
    /// is about three times this (sorting and encoding make copies of one table's rows at a time).
    pub memory_mb: usize,
    /// Size in megabytes at which an object is closed and the table's next one begun.
    pub object_mb: usize,
    /// Decompressed bytes of a data file that are converted at a time; the spool holds the objects of
    /// one such part per worker. `None`: all. A plan of an earlier run keeps its own number.
    pub part_bytes: Option<u64>,
    /// Name of the source table, where it differs from `lake.toml` (one name per stage).
    pub source_table: Option<String>,
    /// Folder for objects under construction; they go into a temporary folder within. It needs
    /// room for the Parquet of `workers` data files. `None`: the system's temporary folder.
    pub spool: Option<PathBuf>,
    /// Start over where the lake holds this export converted with other schemas, secrets or
    /// software: it is no baseline any more, and its objects and state are deleted first.
    pub replace: bool,
    /// Who runs the conversion, for the lock of a lake's state.
    pub holder: String,
    /// When it was begun, milliseconds since 1970-01-01 UTC; goes into the lock only.
    pub now_ms: i64,
    /// Test hook: stop before this many objects have been put.
    #[doc(hidden)]
    pub stop_after_puts: Option<u64>,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            workers: None,
            memory_mb: 256,
            object_mb: 256,
            part_bytes: None,
            source_table: None,
            spool: None,
            replace: false,
            holder: "dynalake".to_owned(),
            now_ms: 0,
            stop_after_puts: None,
        }
    }
}

impl ConvertOptions {
    /// The table that exports must be of, where one is named.
    pub(crate) fn source_table<'a>(&'a self, catalog: &'a Catalog) -> Option<&'a str> {
        let table = self.source_table.as_ref();
        table.or(catalog.source.table.as_ref()).map(String::as_str)
    }
}

/// Is told how far a conversion is. Called from several threads.
pub trait Progress: Send + Sync {
    /// Everything was found and nothing is refused so far: what lies ahead, files converted by an
    /// earlier run included. `bytes` are compressed.
    fn planned(&self, files: u64, items: u64, bytes: u64) {
        let _ = (files, items, bytes);
    }

    /// So many more items were decoded from so many more compressed bytes.
    fn advanced(&self, items: u64, bytes: u64) {
        let _ = (items, bytes);
    }

    /// A data file is whole in the lake. `resumed`: an earlier run did it.
    fn file_done(&self, name: &str, resumed: bool) {
        let _ = (name, resumed);
    }
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {}
