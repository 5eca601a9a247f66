//! Objects of one data file under construction, on the local disk.
//!
//! In: sorted batches, each one row group of its table's current object. Out: finished files with
//! the keys they will have in the lake. An object is closed when it has reached the target size.
//! Files are opened only to append, so that hundreds of tables need no hundreds of open files.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dynalake_pipeline::encode::ObjectWriter;
use dynalake_pipeline::layout;
use dynalake_pipeline::pipeline::TableBatch;
use dynalake_schemas::{Catalog, Entity};
use tempfile::TempDir;

use crate::error::ExportError;

/// Bytes collected before a file is opened to append them.
const BUFFER: usize = 256 * 1024;

/// A finished object, not yet in the lake.
#[derive(Debug)]
pub(crate) struct Spooled {
    /// Lake table; empty for a quarantine object.
    pub(crate) table: String,
    /// Key in the lake.
    pub(crate) key: String,
    /// The file.
    pub(crate) path: PathBuf,
    /// Rows, or quarantine entries.
    pub(crate) rows: u64,
    /// Size.
    pub(crate) bytes: u64,
}

/// What goes into the keys.
#[derive(Debug, Clone)]
pub(crate) struct Naming {
    /// Folder of the lake.
    pub(crate) folder: &'static str,
    /// Value of the partition `export=…`.
    pub(crate) label: String,
    /// The export's id and the data file's name: makes the object's name.
    pub(crate) data_file: String,
    /// Number of each table's first object.
    pub(crate) first: u32,
}

/// Objects of one data file.
pub(crate) struct Spool<'a> {
    catalog: &'a Catalog,
    naming: Naming,
    /// Target size of an object, bytes.
    object_bytes: u64,
    folder: TempDir,
    open: BTreeMap<usize, Open>,
    parts: BTreeMap<usize, u32>,
    done: Vec<Spooled>,
}

struct Open {
    writer: ObjectWriter<Appending>,
    key: String,
    path: PathBuf,
}

impl<'a> Spool<'a> {
    /// A spool in a temporary folder within `root`.
    pub(crate) fn new(
        catalog: &'a Catalog,
        naming: Naming,
        object_bytes: u64,
        root: Option<&Path>,
    ) -> Result<Self, ExportError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("dynalake-export-");
        let folder = match root {
            Some(root) => builder.tempdir_in(root),
            None => builder.tempdir(),
        };
        let folder = folder.map_err(|source| ExportError::Spool {
            path: root.map_or_else(|| PathBuf::from("temporary folder"), Path::to_path_buf),
            source,
        })?;
        Ok(Self {
            catalog,
            naming,
            object_bytes,
            folder,
            open: BTreeMap::new(),
            parts: BTreeMap::new(),
            done: Vec::new(),
        })
    }

    /// Adds a batch as a row group to its table's object.
    pub(crate) fn write(&mut self, batch: &TableBatch) -> Result<(), ExportError> {
        let Some(entity) = self.catalog.entities.get(batch.entity) else {
            return Err(self.encode_error("?", "a batch of an unknown entity"));
        };
        let mut open = match self.open.remove(&batch.entity) {
            Some(open) => open,
            None => self.begin(batch.entity, entity)?,
        };
        open.writer
            .write(&batch.batch)
            .map_err(|error| self.encode_error(&entity.table, &error))?;
        let written = u64::try_from(open.writer.bytes_written()).unwrap_or(u64::MAX);
        if written >= self.object_bytes {
            self.close(batch.entity, open)
        } else {
            self.open.insert(batch.entity, open);
            Ok(())
        }
    }

    /// Begins a table's next object.
    fn begin(&mut self, index: usize, entity: &Entity) -> Result<Open, ExportError> {
        let Naming {
            folder,
            label,
            data_file,
            first,
        } = &self.naming;
        let part = self.parts.entry(index).or_insert(*first);
        let path = self.folder.path().join(format!("{index}-{part}.parquet"));
        let key = layout::export_key(folder, &entity.table, label, data_file, *part);
        *part += 1;
        let writer = ObjectWriter::new(entity, Appending::new(path.clone()))
            .map_err(|error| self.encode_error(&entity.table, error))?;
        Ok(Open { writer, key, path })
    }

    /// Adds a finished object that is not Parquet (quarantine).
    pub(crate) fn add_bytes(
        &mut self,
        key: String,
        bytes: &[u8],
        rows: u64,
    ) -> Result<(), ExportError> {
        let path = self.folder.path().join(format!("q{}", self.done.len()));
        std::fs::write(&path, bytes).map_err(|source| ExportError::Spool {
            path: path.clone(),
            source,
        })?;
        let bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.done.push(Spooled {
            table: String::new(),
            key,
            path,
            rows,
            bytes,
        });
        Ok(())
    }

    /// Closes all objects. The files live as long as the folder that comes with them.
    pub(crate) fn finish(mut self) -> Result<(Vec<Spooled>, TempDir), ExportError> {
        while let Some((entity, open)) = self.open.pop_first() {
            self.close(entity, open)?;
        }
        self.done.sort_by(|a, b| a.key.cmp(&b.key));
        Ok((self.done, self.folder))
    }

    fn close(&mut self, entity: usize, open: Open) -> Result<(), ExportError> {
        let table = self
            .catalog
            .entities
            .get(entity)
            .map_or("?", |entity| entity.table.as_str());
        let (file, stats) = open
            .writer
            .finish()
            .map_err(|error| self.encode_error(table, &error))?;
        let bytes = file.finish().map_err(|source| ExportError::Spool {
            path: open.path.clone(),
            source,
        })?;
        self.done.push(Spooled {
            table: table.to_owned(),
            key: open.key,
            path: open.path,
            rows: stats.rows,
            bytes,
        });
        Ok(())
    }

    fn encode_error(&self, table: &str, error: impl std::fmt::Display) -> ExportError {
        ExportError::Encode {
            table: table.to_owned(),
            file: self.naming.data_file.clone(),
            message: error.to_string(),
        }
    }
}

/// A file that is open only while it is written to.
struct Appending {
    path: PathBuf,
    buffer: Vec<u8>,
    bytes: u64,
}

impl Appending {
    fn new(path: PathBuf) -> Self {
        Self {
            path,
            buffer: Vec::new(),
            bytes: 0,
        }
    }

    fn append(&mut self) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path)?;
        file.write_all(&self.buffer)?;
        self.bytes += u64::try_from(self.buffer.len()).unwrap_or(u64::MAX);
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<u64> {
        self.append()?;
        Ok(self.bytes)
    }
}

impl Write for Appending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER {
            self.append()?;
        }
        Ok(bytes.len())
    }

    /// Nothing: what is not yet appended is written by `finish`, and nobody reads before.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
