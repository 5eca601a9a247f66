//! Writes full exports in AWS's on-disk format, for the demo and for tests.
//!
//! Input: item texts (`{"PK":{"S":"…"},…}`). Output: `AWSDynamoDB/<id>/` with `_started`, both
//! manifests, their `.md5` files and gzip data files. The same items give the same bytes.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use md5::{Digest, Md5};
use serde::Serialize;

use crate::manifest::{FILES_NAME, SUMMARY_NAME, hex};

/// What an export says of itself.
#[derive(Debug, Clone)]
pub struct ExportSpec {
    /// Source table's name.
    pub table: String,
    /// Export time, milliseconds since 1970-01-01 UTC. The export id begins with it.
    pub export_time: i64,
    /// Bucket that the export claims to be in.
    pub bucket: String,
    /// Prefix of the export's keys, as given at the request.
    pub prefix: Option<String>,
    /// Number of data files; items are dealt out to them in turn. At least one is written.
    pub data_files: usize,
}

impl ExportSpec {
    /// An export of `table` at `export_time` in one data file, without a prefix.
    pub fn new(table: impl Into<String>, export_time: i64) -> Self {
        Self {
            table: table.into(),
            export_time,
            bucket: "example-bucket".to_owned(),
            prefix: None,
            data_files: 1,
        }
    }

    /// The export's id: `0`, 13 digits of milliseconds, `-`, 8 hex digits.
    pub fn export_id(&self) -> String {
        let digest = Md5::digest(format!("{}/{}", self.table, self.export_time));
        let tail = hex(digest.get(..4).unwrap_or_default());
        format!("{:014}-{tail}", self.export_time)
    }

    /// Key of the export's folder, prefix included, without a slash at the end.
    pub fn folder_key(&self) -> String {
        let id = self.export_id();
        match self
            .prefix
            .as_deref()
            .map(|prefix| prefix.trim_matches('/'))
        {
            Some(prefix) if !prefix.is_empty() => format!("{prefix}/AWSDynamoDB/{id}"),
            _ => format!("AWSDynamoDB/{id}"),
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
    export_time: String,
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

/// Writes an export below `root`, which stands for the bucket, and gives the export's folder.
///
/// # Errors
/// Those of the file system.
pub fn write_full_export<I>(root: &Path, spec: &ExportSpec, items: I) -> io::Result<PathBuf>
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let folder = root.join(spec.folder_key());
    std::fs::create_dir_all(folder.join("data"))?;
    std::fs::write(folder.join("_started"), b"")?;
    let mut files = Vec::new();
    for _ in 0..spec.data_files.max(1) {
        files.push(OpenFile::new());
    }
    let count = files.len();
    for (index, item) in items.into_iter().enumerate() {
        if let Some(file) = files.get_mut(index % count) {
            file.push(item.as_ref())?;
        }
    }
    let mut manifest = Vec::new();
    let mut total = 0;
    for (index, file) in files.into_iter().enumerate() {
        let name = format!("{}.json.gz", spec.data_file_name(index));
        let key = format!("{}/data/{name}", spec.folder_key());
        let (bytes, item_count) = file.finish()?;
        std::fs::write(folder.join("data").join(&name), &bytes)?;
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
    SummaryText {
        version: "2020-06-30",
        export_arn: format!("{}/export/{}", spec.table_arn(), spec.export_id()),
        start_time: time(spec.export_time),
        end_time: time(spec.export_time.saturating_add(325_123)),
        table_arn: spec.table_arn(),
        table_id: "0b6f3c1e-7d55-4f0a-9d2c-5e1f2a3b4c5d",
        export_time: time(spec.export_time),
        bucket: &spec.bucket,
        prefix: spec.prefix.as_deref(),
        sse_algorithm: "AES256",
        sse_kms_key_id: None,
        manifest_files_key: format!("{}/{FILES_NAME}", spec.folder_key()),
        billed_size_bytes: 0,
        item_count,
        output_format: "DYNAMODB_JSON",
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
    items: u64,
}

impl OpenFile {
    fn new() -> Self {
        Self {
            gzip: encoder(),
            items: 0,
        }
    }

    fn push(&mut self, item: &str) -> io::Result<()> {
        self.items += 1;
        self.gzip.write_all(b"{\"Item\":")?;
        self.gzip.write_all(item.as_bytes())?;
        self.gzip.write_all(b"}\n")
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
        assert_eq!(summary.kind.at_ms(), spec.export_time);
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
}
