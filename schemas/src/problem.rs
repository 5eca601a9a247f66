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

/// Line of a position in a text, from 1.
pub(crate) fn line_of(text: &str, position: usize) -> usize {
    text.get(..position)
        .map_or(0, |before| before.matches('\n').count())
        + 1
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

/// Number of characters to insert, remove, replace or swap with their neighbour.
fn edit_distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    let at = |rows: &[Vec<usize>], row: usize, column: usize| {
        rows.get(row)
            .and_then(|row| row.get(column))
            .copied()
            .unwrap_or(usize::MAX / 2)
    };
    for row in 1..=a.len() {
        rows.push(vec![row]);
        for column in 1..=b.len() {
            let (left, right) = (a.get(row - 1), b.get(column - 1));
            let mut best = (at(&rows, row - 1, column) + 1).min(at(&rows, row, column - 1) + 1);
            best = best.min(at(&rows, row - 1, column - 1) + usize::from(left != right));
            let is_swap =
                row > 1 && column > 1 && left == b.get(column - 2) && a.get(row - 2) == right;
            if is_swap {
                best = best.min(at(&rows, row - 2, column - 2) + 1);
            }
            if let Some(current) = rows.last_mut() {
                current.push(best);
            }
        }
    }
    at(&rows, a.len(), b.len())
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
        assert_eq!(did_you_mean("tabel", ["table"]), Some("table"));
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!((edit_distance("", "ab"), edit_distance("ab", "ba")), (2, 1));
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
