//! Addresses of lakes and the form of keys. Pure text, no I/O.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a lake (or an export) is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LakeUri {
    /// A local folder.
    Local(PathBuf),
    /// A bucket, or the part of it under a prefix.
    S3 {
        /// Bucket name.
        bucket: String,
        /// Key prefix without slashes at its ends; empty for the whole bucket.
        prefix: String,
    },
}

/// An address that cannot be used, and what one looks like.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{uri}` is not the address of a lake: {problem}")]
pub struct UriError {
    uri: String,
    problem: String,
}

impl LakeUri {
    /// Parses `./lake`, `/data/lake`, `file:///data/lake` or `s3://bucket/prefix`.
    ///
    /// Slashes at the end do not count. Bucket names follow S3's rules for general purpose buckets:
    /// 3 to 63 characters of `a-z`, `0-9`, `.` and `-`.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        let fail = |problem: &str| UriError {
            uri: text.to_owned(),
            problem: problem.to_owned(),
        };
        if text.is_empty() {
            return Err(fail("it is empty; give a folder or s3://bucket/prefix"));
        }
        if text.contains('\0') {
            return Err(fail("it holds a NUL character"));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Local(PathBuf::from(text)));
        };
        match scheme {
            "s3" => Self::parse_s3(rest).map_err(|problem| fail(&problem)),
            "file" => Self::parse_file(rest).map_err(|problem| fail(&problem)),
            "s3a" | "s3n" => Err(fail("write s3:// (s3a and s3n are Hadoop's names for it)")),
            _ => Err(fail(
                "the scheme is unknown; give a folder, file:///folder or s3://bucket/prefix",
            )),
        }
    }

    fn parse_s3(rest: &str) -> Result<Self, String> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-';
        if !(3..=63).contains(&bucket.len()) || !bucket.chars().all(allowed) {
            return Err(format!(
                "`{bucket}` is not a bucket name (3 to 63 characters of a-z, 0-9, `.` and `-`)"
            ));
        }
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() {
            check_key(prefix).map_err(|problem| format!("its prefix {problem}"))?;
        }
        Ok(Self::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        })
    }

    fn parse_file(rest: &str) -> Result<Self, String> {
        // RFC 8089: file://<host>/<path>, the host empty or `localhost`, the path percent-encoded.
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        if !path.starts_with('/') {
            return Err("file:// takes an absolute path: file:///data/lake".to_owned());
        }
        Ok(Self::Local(PathBuf::from(percent_decoded(path)?)))
    }

    /// The same place with a relative path below it.
    #[must_use]
    pub fn join(&self, path: &str) -> Self {
        match self {
            Self::Local(root) => Self::Local(root.join(path)),
            Self::S3 { bucket, prefix } if prefix.is_empty() => Self::S3 {
                bucket: bucket.clone(),
                prefix: path.to_owned(),
            },
            Self::S3 { bucket, prefix } => Self::S3 {
                bucket: bucket.clone(),
                prefix: format!("{prefix}/{path}"),
            },
        }
    }
}

impl FromStr for LakeUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        Self::parse(text)
    }
}

impl fmt::Display for LakeUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => write!(f, "{}", path.display()),
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
        }
    }
}

fn percent_decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = (
                rest.next().and_then(hex_digit),
                rest.next().and_then(hex_digit),
            );
            let (Some(high), Some(low)) = digits else {
                return Err(
                    "a `%` in a file:// address is followed by two hexadecimal digits \
                            (`%25` for the sign itself)"
                        .to_owned(),
                );
            };
            bytes.push(high << 4 | low);
        } else {
            bytes.push(byte);
        }
    }
    if bytes.contains(&0) {
        return Err("it holds a NUL character".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "its path is not UTF-8".to_owned())
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Says what is wrong with a key, if anything.
///
/// A key is a relative path of non-empty segments between slashes. None is `..` or begins with a dot
/// (names that query engines hide and that listings leave out); none holds a control character or a
/// backslash; the whole is at most 1,024 bytes of UTF-8, S3's limit for key names.
///
/// # Errors
/// The problem as the second half of a sentence whose subject is the key.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    if key.is_empty() {
        return Err("is empty");
    }
    if key.len() > 1024 {
        return Err("is longer than 1,024 bytes");
    }
    if key.starts_with('/') {
        return Err("begins with a slash; keys are relative to the root");
    }
    if key.chars().any(|c| c.is_control() || c == '\\') {
        return Err("holds a control character or a backslash");
    }
    for segment in key.split('/') {
        if segment.is_empty() {
            return Err("has an empty segment (two slashes, or one at the end)");
        }
        if segment.starts_with('.') {
            return Err("has a segment that begins with a dot");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(bucket: &str, prefix: &str) -> LakeUri {
        LakeUri::S3 {
            bucket: bucket.to_owned(),
            prefix: prefix.to_owned(),
        }
    }

    #[test]
    fn addresses_of_every_form_are_read() {
        for (text, expected) in [
            ("./lake", LakeUri::Local("./lake".into())),
            ("lake", LakeUri::Local("lake".into())),
            ("/data/my lake", LakeUri::Local("/data/my lake".into())),
            ("file:///data/lake", LakeUri::Local("/data/lake".into())),
            (
                "file://localhost/data/lake",
                LakeUri::Local("/data/lake".into()),
            ),
            (
                "file:///data/my%20lake%25",
                LakeUri::Local("/data/my lake%".into()),
            ),
            ("s3://my-bucket", s3("my-bucket", "")),
            ("s3://my-bucket/", s3("my-bucket", "")),
            ("s3://my.bucket/a/b=c/", s3("my.bucket", "a/b=c")),
        ] {
            assert_eq!(LakeUri::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn addresses_that_name_nothing_are_refused_with_the_reason() {
        for (text, part) in [
            ("", "empty"),
            ("http://host/lake", "scheme is unknown"),
            ("s3a://bucket/lake", "write s3://"),
            ("s3://", "not a bucket name"),
            ("s3:///lake", "not a bucket name"),
            ("s3://Bucket/lake", "not a bucket name"),
            ("s3://ab/lake", "not a bucket name"),
            ("s3://bucket//lake", "begins with a slash"),
            ("s3://bucket/a//b", "empty segment"),
            ("s3://bucket/a/../b", "begins with a dot"),
            ("file://lake", "absolute path"),
            ("file:///a%2", "hexadecimal"),
            ("file:///a%zz", "hexadecimal"),
            ("file:///a%00", "NUL"),
            ("file:///%ff", "not UTF-8"),
            ("a\0b", "NUL"),
        ] {
            let error = LakeUri::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
            assert!(error.contains("is not the address of a lake"), "{error}");
        }
    }

    #[test]
    fn addresses_print_as_they_are_read() {
        for text in ["./lake", "/data/lake", "s3://bucket", "s3://bucket/a/b"] {
            assert_eq!(LakeUri::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(s3("bucket", "").join("a").to_string(), "s3://bucket/a");
        assert_eq!(
            s3("bucket", "p").join("a/b").to_string(),
            "s3://bucket/p/a/b"
        );
        assert_eq!(
            LakeUri::Local("lake".into()).join("a").to_string(),
            "lake/a"
        );
    }

    #[test]
    fn keys_that_leave_the_root_or_hide_are_refused() {
        for key in [
            "a",
            "changes/orders/dt=2026-05-01/x.parquet",
            "a b+c/ä",
            "_started",
            "a..b",
        ] {
            assert_eq!(check_key(key), Ok(()), "{key}");
        }
        let long = "k".repeat(1025);
        for key in [
            "", "/a", "a/", "a//b", "..", "a/../b", "../a", ".", "./a", "a/.b", ".tmp", "a\\b",
            "a\nb", "a\0", &long,
        ] {
            assert!(check_key(key).is_err(), "{key:?}");
        }
    }
}
