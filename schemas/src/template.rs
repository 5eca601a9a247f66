//! Key templates: `ORDER#{order_date}#{order_id}` in, [`Template`] out.
//!
//! `{name}` captures one or more characters without the separator, `{name*}` with it,
//! `{name:int}`, `{name:date}`, `{name:uuid}` and `{name:ulid}` only text of that shape; `{_}`,
//! `{_*}` and `{_:int}` match the same without keeping it. `{{` and `}}` are the braces themselves.

use crate::model::{CaptureKind, Segment, Template};
use crate::naming::{column_name, is_column_name};
use crate::problem::did_you_mean;

/// Separator of key parts unless a schema says otherwise.
pub const DEFAULT_SEPARATOR: &str = "#";

const KINDS: &[&str] = &["int", "date", "uuid", "ulid"];

/// A template that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub remedy: String,
}

impl Template {
    /// Parses a template. Names of captures are looked up in `captures`, new ones are added to it.
    pub fn parse(
        text: &str,
        separator: &str,
        captures: &mut Vec<String>,
    ) -> Result<Self, TemplateError> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut literal = String::new();
        let mut used: Vec<usize> = Vec::new();
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = rest.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{') {
                let Some((body, after)) = after.split_once('}') else {
                    return Err(error(
                        text,
                        "`{` is not closed",
                        "close the capture with `}`",
                    ));
                };
                let (name, kind) = capture(text, body)?;
                if !literal.is_empty() {
                    segments.push(Segment::Literal(std::mem::take(&mut literal)));
                }
                check_neighbours(text, segments.last(), kind)?;
                let index = match name {
                    None => None,
                    Some(name) => Some(capture_index(text, name, captures, &mut used)?),
                };
                segments.push(Segment::Capture { index, kind });
                rest = after;
            } else if character == '}' {
                return Err(error(
                    text,
                    "`}` closes no capture",
                    "write `}}` for the character itself",
                ));
            } else {
                literal.push(character);
                rest = rest.strip_prefix(character).unwrap_or_default();
            }
        }
        if !literal.is_empty() {
            segments.push(Segment::Literal(literal));
        }
        if segments.is_empty() {
            return Err(error(
                text,
                "it is empty, and no key is",
                "remove it to match any key, or write the key's text",
            ));
        }
        Ok(Self {
            text: text.to_owned(),
            segments,
            separator: separator.to_owned(),
        })
    }

    /// The text it begins with; empty when it begins with a capture.
    pub(crate) fn beginning(&self) -> &str {
        match self.segments.first() {
            Some(Segment::Literal(text)) => text,
            _ => "",
        }
    }

    /// Whether the capture with this index stands in it.
    pub(crate) fn captures(&self, wanted: usize) -> bool {
        self.segments.iter().any(|segment| {
            matches!(segment, Segment::Capture { index: Some(index), .. } if *index == wanted)
        })
    }

    /// Number of key parts (what stands between separators) that are literal text and not empty:
    /// 1 in `ORDER#{id}`, 1 in `#META#`, 0 in `cus{n}`.
    pub(crate) fn literal_parts(&self) -> usize {
        let mut count = 0;
        let mut text = String::new();
        let mut has_capture = false;
        for segment in &self.segments {
            match segment {
                Segment::Capture { .. } => has_capture = true,
                Segment::Literal(literal) if self.separator.is_empty() => text.push_str(literal),
                Segment::Literal(literal) => {
                    let mut parts = literal.split(self.separator.as_str());
                    text.push_str(parts.next().unwrap_or_default());
                    for part in parts {
                        count += usize::from(!has_capture && !text.is_empty());
                        has_capture = false;
                        text.clear();
                        text.push_str(part);
                    }
                }
            }
        }
        count + usize::from(!has_capture && !text.is_empty())
    }
}

fn error(text: &str, what: &str, remedy: &str) -> TemplateError {
    TemplateError {
        what: format!("template `{text}`: {what}"),
        remedy: remedy.to_owned(),
    }
}

/// Name (`None` for `_`) and kind of what stands between braces.
fn capture<'t>(text: &str, body: &'t str) -> Result<(Option<&'t str>, CaptureKind), TemplateError> {
    let (name, kind) = if let Some((name, kind)) = body.split_once(':') {
        let kind = match kind {
            "int" => CaptureKind::Int,
            "date" => CaptureKind::Date,
            "uuid" => CaptureKind::Uuid,
            "ulid" => CaptureKind::Ulid,
            other => {
                let remedy = match did_you_mean(other, KINDS.iter().copied()) {
                    Some(meant) => format!("write `{{{name}:{meant}}}`"),
                    None => "use int, date, uuid or ulid; the column's type is given in [columns]"
                        .to_owned(),
                };
                return Err(error(
                    text,
                    &format!("`{other}` is not a kind of capture"),
                    &remedy,
                ));
            }
        };
        (name, kind)
    } else if let Some(name) = body.strip_suffix('*') {
        (name, CaptureKind::Rest)
    } else {
        (body, CaptureKind::Any)
    };
    if name == "_" {
        return Ok((None, kind));
    }
    if is_column_name(name) && !name.starts_with('_') {
        return Ok((Some(name), kind));
    }
    let ours = column_name(name);
    let remedy = if is_column_name(&ours) && !ours.starts_with('_') {
        format!("write `{{{ours}}}`, or `{{_}}` to keep nothing")
    } else {
        "name it in a-z, 0-9 and _, not beginning with _; or write `{_}` to keep nothing".to_owned()
    };
    Err(error(
        text,
        &format!("`{name}` is not a capture's name"),
        &remedy,
    ))
}

/// Where one capture ends and the next begins must be decided by the text.
fn check_neighbours(
    text: &str,
    before: Option<&Segment>,
    kind: CaptureKind,
) -> Result<(), TemplateError> {
    match before {
        Some(Segment::Capture { kind: before, .. })
            if before.fixed_length().is_none() && kind.fixed_length().is_none() =>
        {
            Err(error(
                text,
                "two captures follow each other without text between them",
                "put the text that separates them between the captures, or make them one",
            ))
        }
        _ => Ok(()),
    }
}

fn capture_index(
    text: &str,
    name: &str,
    captures: &mut Vec<String>,
    used: &mut Vec<usize>,
) -> Result<usize, TemplateError> {
    let index = captures
        .iter()
        .position(|known| known == name)
        .unwrap_or(captures.len());
    if used.contains(&index) {
        return Err(error(
            text,
            &format!("it captures `{name}` twice"),
            "name the two captures differently, or write `{_}` for one of them",
        ));
    }
    if index == captures.len() {
        captures.push(name.to_owned());
    }
    used.push(index);
    Ok(index)
}

impl CaptureKind {
    /// Length in bytes of every text of this kind, where there is only one.
    pub(crate) fn fixed_length(self) -> Option<usize> {
        match self {
            Self::Any | Self::Rest | Self::Int => None,
            Self::Date => Some(10),
            Self::Uuid => Some(36),
            Self::Ulid => Some(26),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Template, Vec<String>), TemplateError> {
        let mut captures = Vec::new();
        Template::parse(text, "#", &mut captures).map(|template| (template, captures))
    }

    #[test]
    fn literals_and_captures_are_told_apart() {
        let (template, captures) = parse("ORDER#{day:date}#{id}{{x}}").unwrap();
        assert_eq!(captures, ["day", "id"]);
        assert_eq!(
            template.segments,
            [
                Segment::Literal("ORDER#".to_owned()),
                Segment::Capture {
                    index: Some(0),
                    kind: CaptureKind::Date
                },
                Segment::Literal("#".to_owned()),
                Segment::Capture {
                    index: Some(1),
                    kind: CaptureKind::Any
                },
                Segment::Literal("{x}".to_owned()),
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_says_what_to_write() {
        for (text, what, remedy) in [
            ("", "is empty", "remove it"),
            ("A#{id", "not closed", "`}`"),
            ("A#id}", "closes no capture", "`}}`"),
            ("A#{}", "`` is not a capture's name", "`{_}`"),
            (
                "A#{userId}",
                "`userId` is not a capture's name",
                "write `{user_id}`",
            ),
            (
                "A#{_pk}",
                "`_pk` is not a capture's name",
                "not beginning with _",
            ),
            (
                "A#{id:integer}",
                "not a kind of capture",
                "int, date, uuid or ulid",
            ),
            ("A#{id:dat}", "not a kind of capture", "`{id:date}`"),
            ("A#{a}{b}", "follow each other", "between the captures"),
            ("A#{a:int}{b*}", "follow each other", "between the captures"),
            ("A#{a}#{a}", "captures `a` twice", "`{_}`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.what.contains(what), "{text}: {}", error.what);
            assert!(error.remedy.contains(remedy), "{text}: {}", error.remedy);
        }
        assert!(
            parse("{d:date}{rest*}").is_ok(),
            "a date ends after ten characters"
        );
    }

    #[test]
    fn literal_parts_are_counted_between_separators() {
        for (text, parts) in [
            ("USER#{id}", 1),
            ("METADATA", 1),
            ("#META#", 1),
            ("#{x}#", 0),
            ("cus{n}", 0),
            ("{x}#follower", 1),
            ("A#{x}#B#{y}", 2),
            ("A#{x*}", 1),
            ("A#x{n}#B", 2),
        ] {
            assert_eq!(parse(text).unwrap().0.literal_parts(), parts, "{text}");
        }
    }
}
