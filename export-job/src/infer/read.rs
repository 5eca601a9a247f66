//! Where items come from: an export, files of lines (items, `{"Item":…}`, changes), stream events.

use std::io::{self, BufRead, BufReader, Read};

use dynalake_pipeline::json;
use dynalake_pipeline::store::Store;
use flate2::bufread::MultiGzDecoder;
use tokio::runtime::Handle;

use super::{InferError, Inference, Inferred, Then};
use crate::error::{ExportError, RefusalKind};
use crate::file::Blocking;
use crate::format::{DataFormat, LineReader};
use crate::locate;
use crate::manifest::SUMMARY_NAME;
use crate::source::Source;

/// Longest line, and largest document of several lines, in bytes.
const LONGEST: u64 = 64 << 20;
/// Endings of files that may hold items.
const ENDINGS: [&str; 6] = [".json", ".jsonl", ".ndjson", ".ion", ".gz", ".txt"];

/// Why nothing was inferred.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The source cannot be read.
    #[error(transparent)]
    Source(#[from] ExportError),
    /// What was read says too little.
    #[error(transparent)]
    Infer(#[from] InferError),
}

/// A file to read.
#[derive(Debug, Clone)]
pub struct ItemFile {
    key: String,
    /// Stored bytes.
    pub size: u64,
}

/// The files of a source, and the table's name where they are an export.
#[derive(Debug, Clone)]
pub struct ItemFiles {
    store: Store,
    /// In the order of their names.
    pub files: Vec<ItemFile>,
    /// Table that the export is of.
    pub table: Option<String>,
}

/// Finds the files: those of the export whose manifests lie at `key`, else the file `key`, else all files
/// below the folder `key` that may hold items.
///
/// # Errors
/// Nothing is there, or the export is not whole.
pub async fn find(store: Store, key: &str) -> Result<ItemFiles, ExportError> {
    let folder = key.strip_suffix(SUMMARY_NAME).unwrap_or(key);
    let folder = folder.trim_matches('/').to_owned();
    let under = if folder.is_empty() {
        String::new()
    } else {
        format!("{folder}/")
    };
    if store
        .head(&format!("{under}{SUMMARY_NAME}"))
        .await?
        .is_some()
    {
        let source = Source::in_store(store.clone(), &folder);
        return export(&source).await;
    }
    let found = if key.is_empty() {
        None
    } else {
        store.head(key).await?
    };
    let mut files: Vec<ItemFile> = match found {
        Some(file) => vec![ItemFile {
            key: key.to_owned(),
            size: file.size,
        }],
        None => store
            .list(&under)
            .await?
            .into_iter()
            .filter(|file| ENDINGS.iter().any(|ending| file.key.ends_with(ending)))
            .filter(|file| {
                !file
                    .key
                    .rsplit('/')
                    .next()
                    .unwrap_or_default()
                    .starts_with("manifest")
            })
            .map(|file| ItemFile {
                key: file.key,
                size: file.size,
            })
            .collect(),
    };
    if files.is_empty() {
        return Err(ExportError::refused(
            RefusalKind::NoExport,
            store.address(key),
            "there is no file of items",
            "give an export's folder (…/AWSDynamoDB/<export id>/), or files of items in DynamoDB JSON",
        ));
    }
    files.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(ItemFiles {
        store,
        files,
        table: None,
    })
}

/// The files of an export, which is verified as for a conversion.
///
/// # Errors
/// There is none, or it is not whole.
pub async fn export(source: &Source) -> Result<ItemFiles, ExportError> {
    let export = locate::open(source, None).await?;
    Ok(ItemFiles {
        store: source.store().clone(),
        files: export
            .files
            .into_iter()
            .map(|file| ItemFile {
                key: file.key,
                size: file.size,
            })
            .collect(),
        table: Some(export.summary.table),
    })
}

/// Shows all items to an inference, as often as it wants. `passed` is told the bytes of each file that
/// was read, and in which pass. Blocks; needs a runtime of several threads.
///
/// # Errors
/// A file cannot be read, or nothing can be inferred.
pub fn infer(
    files: &ItemFiles,
    mut inference: Inference,
    runtime: &Handle,
    passed: &mut dyn FnMut(u32, u64),
) -> Result<Inferred, ReadError> {
    let mut pass = 0;
    loop {
        pass += 1;
        for file in &files.files {
            let reader = runtime
                .block_on(files.store.open_read(&file.key))
                .map_err(ExportError::from)?;
            let blocking = Blocking {
                reader,
                runtime: runtime.clone(),
            };
            let go_on = read(blocking, &mut inference).map_err(|error| {
                ExportError::refused(
                    RefusalKind::NoExport,
                    files.store.address(&file.key),
                    error.to_string(),
                    "give files of lines in DynamoDB JSON or Ion, plain or gzipped",
                )
            })?;
            passed(pass, file.size);
            if !go_on {
                break;
            }
        }
        if inference.next_pass()? == Then::Done {
            return Ok(inference.finish()?);
        }
    }
}

fn read(file: impl Read, inference: &mut Inference) -> io::Result<bool> {
    let mut file = BufReader::with_capacity(256 << 10, file);
    let is_gzip = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    if is_gzip {
        lines(BufReader::new(MultiGzDecoder::new(file)), inference)
    } else {
        lines(file, inference)
    }
}

fn lines(mut file: impl BufRead, inference: &mut Inference) -> io::Result<bool> {
    let mut ion = LineReader::new(DataFormat::Ion);
    let mut line = Vec::new();
    let mut is_first = true;
    loop {
        line.clear();
        let length = (&mut file).take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(true);
        }
        if u64::try_from(length).unwrap_or(LONGEST) >= LONGEST {
            return Err(io::Error::other("a line has more than 64 MiB"));
        }
        let mut text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        if is_first && !text.starts_with(b"$ion") && json::members(text).is_err() {
            // A document of several lines.
            (&mut file).take(LONGEST).read_to_end(&mut line)?;
            text = line.trim_ascii();
        }
        is_first = false;
        let go_on = if text.starts_with(b"$ion") {
            match ion.json(text) {
                Ok(text) => document(text, inference),
                Err(_) => unreadable(inference),
            }
        } else {
            document(text, inference)
        };
        if !go_on {
            return Ok(false);
        }
    }
}

fn unreadable(inference: &mut Inference) -> bool {
    inference.unreadable();
    true
}

/// An item, a line of an export, a stream record, an event, or an array of these.
fn document(text: &[u8], inference: &mut Inference) -> bool {
    if text.starts_with(b"[") {
        let Ok(elements) = json::elements(text) else {
            return unreadable(inference);
        };
        return elements.into_iter().all(|it| document(it, inference));
    }
    let Ok(members) = json::members(text) else {
        return unreadable(inference);
    };
    let member = |wanted: &str| {
        let found = members.iter().find(|(name, _)| name == wanted);
        found
            .map(|(_, value)| *value)
            .filter(|value| *value != b"null")
    };
    let is_array = |value: &&[u8]| value.starts_with(b"[");
    if let Some(records) = member("Records").or(member("Items")).filter(is_array) {
        return document(records, inference);
    }
    if let Some(record) = member("dynamodb") {
        return document(record, inference);
    }
    if let Some(image) = member("Item").or(member("NewImage")).or(member("OldImage")) {
        return inference.item(image);
    }
    if member("Keys").is_some() {
        // A delete tells nothing but keys.
        return true;
    }
    inference.item(text)
}
