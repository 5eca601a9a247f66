//! The zips of a deployment: the schemas as a layer, and each function's binary.
//!
//! Same contents, same bytes: names in order, one time for all of them, fixed permissions. File names
//! hold a digest of the contents, so a stack that gets the same name again has nothing to update.

use std::fmt::Write as _;
use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::exit::{Failure, Outcome};

/// Binaries of the functions, by the names that cargo gives them.
pub(crate) const FUNCTIONS: [&str; 2] = ["stream", "export-job"];

/// Hex digits of a digest in a name: 64 bits.
const DIGEST_HEX: usize = 16;
/// Bytes of a zip that Lambda takes from S3, unpacked ("Lambda quotas": 250 MB).
const MAX_UNPACKED: usize = 250_000_000;

/// A zip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Bundle {
    /// `schemas`, or the function's binary.
    pub(crate) name: String,
    /// File name.
    pub(crate) file: String,
    /// What its binary runs on, as Lambda calls it; `None` for the schemas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) architecture: Option<&'static str>,
    /// Bytes of the zip.
    pub(crate) bytes: u64,
    /// The zip.
    #[serde(skip)]
    pub(crate) content: Vec<u8>,
}

/// The schema folder, as `schemas/` of a layer, which is unpacked under `/opt`.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn schemas(folder: &Path) -> Outcome<Bundle> {
    let unreadable = |error: std::io::Error| {
        Failure::usage(format!("{} cannot be read: {error}", folder.display()))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("toml" | "lock")) && !name.starts_with('.') {
            let content = fs::read(&path).map_err(unreadable)?;
            files.push((format!("schemas/{name}"), content));
        }
    }
    files.sort();
    bundle("schemas", None, &files, 0o644)
}

/// A function's binary, as `bootstrap`, from a folder of artifacts.
///
/// # Errors
/// There is none, or it is none that Lambda runs.
pub(crate) fn function(artifacts: &Path, name: &str) -> Outcome<Bundle> {
    let places = [artifacts.join(name).join("bootstrap"), artifacts.join(name)];
    let Some(path) = places.iter().find(|path| path.is_file()) else {
        return Err(Failure::usage(format!(
            "there is no binary `{name}` in {}",
            artifacts.display()
        ))
        .hint(
            "give the folder of a release, or build it: `cargo lambda build --release --arm64`",
        ));
    };
    let content = fs::read(path)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", path.display())))?;
    let Some(architecture) = architecture(&content) else {
        return Err(Failure::usage(format!(
            "{} is no Linux binary for arm64 or x86_64, so Lambda cannot run it",
            path.display()
        ))
        .hint("build it for Lambda: `cargo lambda build --release --arm64`"));
    };
    bundle(
        name,
        Some(architecture),
        &[("bootstrap".to_owned(), content)],
        0o755,
    )
}

/// Writes zips into a folder, and gives their paths.
///
/// # Errors
/// The folder cannot be made or written to.
pub(crate) fn write(bundles: &[Bundle], folder: &Path) -> Outcome<Vec<PathBuf>> {
    let unwritable = |path: &Path, error: std::io::Error| {
        Failure::usage(format!("{} cannot be written: {error}", path.display()))
    };
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    bundles
        .iter()
        .map(|bundle| {
            let path = folder.join(&bundle.file);
            fs::write(&path, &bundle.content).map_err(|error| unwritable(&path, error))?;
            Ok(path)
        })
        .collect()
}

fn bundle(
    name: &str,
    architecture: Option<&'static str>,
    files: &[(String, Vec<u8>)],
    permissions: u32,
) -> Outcome<Bundle> {
    let unpacked: usize = files.iter().map(|(_, content)| content.len()).sum();
    if unpacked > MAX_UNPACKED {
        return Err(Failure::usage(format!(
            "`{name}` has {unpacked} bytes, and Lambda takes {MAX_UNPACKED}"
        ))
        .hint("build it with `--release`"));
    }
    let content = zip(files, permissions)
        .map_err(|error| Failure::usage(format!("`{name}` cannot be made a zip: {error}")))?;
    let mut stem = name.to_owned();
    if let Some(architecture) = architecture {
        stem = format!("{stem}-{architecture}");
    }
    Ok(Bundle {
        name: name.to_owned(),
        file: format!("{stem}-{}.zip", digest(files)),
        architecture,
        bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
        content,
    })
}

fn zip(files: &[(String, Vec<u8>)], permissions: u32) -> zip::result::ZipResult<Vec<u8>> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(permissions);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        writer.start_file(name.as_str(), options)?;
        writer.write_all(content)?;
    }
    Ok(writer.finish()?.into_inner())
}

/// Over names and contents; not over the zip, which another version of the compressor may write
/// differently.
fn digest(files: &[(String, Vec<u8>)]) -> String {
    let mut sha = Sha256::new();
    for (name, content) in files {
        for part in [name.as_bytes(), content.as_slice()] {
            sha.update(part.len().to_string());
            sha.update([0]);
            sha.update(part);
        }
    }
    let mut text = String::new();
    for byte in sha.finalize() {
        // Writing to a String cannot fail.
        _ = write!(text, "{byte:02x}");
    }
    text.truncate(DIGEST_HEX);
    text
}

/// What an ELF file runs on: `e_machine`, two bytes at offset 18 ("System V ABI", ELF header).
fn architecture(content: &[u8]) -> Option<&'static str> {
    const X86_64: [u8; 2] = [62, 0];
    const AARCH64: [u8; 2] = [183, 0];
    if !content.starts_with(b"\x7fELF") {
        return None;
    }
    match content.get(18..20)?.try_into().ok()? {
        X86_64 => Some("x86_64"),
        AARCH64 => Some("arm64"),
        _ => None,
    }
}
