//! Writes full and incremental exports in AWS's on-disk format, for the demo and for tests.
//!
//! Input: item texts (`{"PK":{"S":"…"},…}`), or what became of items in a window. Output:
//! `AWSDynamoDB/<id>/` with `_started`, both manifests, their `.md5` files and gzip data files; those
//! of incremental exports are in `AWSDynamoDB/data/`, which all of them share. The same items give the
//! same bytes.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use md5::{Digest, Md5};
use serde::Serialize;

use crate::format::DataFormat;
use crate::ion::from_json;
use crate::manifest::{ExportKind, ExportView, FILES_NAME, SUMMARY_NAME, hex};

/// What an export says of itself.
#[derive(Debug, Clone)]
pub struct ExportSpec {
    /// Source table's name.
    pub table: String,
    /// What it shows. The export id begins with the instant whose state it shows.
    pub kind: ExportKind,
    /// Bucket that the export claims to be in.
    pub bucket: String,
    /// Prefix of the export's keys, as given at the request.
    pub prefix: Option<String>,
    /// Format of the data files.
    pub format: DataFormat,
    /// Number of data files; items are dealt out to them in turn. At least one is written.
    pub data_files: usize,
}

impl ExportSpec {
    /// An export of `table` at `export_time` in one data file, without a prefix.
    pub fn new(table: impl Into<String>, export_time: i64) -> Self {
        Self::of(table, ExportKind::Full { export_time })
    }

    /// An incremental export of `table` from `from` to before `to`, as [`ExportSpec::new`].
    pub fn incremental(table: impl Into<String>, from: i64, to: i64, view: ExportView) -> Self {
        Self::of(table, ExportKind::Incremental { from, to, view })
    }

    fn of(table: impl Into<String>, kind: ExportKind) -> Self {
        Self {
            table: table.into(),
            kind,
            bucket: "example-bucket".to_owned(),
            prefix: None,
            format: DataFormat::Json,
            data_files: 1,
        }
    }

    /// The export's id: `0`, 13 digits of milliseconds, `-`, 8 hex digits.
    pub fn export_id(&self) -> String {
        let at = self.kind.at_ms();
        let name = match self.kind {
            ExportKind::Full { .. } => format!("{}/{at}", self.table),
            ExportKind::Incremental { from, view, .. } => {
                format!("{}/{from}/{at}/{}", self.table, view.as_str())
            }
        };
        let digest = Md5::digest(name);
        let tail = hex(digest.get(..4).unwrap_or_default());
        format!("{at:014}-{tail}")
    }

    /// Key of the export's folder, prefix included, without a slash at the end.
    pub fn folder_key(&self) -> String {
        format!("{}/{}", self.root_key(), self.export_id())
    }

    /// Key of the folder with the data files, without a slash at the end.
    pub fn data_key(&self) -> String {
        match self.kind {
            ExportKind::Full { .. } => format!("{}/data", self.folder_key()),
            ExportKind::Incremental { .. } => format!("{}/data", self.root_key()),
        }
    }

    fn root_key(&self) -> String {
        match self
            .prefix
            .as_deref()
            .map(|prefix| prefix.trim_matches('/'))
        {
            Some(prefix) if !prefix.is_empty() => format!("{prefix}/AWSDynamoDB"),
            _ => "AWSDynamoDB".to_owned(),
        }
    }

    fn table_arn(&self) -> String {
        format!(
            "arn:aws:dynamodb:eu-west-1:123456789012:table/{}",
            self.table
        )
    }

    /// Name of a data file: 26 characters of lower-case base32, as AWS's.
    fn data_file_name(&self, index: usize) -> String {
        let digest: [u8; 16] = Md5::digest(format!("{}/{index}", self.export_id())).into();
        let bits = u128::from_be_bytes(digest);
        let alphabet = "abcdefghijklmnopqrstuvwxyz234567"
            .chars()
            .collect::<Vec<_>>();
        (0..26u32)
            .filter_map(|place| {
                let digit = usize::try_from((bits >> (place * 5)) & 31).ok()?;
                alphabet.get(digit).copied()
            })
            .collect()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SummaryText<'a> {
    version: &'a str,
    export_arn: String,
    start_time: String,
    end_time: String,
    table_arn: String,
    table_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_from_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_to_time: Option<String>,
    #[serde(rename = "s3Bucket")]
    bucket: &'a str,
    #[serde(rename = "s3Prefix")]
    prefix: Option<&'a str>,
    #[serde(rename = "s3SseAlgorithm")]
    sse_algorithm: &'a str,
    #[serde(rename = "s3SseKmsKeyId")]
    sse_kms_key_id: Option<&'a str>,
    #[serde(rename = "manifestFilesS3Key")]
    manifest_files_key: String,
    billed_size_bytes: u64,
    item_count: u64,
    output_format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_view: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_type: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileText {
    item_count: u64,
    md5_checksum: String,
    etag: String,
    #[serde(rename = "dataFileS3Key")]
    key: String,
}

/// What became of an item in a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetEffect {
    /// The key attributes, as an item text.
    pub keys: String,
    /// The item at the window's begin.
    pub before: Option<String>,
    /// The item at the window's end.
    pub after: Option<String>,
    /// Its last write in the window, microseconds since 1970-01-01 UTC.
    pub written_micros: i64,
}

impl NetEffect {
    /// The line of an incremental export; `None` of an item that came and went within the window.
    fn line(&self, view: ExportView) -> Option<String> {
        if self.before.is_none() && self.after.is_none() {
            return None;
        }
        let mut line = format!(
            "{{\"Metadata\":{{\"WriteTimestampMicros\":{{\"N\":\"{}\"}}}},\"Keys\":{}",
            self.written_micros, self.keys
        );
        let old = self
            .before
            .as_ref()
            .filter(|_| view == ExportView::NewAndOldImages);
        for (name, image) in [("OldImage", old), ("NewImage", self.after.as_ref())] {
            if let Some(image) = image {
                line.push_str(",\"");
                line.push_str(name);
                line.push_str("\":");
                line.push_str(image);
            }
        }
        line.push('}');
        Some(line)
    }
}

/// Writes a full export below `root`, which stands for the bucket, and gives the export's folder. Apart
/// from the format, the files of exports in JSON and Ion have the same names and lines.
///
/// # Errors
/// Those of the file system; in Ion, also an item that DynamoDB could not have stored.
pub fn write_full_export<I>(root: &Path, spec: &ExportSpec, items: I) -> io::Result<PathBuf>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let lines = items
        .into_iter()
        .map(|item| format!("{{\"Item\":{}}}", item.as_ref()));
    write_lines(root, spec, lines)
}

/// Writes an incremental export below `root`, which stands for the bucket, and gives the folder of its
/// manifests.
///
/// # Errors
/// Those of the file system; a spec of a full export.
pub fn write_incremental_export<'e>(
    root: &Path,
    spec: &ExportSpec,
    effects: impl IntoIterator<Item = &'e NetEffect>,
) -> io::Result<PathBuf> {
    let ExportKind::Incremental { view, .. } = spec.kind else {
        return Err(io::Error::other("not a window"));
    };
    let lines = effects.into_iter().filter_map(|effect| effect.line(view));
    write_lines(root, spec, lines)
}

/// Writes an export of these lines, whatever they are, as [`write_full_export`].
///
/// # Errors
/// Those of the file system.
pub fn write_lines(
    root: &Path,
    spec: &ExportSpec,
    lines: impl IntoIterator<Item = String>,
) -> io::Result<PathBuf> {
    let (folder, data) = (root.join(spec.folder_key()), root.join(spec.data_key()));
    std::fs::create_dir_all(&folder)?;
    std::fs::create_dir_all(&data)?;
    std::fs::write(folder.join("_started"), b"")?;
    let mut files = Vec::new();
    for _ in 0..spec.data_files.max(1) {
        files.push(OpenFile::new(spec.format));
    }
    let count = files.len();
    for (index, line) in lines.into_iter().enumerate() {
        if let Some(file) = files.get_mut(index % count) {
            file.push(&line)?;
        }
    }
    let mut manifest = Vec::new();
    let mut total = 0;
    for (index, file) in files.into_iter().enumerate() {
        let name = format!("{}{}", spec.data_file_name(index), spec.format.suffix());
        let key = format!("{}/{name}", spec.data_key());
        let (bytes, item_count) = file.finish()?;
        std::fs::write(data.join(&name), &bytes)?;
        total += item_count;
        serde_json::to_writer(&mut manifest, &file_text(&bytes, item_count, key))?;
        manifest.push(b'\n');
    }
    write_manifest(&folder, FILES_NAME, &manifest)?;
    write_manifest(
        &folder,
        SUMMARY_NAME,
        &serde_json::to_vec(&summary_text(spec, total))?,
    )?;
    Ok(folder)
}

/// Writes a manifest and the file with its MD5.
pub fn write_manifest(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    std::fs::write(folder.join(name), bytes)?;
    let stem = name.strip_suffix(".json").unwrap_or(name);
    std::fs::write(
        folder.join(format!("{stem}.md5")),
        STANDARD.encode(Md5::digest(bytes)),
    )
}

/// A line, given in DynamoDB JSON, in the format of a data file; without a line feed.
///
/// # Errors
/// A line that has no text in Ion.
pub fn line_in(format: DataFormat, json: &str) -> io::Result<Cow<'_, str>> {
    match format {
        DataFormat::Json => Ok(Cow::Borrowed(json)),
        DataFormat::Ion => from_json(json.as_bytes())
            .map(Cow::Owned)
            .map_err(|reject| io::Error::new(io::ErrorKind::InvalidInput, reject)),
    }
}

/// Compresses lines as AWS does: one member, no time, no name, unknown system.
pub fn gzip(lines: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = encoder();
    encoder.write_all(lines)?;
    encoder.finish()
}

/// The line of `manifest-files.json` for a data file, without its line feed.
pub fn manifest_line(compressed: &[u8], item_count: u64, key: &str) -> serde_json::Result<String> {
    serde_json::to_string(&file_text(compressed, item_count, key.to_owned()))
}

fn file_text(compressed: &[u8], item_count: u64, key: String) -> FileText {
    let md5 = Md5::digest(compressed);
    let part = hex(&Md5::digest(md5));
    FileText {
        item_count,
        md5_checksum: STANDARD.encode(md5),
        etag: format!("{part}-1"),
        key,
    }
}

fn summary_text(spec: &ExportSpec, item_count: u64) -> SummaryText<'_> {
    let time = |ms: i64| {
        DateTime::from_timestamp_millis(ms)
            .unwrap_or_default()
            .format("%Y-%m-%dT%H:%M:%S%.3fZ")
            .to_string()
    };
    let at = spec.kind.at_ms();
    let (version, export_time, window) = match spec.kind {
        ExportKind::Full { .. } => ("2020-06-30", Some(time(at)), None),
        ExportKind::Incremental { from, view, .. } => {
            ("2023-08-01", None, Some((time(from), view.as_str())))
        }
    };
    let view = window.as_ref().map(|(_, view)| *view);
    SummaryText {
        version,
        export_arn: format!("{}/export/{}", spec.table_arn(), spec.export_id()),
        start_time: time(at),
        end_time: time(at.saturating_add(325_123)),
        table_arn: spec.table_arn(),
        table_id: "0b6f3c1e-7d55-4f0a-9d2c-5e1f2a3b4c5d",
        export_time,
        export_to_time: window.as_ref().map(|_| time(at)),
        export_from_time: window.map(|(from, _)| from),
        bucket: &spec.bucket,
        prefix: spec.prefix.as_deref(),
        sse_algorithm: "AES256",
        sse_kms_key_id: None,
        manifest_files_key: format!("{}/{FILES_NAME}", spec.folder_key()),
        billed_size_bytes: 0,
        item_count,
        output_format: spec.format.as_str(),
        output_view: view,
        export_type: view.map(|_| "INCREMENTAL_EXPORT"),
    }
}

fn encoder() -> GzEncoder<Vec<u8>> {
    GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), Compression::default())
}

struct OpenFile {
    gzip: GzEncoder<Vec<u8>>,
    format: DataFormat,
    items: u64,
}

impl OpenFile {
    fn new(format: DataFormat) -> Self {
        Self {
            gzip: encoder(),
            format,
            items: 0,
        }
    }

    fn push(&mut self, line: &str) -> io::Result<()> {
        self.items += 1;
        self.gzip
            .write_all(line_in(self.format, line)?.as_bytes())?;
        self.gzip.write_all(b"\n")
    }

    fn finish(self) -> io::Result<(Vec<u8>, u64)> {
        Ok((self.gzip.finish()?, self.items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Summary, parse_files};

    #[test]
    fn an_empty_data_file_is_the_twenty_bytes_of_aws() {
        let empty = gzip(b"").unwrap();
        assert_eq!(empty.len(), 20);
        assert_eq!(
            STANDARD.encode(Md5::digest(&empty)),
            "FjvgqIxwymKf1RbbqtrZag=="
        );
        let line = manifest_line(&empty, 0, "k/data/x.json.gz").unwrap();
        assert!(
            line.contains("\"etag\":\"7deb4078f238dd87d6af0538152c04e9-1\""),
            "{line}"
        );
    }

    #[test]
    fn what_is_written_reads_back_and_is_the_same_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let spec = ExportSpec {
            prefix: Some("a/b".to_owned()),
            data_files: 3,
            ..ExportSpec::new("shop", 1_795_000_000_000)
        };
        let items = ["{\"PK\":{\"S\":\"1\"}}", "{\"PK\":{\"S\":\"2\"}}"];
        let export = write_full_export(folder.path(), &spec, items).unwrap();
        let read = |name: &str| std::fs::read(export.join(name)).unwrap();
        let summary = Summary::parse(&read(SUMMARY_NAME), "s").unwrap();
        assert_eq!(summary.export_id, spec.export_id());
        assert_eq!(summary.kind, spec.kind);
        assert_eq!((summary.table.as_str(), summary.item_count), ("shop", 2));
        let files = parse_files(&read(FILES_NAME), "f").unwrap();
        assert_eq!(files.iter().map(|file| file.item_count).sum::<u64>(), 2);
        assert_eq!(files.len(), 3);
        assert!(
            files
                .iter()
                .all(|file| file.name.len() == 26 + ".json.gz".len())
        );
        let again = tempfile::tempdir().unwrap();
        let other = write_full_export(again.path(), &spec, items).unwrap();
        assert_eq!(
            read(FILES_NAME),
            std::fs::read(other.join(FILES_NAME)).unwrap()
        );
    }

    #[test]
    fn an_incremental_export_has_its_lines_in_the_shared_folder() {
        let folder = tempfile::tempdir().unwrap();
        let effect = |before: Option<&str>, after: Option<&str>| NetEffect {
            keys: "{\"PK\":{\"S\":\"1\"}}".to_owned(),
            before: before.map(str::to_owned),
            after: after.map(str::to_owned),
            written_micros: 5,
        };
        let effects = [
            effect(None, Some("{}")),
            effect(Some("{}"), None),
            effect(None, None),
        ];
        for (view, old) in [
            (ExportView::NewImage, ""),
            (ExportView::NewAndOldImages, ",\"OldImage\":{}"),
        ] {
            let spec = ExportSpec::incremental("shop", 1_795_000_000_000, 1_795_000_900_000, view);
            let export = write_incremental_export(folder.path(), &spec, &effects).unwrap();
            assert!(!export.join("data").exists());
            let bytes = std::fs::read(export.join(SUMMARY_NAME)).unwrap();
            let summary = Summary::parse(&bytes, "s").unwrap();
            assert_eq!((summary.kind, summary.item_count), (spec.kind, 2));
            let files = parse_files(&std::fs::read(export.join(FILES_NAME)).unwrap(), "f").unwrap();
            let data = std::fs::read(folder.path().join(&files[0].key)).unwrap();
            let mut reader = crate::data_file::DataFileReader::new(data.as_slice());
            let mut lines = Vec::new();
            while let Some((_, line)) = reader.next_line().unwrap() {
                lines.push(String::from_utf8(line.to_vec()).unwrap());
            }
            let begin = r#"{"Metadata":{"WriteTimestampMicros":{"N":"5"}},"Keys":{"PK":{"S":"1"}}"#;
            assert_eq!(
                lines,
                [
                    format!("{begin},\"NewImage\":{{}}}}"),
                    format!("{begin}{old}}}")
                ]
            );
        }
    }
}
