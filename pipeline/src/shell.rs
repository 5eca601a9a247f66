//! Words of commands that messages print, as a shell takes them.

use std::path::Path;

/// A word, in quotation marks where a POSIX shell would not take it as it stands.
///
/// ```
/// use dynalake_pipeline::shell::quoted;
///
/// assert_eq!(quoted("s3://bucket/lake"), "s3://bucket/lake");
/// assert_eq!(quoted("my lake"), "'my lake'");
/// ```
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A path as a word. What is not UTF-8 in it is lost, as in all messages.
#[must_use]
pub fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_needed() {
        assert_eq!(quoted("target/release/dynalake"), "target/release/dynalake");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("~/a"), "'~/a'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted_path(Path::new("a b/c")), "'a b/c'");
    }
}
