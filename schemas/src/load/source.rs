//! One TOML file with the places of its keys, read section by section.

use std::ops::Range;
use std::sync::Arc;

use toml_edit::{Item, TableLike, Value};

use crate::problem::{Place, Problems, did_you_mean, line_of};

/// A file's name and text, for turning positions into lines.
pub(crate) struct SourceFile {
    name: Arc<str>,
    text: String,
}

impl SourceFile {
    pub(crate) fn new(name: &str, text: String) -> Self {
        Self {
            name: name.into(),
            text,
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn place(&self, span: Option<Range<usize>>) -> Place {
        let line = span.map_or(0, |span| line_of(&self.text, span.start));
        Place {
            file: Arc::clone(&self.name),
            line,
        }
    }

    /// The file as a whole.
    pub(crate) fn whole(&self) -> Place {
        Place {
            file: Arc::clone(&self.name),
            line: 0,
        }
    }
}

/// A table of a TOML file. Keys that nobody asks for are problems.
pub(crate) struct Section<'t> {
    file: &'t SourceFile,
    table: &'t dyn TableLike,
    /// For messages: `[match]`, ``column `x` ``, `an entity file`.
    title: String,
    place: Place,
    asked: Vec<&'static str>,
}

/// A value and where it stands.
#[derive(Clone)]
pub(crate) struct Entry<'t> {
    pub(crate) item: &'t Item,
    pub(crate) place: Place,
}

impl<'t> Section<'t> {
    pub(crate) fn new(
        file: &'t SourceFile,
        table: &'t dyn TableLike,
        title: impl Into<String>,
        place: Place,
    ) -> Self {
        Self {
            file,
            table,
            title: title.into(),
            place,
            asked: Vec::new(),
        }
    }

    pub(crate) fn file(&self) -> &'t SourceFile {
        self.file
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The value of a key, if it is there.
    pub(crate) fn get(&mut self, key: &'static str) -> Option<Entry<'t>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        let (key, item) = self.table.get_key_value(key)?;
        (!item.is_none()).then(|| Entry {
            item,
            place: self.file.place(key.span().or_else(|| item.span())),
        })
    }

    /// All entries in order of the file; for sections whose keys are names.
    pub(crate) fn entries(&self) -> Vec<(&'t str, Entry<'t>)> {
        self.table
            .iter()
            .map(|(name, item)| {
                let span = self.table.key(name).and_then(toml_edit::Key::span);
                (
                    name,
                    Entry {
                        item,
                        place: self.file.place(span.or_else(|| item.span())),
                    },
                )
            })
            .collect()
    }

    pub(crate) fn string(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<(&'t str, Place)> {
        self.value(key, Item::as_str, ("a string", "\"…\""), problems)
    }

    pub(crate) fn boolean(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<(bool, Place)> {
        self.value(key, Item::as_bool, ("true or false", "true"), problems)
    }

    pub(crate) fn integer(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Option<(i32, Place)> {
        let number = |item: &Item| {
            item.as_integer()
                .and_then(|value| i32::try_from(value).ok())
        };
        self.value(key, number, ("a whole number of 32 bits", "1"), problems)
    }

    /// The value of a key as one type; another type is a problem that says what is wanted, with an
    /// example.
    fn value<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&'t Item) -> Option<T>,
        (wanted, example): (&str, &str),
        problems: &mut Problems,
    ) -> Option<(T, Place)> {
        let entry = self.get(key)?;
        let value = read(entry.item);
        if value.is_none() {
            self.wrong_type(key, &entry, wanted, example, problems);
        }
        value.map(|value| (value, entry.place))
    }

    /// A string, or an array of strings.
    pub(crate) fn strings(
        &mut self,
        key: &'static str,
        problems: &mut Problems,
    ) -> Vec<(&'t str, Place)> {
        let Some(entry) = self.get(key) else {
            return Vec::new();
        };
        if let Some(text) = entry.item.as_str() {
            return vec![(text, entry.place)];
        }
        let values: Option<Vec<_>> = entry.item.as_array().and_then(|array| {
            array
                .iter()
                .map(|value| {
                    value
                        .as_str()
                        .map(|text| (text, self.file.place(value.span())))
                })
                .collect()
        });
        values.unwrap_or_else(|| {
            let wanted = "a string or an array of strings";
            self.wrong_type(key, &entry, wanted, "[\"…\", \"…\"]", problems);
            Vec::new()
        })
    }

    /// A table (`[key]` or `key = { … }`) as a section of its own.
    pub(crate) fn section(
        &mut self,
        key: &'static str,
        title: &str,
        problems: &mut Problems,
    ) -> Option<Section<'t>> {
        let wanted = ("a table", "{ … }");
        let (table, place) = self.value(key, Item::as_table_like, wanted, problems)?;
        Some(Section::new(self.file, table, title, place))
    }

    fn wrong_type(
        &self,
        key: &str,
        entry: &Entry<'_>,
        wanted: &str,
        example: &str,
        problems: &mut Problems,
    ) {
        problems.error(
            &entry.place,
            format!(
                "`{key}` in {} is {}, not {wanted}",
                self.title,
                type_name(entry.item)
            ),
            format!("write `{key} = {example}`"),
        );
    }

    /// Reports the keys that were not asked for.
    pub(crate) fn finish(self, problems: &mut Problems) {
        for (name, entry) in self.entries() {
            if self.asked.contains(&name) {
                continue;
            }
            let remedy = match did_you_mean(name, self.asked.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("{} takes {}", self.title, self.asked.join(", ")),
            };
            problems.error(
                &entry.place,
                format!("{} has no key `{name}`", self.title),
                remedy,
            );
        }
    }
}

/// What a TOML value is, for messages.
pub(crate) fn type_name(item: &Item) -> &'static str {
    match item {
        Item::None => "nothing",
        Item::Table(_) | Item::Value(Value::InlineTable(_)) => "a table",
        Item::ArrayOfTables(_) | Item::Value(Value::Array(_)) => "an array",
        Item::Value(value) => match value {
            Value::String(_) => "a string",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Boolean(_) => "true or false",
            Value::Datetime(_) => "a date or time",
            Value::Array(_) | Value::InlineTable(_) => "a table",
        },
    }
}
