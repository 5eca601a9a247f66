//! Why a record cannot become a row. Data, not an error: it is stored in quarantine and counted.

use serde::{Deserialize, Serialize};

/// Reason code of a quarantined record; stable, counted in reports and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReasonCode {
    /// The record's envelope lacks something or has it in the wrong form.
    MalformedRecord,
    /// Not one JSON value, or not UTF-8.
    MalformedJson,
    /// Not one value of Amazon Ion 1.0 text, or not UTF-8.
    MalformedIon,
    /// An AttributeValue that DynamoDB could not have stored.
    MalformedAttributeValue,
    /// A key attribute is missing, of the wrong type, or differs between `Keys` and an image.
    BadKey,
    /// A value does not fit a column that says `on_mismatch = "quarantine"`.
    Mismatch,
}

impl ReasonCode {
    /// The code's text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MalformedRecord => "malformed_record",
            Self::MalformedJson => "malformed_json",
            Self::MalformedIon => "malformed_ion",
            Self::MalformedAttributeValue => "malformed_attribute_value",
            Self::BadKey => "bad_key",
            Self::Mismatch => "mismatch",
        }
    }
}

/// A record that cannot become a row, and why. Never holds a value of the record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", path.as_deref().map(|path| format!(" at `{path}`")).unwrap_or_default())]
pub struct Reject {
    /// Reason code.
    pub code: ReasonCode,
    /// Entity the record was routed to, when it got that far.
    pub entity: Option<String>,
    /// Attribute path, e.g. `NewImage.lines[2].qty`.
    pub path: Option<String>,
    /// A sentence: what is wrong, and what was expected.
    pub message: String,
}

impl Reject {
    /// A reason without a path.
    pub fn new(code: ReasonCode, message: impl Into<String>) -> Self {
        Self {
            code,
            entity: None,
            path: None,
            message: message.into(),
        }
    }

    /// The same reason, one member further out.
    #[must_use]
    pub fn under(mut self, name: &str) -> Self {
        self.path = Some(match self.path {
            Some(path) if path.starts_with('[') => format!("{name}{path}"),
            Some(path) => format!("{name}.{path}"),
            None => name.to_owned(),
        });
        self
    }

    /// The same reason, one list further out.
    #[must_use]
    pub fn under_index(self, index: usize) -> Self {
        self.under(&format!("[{index}]"))
    }

    /// The same reason, of a record of this entity.
    #[must_use]
    pub fn of_entity(mut self, entity: impl Into<String>) -> Self {
        self.entity = Some(entity.into());
        self
    }

    /// The same reason, at this attribute path.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}
