//! What is wrong with a schema folder: every problem at once, each with its place and its remedy.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Whether a problem stops the catalog from being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The catalog cannot be used.
    Error,
    /// The catalog can be used; somebody may be surprised later.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// One thing that is wrong, where, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Error or warning.
    pub severity: Severity,
    /// File, as it was opened.
    pub file: String,
    /// Line in the file, from 1; 0 when the problem is the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(
            f,
            ": {}: {}\n  remedy: {}",
            self.severity, self.what, self.remedy
        )
    }
}

/// All problems of a schema folder, in order of file and line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems {
    list: Vec<Problem>,
}

impl Problems {
    /// The problems.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }

    /// Number of problems, warnings included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of errors.
    pub fn error_count(&self) -> usize {
        self.list
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
            .count()
    }

    /// Number of warnings.
    pub fn warning_count(&self) -> usize {
        self.list.len() - self.error_count()
    }

    /// Whether any of them is an error.
    pub fn has_errors(&self) -> bool {
        self.error_count() > 0
    }

    /// Whether any error is about this file.
    pub(crate) fn has_errors_in(&self, file: &str) -> bool {
        self.list
            .iter()
            .any(|problem| problem.severity == Severity::Error && problem.file == file)
    }

    pub(crate) fn error(
        &mut self,
        place: &Place,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Severity::Error, place, what.into(), remedy.into());
    }

    pub(crate) fn warning(
        &mut self,
        place: &Place,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Severity::Warning, place, what.into(), remedy.into());
    }

    fn push(&mut self, severity: Severity, place: &Place, what: String, remedy: String) {
        let file = place.file.to_string();
        self.list.push(Problem {
            severity,
            file,
            line: place.line,
            what,
            remedy,
        });
    }

    /// Puts them in the order in which people read files.
    pub(crate) fn sort(&mut self) {
        self.list
            .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: Arc<str>,
    pub(crate) line: usize,
}

/// The candidate that was probably meant, if one is near enough.
pub(crate) fn did_you_mean<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    let allowed = match written.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&written, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (row, left) in a.chars().enumerate() {
        let mut current = Vec::with_capacity(previous.len());
        current.push(row + 1);
        for (right, pair) in b.iter().zip(previous.windows(2)) {
            let (diagonal, above) = match pair {
                [diagonal, above] => (*diagonal, *above),
                _ => continue,
            };
            let beside = current.last().copied().unwrap_or(row + 1);
            let replace = diagonal + usize::from(left != *right);
            current.push(replace.min(above + 1).min(beside + 1));
        }
        previous = current;
    }
    previous.last().copied().unwrap_or_default()
}

/// `` `a`, `b` and `c` `` for messages.
pub(crate) fn list_names<S: AsRef<str>>(names: &[S]) -> String {
    let quoted: Vec<String> = names
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    match quoted.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["partition_key", "sort_key", "attributes"];
        assert_eq!(did_you_mean("partition_kye", known), Some("partition_key"));
        assert_eq!(did_you_mean("Sort_Key", known), Some("sort_key"));
        assert_eq!(did_you_mean("filter", known), None);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_problem_reads_as_place_what_and_remedy() {
        let mut problems = Problems::default();
        let place = Place {
            file: "a.toml".into(),
            line: 3,
        };
        problems.error(&place, "no", "yes");
        assert_eq!(problems.to_string(), "a.toml:3: error: no\n  remedy: yes");
        assert_eq!((problems.error_count(), problems.warning_count()), (1, 0));
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        assert_eq!(list_names(&["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(list_names(&["a"]), "`a`");
    }
}
