//! The two manifests of an export: `manifest-summary.json` and `manifest-files.json`.
//!
//! Input: their bytes. Output: [`Summary`] and [`DataFile`]s, or a refusal that names the file and
//! the field. Unknown fields are ignored. Formats: the developer guide's page on export output,
//! checked against real exports of 2020 to 2026.

use std::collections::{BTreeMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use dynalake_pipeline::layout;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use crate::error::{ExportError, RefusalKind};
use crate::format::DataFormat;

/// Name of the summary in an export's folder.
pub const SUMMARY_NAME: &str = "manifest-summary.json";
/// Name of the list of data files in an export's folder.
pub const FILES_NAME: &str = "manifest-files.json";

/// Versions of the summary. `2020-06-30` came with full exports, `2023-08-01` with incremental ones.
const VERSIONS: [&str; 2] = ["2020-06-30", "2023-08-01"];

/// What an export shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportKind {
    /// The whole table at an instant.
    Full {
        /// The point in time, milliseconds since 1970-01-01 UTC.
        export_time: i64,
    },
    /// The net effect per item of all writes in a window of time.
    Incremental {
        /// Begin of the window, inclusive, milliseconds since 1970-01-01 UTC.
        from: i64,
        /// End of the window, exclusive, milliseconds since 1970-01-01 UTC.
        to: i64,
        /// Which images its lines have.
        view: ExportView,
    },
}

/// Which images the lines of an incremental export have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportView {
    /// The item at the window's end.
    NewImage,
    /// The item at the window's end, and at its begin.
    NewAndOldImages,
}

impl ExportView {
    /// As the export API and the summary spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NewImage => "NEW_IMAGE",
            Self::NewAndOldImages => "NEW_AND_OLD_IMAGES",
        }
    }
}

impl ExportKind {
    /// The instant whose state is known with this export: a full export's time, the end of an
    /// incremental one's window. Milliseconds since 1970-01-01 UTC.
    pub fn at_ms(self) -> i64 {
        match self {
            Self::Full { export_time } => export_time,
            Self::Incremental { to, .. } => to,
        }
    }

    /// Value of the partition `export=…` that an export's objects go to: `YYYYMMDDTHHMMSSZ` of a
    /// full one, `<from>-<to>` of an incremental one. `None` outside the years 0 to 9999.
    pub fn label(self) -> Option<String> {
        match self {
            Self::Full { export_time } => layout::export_label(export_time),
            Self::Incremental { from, to, .. } => Some(format!(
                "{}-{}",
                layout::export_label(from)?,
                layout::export_label(to)?
            )),
        }
    }
}

/// What `manifest-summary.json` says of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// The export's ARN.
    pub export_arn: String,
    /// Last part of the ARN: 14 digits (start, ms), `-`, 8 hex digits.
    pub export_id: String,
    /// The source table's ARN.
    pub table_arn: String,
    /// The source table's name.
    pub table: String,
    /// What the export shows.
    pub kind: ExportKind,
    /// [`ExportKind::label`].
    pub label: String,
    /// Bucket that was exported to.
    pub s3_bucket: Option<String>,
    /// Prefix given at the export's request.
    pub s3_prefix: Option<String>,
    /// Key of `manifest-files.json` in the bucket that was exported to.
    pub manifest_files_key: String,
    /// Format of the data files.
    pub format: DataFormat,
    /// Items of the whole export.
    pub item_count: u64,
    /// Size that was billed, bytes.
    pub billed_bytes: u64,
}

/// A line of `manifest-files.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Key as written: with the prefix in real exports, without it in AWS's documentation.
    pub key: String,
    /// Last part of the key, unique in the export.
    pub name: String,
    /// Its format, by its name.
    pub format: DataFormat,
    /// Items in it.
    pub item_count: u64,
    /// MD5 of the gzip bytes.
    pub md5: [u8; 16],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSummary {
    version: Option<String>,
    export_arn: Option<String>,
    table_arn: Option<String>,
    export_time: Option<String>,
    export_from_time: Option<String>,
    export_to_time: Option<String>,
    output_view: Option<String>,
    s3_bucket: Option<String>,
    s3_prefix: Option<String>,
    #[serde(rename = "manifestFilesS3Key")]
    manifest_files_key: Option<String>,
    billed_size_bytes: Option<u64>,
    item_count: Option<u64>,
    output_format: Option<String>,
    export_type: Option<String>,
    /// All others, for what they say of a filter.
    #[serde(flatten)]
    others: BTreeMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDataFile {
    item_count: Option<u64>,
    md5_checksum: Option<String>,
    #[serde(rename = "dataFileS3Key")]
    key: Option<String>,
}

impl Summary {
    /// Reads a summary. `file` is what errors call it.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, ExportError> {
        let raw: RawSummary = serde_json::from_slice(bytes).map_err(|error| {
            bad(
                file,
                format!("not a summary manifest ({})", position(&error, 0)),
            )
        })?;
        raw.refuse_unknown(file)?;
        let kind = raw.kind(file)?;
        let format = raw.format(file)?;
        let field = |name: &str, value: Option<String>| {
            value
                .filter(|text| !text.is_empty())
                .ok_or_else(|| missing(file, name))
        };
        let table_arn = field("tableArn", raw.table_arn)?;
        let table = table_of(&table_arn).ok_or_else(|| {
            bad(
                file,
                "`tableArn` is not the ARN of a DynamoDB table".to_owned(),
            )
        })?;
        let table = table.to_owned();
        let export_arn = field("exportArn", raw.export_arn)?;
        let export_id = export_id_of(&export_arn).ok_or_else(|| {
            bad(
                file,
                "`exportArn` does not end in `/export/<id>`".to_owned(),
            )
        })?;
        let export_id = export_id.to_owned();
        let label = kind
            .label()
            .ok_or_else(|| bad(file, "its time is not a time of our era".to_owned()))?;
        Ok(Self {
            export_arn,
            export_id,
            table_arn,
            table,
            kind,
            label,
            s3_bucket: raw.s3_bucket.filter(|bucket| !bucket.is_empty()),
            s3_prefix: raw.s3_prefix.filter(|prefix| !prefix.is_empty()),
            manifest_files_key: field("manifestFilesS3Key", raw.manifest_files_key)?,
            format,
            item_count: raw.item_count.ok_or_else(|| missing(file, "itemCount"))?,
            billed_bytes: raw.billed_size_bytes.unwrap_or(0),
        })
    }
}

impl RawSummary {
    /// Exports that are whole and well-formed, but of a form that is not converted here.
    fn refuse_unknown(&self, file: &str) -> Result<(), ExportError> {
        match self.version.as_deref() {
            None => return Err(missing(file, "version")),
            Some(version) if VERSIONS.contains(&version) => {}
            Some(version) => {
                return Err(ExportError::refused(
                    RefusalKind::UnknownVersion,
                    file,
                    format!("unknown manifest version `{}`", shown(version)),
                    format!(
                        "known versions are {}; use a newer dynalake",
                        VERSIONS.join(" and ")
                    ),
                ));
            }
        }
        match self.filter() {
            None => Ok(()),
            Some(name) => Err(ExportError::refused(
                RefusalKind::Filtered,
                file,
                format!(
                    "the export was asked for with a filter (`{}`): it holds a part of the items, or \
                     a part of each",
                    shown(name)
                ),
                "give an export without a filter: all others would be taken for deleted",
            )),
        }
    }

    /// The member that tells of a filter. AWS documents the request's `FilterSpecification` (a key
    /// condition, a filter and a projection, of full and incremental exports) but not how a summary
    /// spells it, so each name that it could have counts.
    fn filter(&self) -> Option<&str> {
        let names = ["filter", "keycondition", "projection"];
        let empty = |value: &serde_json::Value| match value {
            serde_json::Value::Null | serde_json::Value::Bool(false) => true,
            serde_json::Value::String(text) => text.is_empty(),
            serde_json::Value::Object(members) => members.is_empty(),
            serde_json::Value::Array(elements) => elements.is_empty(),
            _ => false,
        };
        let tells = |name: &String| {
            let name = name.to_ascii_lowercase();
            names.iter().any(|start| name.starts_with(start))
        };
        let mut members = self.others.iter();
        let found = members.find(|(name, value)| tells(name) && !empty(value));
        found.map(|(name, _)| name.as_str())
    }

    fn format(&self, file: &str) -> Result<DataFormat, ExportError> {
        let name = self.output_format.as_deref();
        let name = name.ok_or_else(|| missing(file, "outputFormat"))?;
        DataFormat::of_manifest(name)
            .ok_or_else(|| bad(file, format!("unknown `outputFormat` `{}`", shown(name))))
    }

    fn kind(&self, file: &str) -> Result<ExportKind, ExportError> {
        // Summaries of full exports have no type; those of 2020 do not know it.
        let incremental = match self.export_type.as_deref() {
            None => self.export_from_time.is_some(),
            Some("FULL_EXPORT") => false,
            Some("INCREMENTAL_EXPORT") => true,
            Some(other) => {
                return Err(bad(
                    file,
                    format!("unknown `exportType` `{}`", shown(other)),
                ));
            }
        };
        if !incremental {
            return Ok(ExportKind::Full {
                export_time: instant(self.export_time.as_deref(), "exportTime", file)?,
            });
        }
        let from = instant(self.export_from_time.as_deref(), "exportFromTime", file)?;
        let to = instant(self.export_to_time.as_deref(), "exportToTime", file)?;
        if from >= to {
            return Err(bad(
                file,
                "`exportToTime` is not after `exportFromTime`".to_owned(),
            ));
        }
        let view = match self.output_view.as_deref() {
            // The API's own help spells the first one NEW_IMAGES.
            Some("NEW_IMAGE" | "NEW_IMAGES") => ExportView::NewImage,
            Some("NEW_AND_OLD_IMAGES") => ExportView::NewAndOldImages,
            Some(other) => {
                return Err(bad(
                    file,
                    format!("unknown `outputView` `{}`", shown(other)),
                ));
            }
            None => return Err(missing(file, "outputView")),
        };
        Ok(ExportKind::Incremental { from, to, view })
    }
}

/// Milliseconds since 1970-01-01 UTC of a member that holds an ISO 8601 time.
fn instant(text: Option<&str>, name: &str, file: &str) -> Result<i64, ExportError> {
    let text = text
        .filter(|text| !text.is_empty())
        .ok_or_else(|| missing(file, name))?;
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.timestamp_millis())
        .map_err(|_| bad(file, format!("`{name}` is not an ISO 8601 time")))
}

/// Reads the list of data files, in the order of their names. `file` is what errors call it.
pub fn parse_files(bytes: &[u8], file: &str) -> Result<Vec<DataFile>, ExportError> {
    let mut files = Vec::new();
    let mut names = HashSet::new();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let number = index + 1;
        let at = |problem: &str| bad(file, format!("line {number}: {problem}"));
        let raw: RawDataFile = serde_json::from_slice(line).map_err(|error| {
            bad(
                file,
                format!("not a data file's entry ({})", position(&error, index)),
            )
        })?;
        let key = raw.key.ok_or_else(|| at("`dataFileS3Key` is missing"))?;
        let name = data_file_name(&key)
            .ok_or_else(|| at("`dataFileS3Key` is not the key of a data file"))?
            .to_owned();
        let format = DataFormat::of_file(&name)
            .ok_or_else(|| at("`dataFileS3Key` ends neither in `.json.gz` nor in `.ion.gz`"))?;
        let md5 = raw
            .md5_checksum
            .ok_or_else(|| at("`md5Checksum` is missing"))?;
        let md5 = parse_md5(&md5).ok_or_else(|| at("`md5Checksum` is not a base64 MD5"))?;
        let item_count = raw.item_count.ok_or_else(|| at("`itemCount` is missing"))?;
        if !names.insert(name.clone()) {
            return Err(at("the same data file is listed twice"));
        }
        files.push(DataFile {
            key,
            name,
            format,
            item_count,
            md5,
        });
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

/// Compares a manifest with the text of its checksum file (base64 of the MD5 of its bytes).
pub(crate) fn verify_checksum(
    bytes: &[u8],
    checksum: &[u8],
    file: &str,
    checksum_file: &str,
) -> Result<(), ExportError> {
    let text = String::from_utf8_lossy(checksum);
    let Some(expected) = parse_md5(text.trim()) else {
        return Err(ExportError::refused(
            RefusalKind::Checksum,
            checksum_file,
            "not the base64 text of an MD5",
            "copy the export again, or delete this file to go without the check",
        ));
    };
    let found: [u8; 16] = Md5::digest(bytes).into();
    if found == expected {
        return Ok(());
    }
    Err(ExportError::refused(
        RefusalKind::Checksum,
        file,
        format!(
            "its MD5 is {} but `{checksum_file}` says {}",
            STANDARD.encode(found),
            STANDARD.encode(expected)
        ),
        "the manifest was changed or damaged; copy the export again",
    ))
}

/// Names under which the checksum of a manifest has been seen: AWS's pages say `.checksum`, real
/// exports have `.md5`.
pub(crate) fn checksum_names(manifest: &str) -> [String; 4] {
    let stem = manifest.strip_suffix(".json").unwrap_or(manifest);
    [
        format!("{stem}.md5"),
        format!("{stem}.checksum"),
        format!("{manifest}.md5"),
        format!("{manifest}.checksum"),
    ]
}

/// Base64 text of an MD5.
pub(crate) fn md5_text(md5: &[u8; 16]) -> String {
    STANDARD.encode(md5)
}

/// Bytes as lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn parse_md5(text: &str) -> Option<[u8; 16]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Last part of a data file's key. It becomes part of object keys, so its alphabet is closed.
fn data_file_name(key: &str) -> Option<&str> {
    if key.split('/').any(|part| part == ".." || part == ".") || key.contains('\\') {
        return None;
    }
    let name = key.rsplit('/').next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let stem = name.strip_suffix(".gz")?;
    let first = stem.bytes().next()?;
    (first.is_ascii_alphanumeric() && name.bytes().all(plain)).then_some(name)
}

fn table_of(arn: &str) -> Option<&str> {
    let mut parts = arn.strip_prefix("arn:")?.splitn(5, ':');
    let service = parts.nth(1)?;
    let name = parts.nth(2)?.strip_prefix("table/")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (service == "dynamodb" && !name.is_empty() && name.bytes().all(plain)).then_some(name)
}

fn export_id_of(arn: &str) -> Option<&str> {
    let (_, id) = arn.rsplit_once("/export/")?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let starts = id.bytes().next()?.is_ascii_alphanumeric();
    (starts && id.len() <= 64 && id.bytes().all(plain)).then_some(id)
}

fn missing(file: &str, field: &str) -> ExportError {
    bad(file, format!("`{field}` is missing"))
}

fn bad(file: &str, problem: String) -> ExportError {
    ExportError::refused(
        RefusalKind::BadManifest,
        file,
        problem,
        "give an export as AWS wrote it; if it is a copy, copy it again",
    )
}

/// Where JSON ends being JSON, without any of its text.
fn position(error: &serde_json::Error, line: usize) -> String {
    format!("line {}, column {}", line + error.line(), error.column())
}

/// A short form of a manifest's word for a message.
fn shown(word: &str) -> String {
    word.chars().filter(|c| !c.is_control()).take(40).collect()
}

#[cfg(test)]
mod tests;
