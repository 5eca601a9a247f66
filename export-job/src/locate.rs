//! Reads the manifests of a source and finds every data file, before anything is converted.
//!
//! Real exports name data files by their key in the bucket, prefix included; AWS's documentation
//! leaves the prefix out; an export that was copied has them elsewhere. So several places are tried,
//! nearest to the manifests first: a copy is read from the copy, also within the same bucket. What
//! is found is proven by its MD5 later.

use bytes::Bytes;
use dynalake_pipeline::store::{StoreErrorKind, check_key};
use futures::{StreamExt, TryStreamExt};

use crate::error::{ExportError, RefusalKind};
use crate::manifest::{
    DataFile, FILES_NAME, SUMMARY_NAME, Summary, checksum_names, parse_files, verify_checksum,
};
use crate::source::Source;

/// Look-ups at once.
const LOOKUPS: usize = 16;

/// An export that can be read: manifests verified, data files found.
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) summary: Summary,
    /// In the order of their names.
    pub(crate) files: Vec<Located>,
    pub(crate) warnings: Vec<String>,
}

/// A data file and where it is.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub(crate) file: DataFile,
    /// Key in the source's store.
    pub(crate) key: String,
    /// Compressed bytes.
    pub(crate) size: u64,
    /// Path or address, for messages.
    pub(crate) address: String,
}

/// Reads and verifies the summary of an export, to see what it is. `table` is the table that the
/// schemas are for, if they name one.
///
/// # Errors
/// There is no export, its summary is not what AWS writes, or it is one of another table.
pub async fn read_summary(source: &Source, table: Option<&str>) -> Result<Summary, ExportError> {
    summary(source, table, &mut Vec::new()).await
}

async fn summary(
    source: &Source,
    table: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Summary, ExportError> {
    let summary_key = source.key(SUMMARY_NAME);
    let address = source.address(&summary_key);
    let bytes = source.store().get(&summary_key).await?.ok_or_else(|| {
        ExportError::refused(
            RefusalKind::NoExport,
            address.clone(),
            "there is no such file",
            "give the folder that holds manifest-summary.json (…/AWSDynamoDB/<export id>/); \
             an export that still runs has none yet",
        )
    })?;
    verify(source, &summary_key, &bytes, warnings).await?;
    let summary = Summary::parse(&bytes, &address)?;
    if let Some(table) = table
        && table != summary.table
    {
        return Err(ExportError::refused(
            RefusalKind::OtherTable,
            address,
            format!(
                "this is an export of table `{}`, the schemas are for `{table}`",
                summary.table
            ),
            "give an export of that table, or the folder with this table's schemas",
        ));
    }
    Ok(summary)
}

/// Reads and verifies the manifests and finds the data files. `table` is the table that the schemas
/// are for, if they name one.
pub(crate) async fn open(source: &Source, table: Option<&str>) -> Result<Export, ExportError> {
    let mut warnings = Vec::new();
    let summary = summary(source, table, &mut warnings).await?;
    let (files_key, bytes) = files_manifest(source, &summary).await?;
    verify(source, &files_key, &bytes, &mut warnings).await?;
    let files_address = source.address(&files_key);
    let files = parse_files(&bytes, &files_address)?;
    check_format(&summary, &files, &files_address)?;
    let listed = files
        .iter()
        .try_fold(0u64, |sum, file| sum.checked_add(file.item_count));
    if listed != Some(summary.item_count) {
        return Err(ExportError::refused(
            RefusalKind::CountMismatch,
            files_address,
            format!(
                "its data files hold {} items but `{SUMMARY_NAME}` says {}",
                listed.map_or("too many".to_owned(), |listed| listed.to_string()),
                summary.item_count
            ),
            "the manifests are not of one export; copy the export again",
        ));
    }
    let files = futures::stream::iter(files)
        .map(|file| find(source, &summary, file))
        .buffered(LOOKUPS)
        .try_collect()
        .await?;
    Ok(Export {
        summary,
        files,
        warnings,
    })
}

fn check_format(summary: &Summary, files: &[DataFile], address: &str) -> Result<(), ExportError> {
    let Some(other) = files.iter().find(|file| file.format != summary.format) else {
        return Ok(());
    };
    Err(ExportError::refused(
        RefusalKind::OtherFormat,
        address,
        format!(
            "it lists `{}` but `{SUMMARY_NAME}` says that the format is {}, whose files end in `{}`",
            other.name,
            summary.format.as_str(),
            summary.format.suffix()
        ),
        "the manifests are not of one export; copy the export again",
    ))
}

async fn files_manifest(
    source: &Source,
    summary: &Summary,
) -> Result<(String, Bytes), ExportError> {
    let keys = places(
        source,
        summary,
        &summary.manifest_files_key,
        source.key(FILES_NAME),
    );
    if let Some((key, _)) = first_there(source, &keys).await?
        && let Some(bytes) = source.store().get(&key).await?
    {
        return Ok((key, bytes));
    }
    Err(missing(source, FILES_NAME, &keys))
}

async fn find(source: &Source, summary: &Summary, file: DataFile) -> Result<Located, ExportError> {
    let keys = places(
        source,
        summary,
        &file.key,
        source.key(&format!("data/{}", file.name)),
    );
    match first_there(source, &keys).await? {
        Some((key, size)) => {
            let address = source.address(&key);
            Ok(Located {
                file,
                key,
                size,
                address,
            })
        }
        None => Err(missing(source, &file.name, &keys)),
    }
}

/// The first of several keys at which there is an object, and its size.
async fn first_there(
    source: &Source,
    keys: &[String],
) -> Result<Option<(String, u64)>, ExportError> {
    let mut denied = None;
    for key in keys {
        match source.store().head(key).await {
            Ok(Some(meta)) => return Ok(Some((key.clone(), meta.size))),
            Ok(None) => {}
            // A role that may read the copy only is denied at the other places.
            Err(error) if error.kind() == StoreErrorKind::Denied => {
                denied.get_or_insert(error);
            }
            Err(error) => return Err(error.into()),
        }
    }
    denied.map_or(Ok(None), |error| Err(error.into()))
}

/// Keys at which a file may be, most likely first.
fn places(source: &Source, summary: &Summary, named: &str, nearest: String) -> Vec<String> {
    let prefixed = summary
        .s3_prefix
        .as_deref()
        .map(|prefix| format!("{}/{named}", prefix.trim_matches('/')));
    let mut keys = vec![nearest];
    for key in [source.beside(named), Some(named.to_owned()), prefixed]
        .into_iter()
        .flatten()
    {
        if check_key(&key).is_ok() && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Compares a manifest with its checksum file; without one, warns.
async fn verify(
    source: &Source,
    key: &str,
    bytes: &[u8],
    warnings: &mut Vec<String>,
) -> Result<(), ExportError> {
    for name in checksum_names(key) {
        if let Some(checksum) = source.store().get(&name).await? {
            return verify_checksum(
                bytes,
                &checksum,
                &source.address(key),
                &source.address(&name),
            );
        }
    }
    warnings.push(format!(
        "`{}` has no checksum file (.md5 or .checksum) and was not verified",
        source.address(key)
    ));
    Ok(())
}

fn missing(source: &Source, name: &str, keys: &[String]) -> ExportError {
    let tried: Vec<String> = keys
        .iter()
        .map(|key| format!("`{}`", source.address(key)))
        .collect();
    ExportError::refused(
        RefusalKind::MissingFile,
        name,
        format!("the file is not there; looked at {}", tried.join(", ")),
        "copy the whole folder of the export, its data files included",
    )
}
