//! The two formats of data files, and their lines as the one text that everything after reads.

use dynalake_pipeline::reject::Reject;
use serde::{Deserialize, Serialize};

use crate::ion;

/// Format of an export's data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataFormat {
    /// DynamoDB JSON: `{"Item":{"PK":{"S":"a"}}}`.
    Json,
    /// Amazon Ion text: `$ion_1_0 {Item:{PK:"a"}}`.
    Ion,
}

impl DataFormat {
    const ALL: [Self; 2] = [Self::Json, Self::Ion];

    /// `outputFormat` of the manifest, and `ExportFormat` of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "DYNAMODB_JSON",
            Self::Ion => "ION",
        }
    }

    /// How data files' names end.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Json => ".json.gz",
            Self::Ion => ".ion.gz",
        }
    }

    /// The format of this name in the manifest.
    pub fn of_manifest(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// The format of a data file by its name.
    pub fn of_file(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| name.ends_with(format.suffix()))
    }

    /// The format that a line is clearly in. JSON is Ion of another meaning, so it must be known.
    pub(crate) fn of_line(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii_start();
        if line.starts_with(b"$ion_") {
            return Some(Self::Ion);
        }
        match line.strip_prefix(b"{")?.trim_ascii_start().first()? {
            b'"' => Some(Self::Json),
            b'\'' | b'a'..=b'z' | b'A'..=b'Z' => Some(Self::Ion),
            _ => None,
        }
    }
}

/// Reads lines of a format; keeps a buffer from line to line.
#[derive(Debug)]
pub struct LineReader {
    format: DataFormat,
    json: String,
}

impl LineReader {
    /// A reader of lines in this format.
    pub fn new(format: DataFormat) -> Self {
        Self {
            format,
            json: String::new(),
        }
    }

    /// The line in DynamoDB JSON: `{"Item":{…}}`, or of an incremental export `{"Keys":{…},…}`. JSON is
    /// given as it stands, right or wrong.
    ///
    /// # Errors
    /// Why a line in Ion is not one that DynamoDB writes.
    pub fn json<'a>(&'a mut self, line: &'a [u8]) -> Result<&'a [u8], Reject> {
        match self.format {
            DataFormat::Json => Ok(line),
            DataFormat::Ion => {
                ion::to_json(line, &mut self.json)?;
                Ok(self.json.as_bytes())
            }
        }
    }

    /// As [`Self::json`], but of what tells an incremental line's keys only: `Keys`, or else an image.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub fn keys_json<'a>(&'a mut self, line: &'a [u8]) -> Result<&'a [u8], Reject> {
        match self.format {
            DataFormat::Json => Ok(line),
            DataFormat::Ion => {
                ion::keys_to_json(line, &mut self.json)?;
                Ok(self.json.as_bytes())
            }
        }
    }
}
