//! What the values of one attribute have in common, in bounded memory, and the tightest type that
//! gives each of them back.

use std::collections::BTreeMap;

use chrono::{NaiveDate, NaiveDateTime};
use dynalake_pipeline::json::{Tag, Value};
use dynalake_schemas::naming::{column_name, is_column_name};

/// Deeper values are `json`.
const DEPTH: usize = 6;
/// Members of a map that are told apart; with more, their names are data.
const MEMBERS: usize = 64;

/// The values of one attribute, element or member.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// How many, NULL too.
    pub(super) count: u64,
    nulls: u64,
    booleans: u64,
    binaries: u64,
    texts: Texts,
    numbers: Numbers,
    lists: u64,
    maps: u64,
    string_sets: u64,
    number_sets: u64,
    binary_sets: u64,
    /// Of lists, sets, and of maps with too many names.
    elements: Option<Box<Seen>>,
    members: BTreeMap<String, Seen>,
    names_are_data: bool,
    is_too_deep: bool,
}

#[derive(Debug, Clone, Default)]
struct Texts {
    count: u64,
    dates: u64,
    instants: u64,
    locals: u64,
    spaced: u64,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
struct Numbers {
    count: u64,
    /// Most digits before and after the point.
    whole: usize,
    fraction: usize,
    beyond_int: bool,
    beyond_bigint: bool,
    beyond_seconds: bool,
    beyond_millis: bool,
}

/// A type as the schema language spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Typed {
    /// `array<struct<sku:string>>`.
    pub(super) text: String,
    /// `format` of the value itself.
    pub(super) format: Option<String>,
    /// `formats` of what is in it, by path.
    pub(super) formats: BTreeMap<String, String>,
    /// The attribute of every struct member, by path.
    pub(super) fields: BTreeMap<String, String>,
}

impl Typed {
    fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            format: None,
            formats: BTreeMap::new(),
            fields: BTreeMap::new(),
        }
    }

    fn timed(text: &str, format: &str) -> Self {
        Self {
            format: Some(format.to_owned()),
            ..Self::plain(text)
        }
    }
}

impl Seen {
    /// Takes note of a value.
    pub(super) fn see(&mut self, value: Value<'_>) {
        self.look(value, 0);
    }

    fn look(&mut self, value: Value<'_>, depth: usize) {
        self.count += 1;
        if depth > DEPTH {
            self.is_too_deep = true;
            return;
        }
        match value.tag() {
            Tag::Null | Tag::NullFalse => self.nulls += 1,
            Tag::True | Tag::False => self.booleans += 1,
            Tag::B => self.binaries += 1,
            Tag::S | Tag::Name => self.texts.see(&value.text()),
            Tag::N => self.numbers.see(&value.number()),
            Tag::L => {
                self.lists += 1;
                self.look_into(value, depth);
            }
            Tag::Ss => {
                self.string_sets += 1;
                self.look_into(value, depth);
            }
            Tag::Ns => {
                self.number_sets += 1;
                self.look_into(value, depth);
            }
            Tag::Bs => {
                self.binary_sets += 1;
                self.look_into(value, depth);
            }
            Tag::M => {
                self.maps += 1;
                for (name, member) in value.members() {
                    let elements = self.elements.get_or_insert_default();
                    elements.look(member, depth + 1);
                    let name = name.text();
                    if self.names_are_data {
                        continue;
                    }
                    if self.members.len() >= MEMBERS && !self.members.contains_key(name.as_ref()) {
                        self.names_are_data = true;
                        self.members.clear();
                        continue;
                    }
                    let member_seen = self.members.entry(name.into_owned()).or_default();
                    member_seen.look(member, depth + 1);
                }
            }
        }
    }

    fn look_into(&mut self, list: Value<'_>, depth: usize) {
        let elements = self.elements.get_or_insert_default();
        for element in list.elements() {
            elements.look(element, depth + 1);
        }
    }

    /// The tightest type that gives every value back. `name` is the attribute's.
    pub(super) fn typed(&self, name: &str) -> Typed {
        let kinds = [
            self.booleans,
            self.binaries,
            self.texts.count,
            self.numbers.count,
            self.lists,
            self.maps,
            self.string_sets,
            self.number_sets,
            self.binary_sets,
        ];
        if self.is_too_deep || kinds.iter().filter(|count| **count > 0).count() != 1 {
            return Typed::plain("json");
        }
        if self.booleans > 0 {
            Typed::plain("boolean")
        } else if self.binaries > 0 {
            Typed::plain("binary")
        } else if self.texts.count > 0 {
            self.texts.typed()
        } else if self.numbers.count > 0 {
            self.numbers.typed(name)
        } else if self.maps > 0 {
            self.map()
        } else if self.lists > 0 {
            self.around("array", name)
        } else {
            self.set()
        }
    }

    fn set(&self) -> Typed {
        let text = if self.string_sets > 0 {
            "set<string>".to_owned()
        } else if self.binary_sets > 0 {
            "set<binary>".to_owned()
        } else {
            let numbers = self.elements.as_ref().map(|it| it.numbers.plain());
            match numbers {
                Some(number) if number.format.is_none() => format!("set<{}>", number.text),
                _ => return Typed::plain("json"),
            }
        };
        Typed::plain(&text)
    }

    /// `array<…>` or `map<string,…>` around the elements.
    fn around(&self, container: &str, name: &str) -> Typed {
        let inner = match &self.elements {
            // A NULL element would be held inexactly, and no element tells no type.
            Some(elements) if elements.count > 0 && elements.nulls == 0 => elements.typed(name),
            _ => return Typed::plain("json"),
        };
        // Lists and maps have no part in paths: those of what is in them are theirs too.
        let text = match container {
            "array" => format!("array<{}>", inner.text),
            _ => format!("map<string,{}>", inner.text),
        };
        Typed { text, ..inner }
    }

    fn map(&self) -> Typed {
        if self.members.is_empty() && !self.names_are_data {
            return Typed::plain("json");
        }
        let names_are_data =
            self.names_are_data || self.members.keys().any(|name| !may_be_field(name));
        if names_are_data {
            return self.around("map", "");
        }
        let mut typed = Typed::plain("");
        let mut fields: BTreeMap<String, String> = BTreeMap::new();
        for (name, seen) in &self.members {
            let field = column_name(name);
            if seen.nulls > 0 || fields.contains_key(&field) {
                return Typed::plain("json");
            }
            let inner = seen.typed(name);
            if let Some(format) = inner.format {
                typed.formats.insert(field.clone(), format);
            }
            for (path, format) in inner.formats {
                typed.formats.insert(format!("{field}.{path}"), format);
            }
            for (path, attribute) in inner.fields {
                typed.fields.insert(format!("{field}.{path}"), attribute);
            }
            typed.fields.insert(field.clone(), name.clone());
            fields.insert(field, inner.text);
        }
        let members: Vec<String> = fields.iter().map(|(f, t)| format!("{f}:{t}")).collect();
        typed.text = format!("struct<{}>", members.join(","));
        typed
    }

    /// Whether every value is text.
    pub(super) fn is_text(&self) -> bool {
        self.count > 0 && self.texts.count == self.count
    }

    /// How many are NULL.
    pub(super) fn nulls(&self) -> u64 {
        self.nulls
    }
}

/// Whether a map's member name is a name, and no date, number or identifier.
fn may_be_field(name: &str) -> bool {
    let field = column_name(name);
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= 64
        && is_column_name(&field)
        && name.bytes().filter(u8::is_ascii_digit).count() <= 2
}

impl Texts {
    fn see(&mut self, text: &str) {
        self.count += 1;
        match text_shape(text) {
            Some(TextShape::Date) => self.dates += 1,
            Some(TextShape::Instant) => self.instants += 1,
            Some(TextShape::Local) => self.locals += 1,
            Some(TextShape::Spaced) => self.spaced += 1,
            None => {}
        }
    }

    fn typed(&self) -> Typed {
        let all = |count: u64| count == self.count;
        if all(self.dates) {
            Typed::plain("date")
        } else if all(self.instants) {
            Typed::plain("timestamp")
        } else if all(self.locals) {
            Typed::timed("timestamp", "%Y-%m-%dT%H:%M:%S")
        } else if all(self.spaced) {
            Typed::timed("timestamp", "%Y-%m-%d %H:%M:%S")
        } else {
            Typed::plain("string")
        }
    }
}

/// How a text spells a day or an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextShape {
    /// `2026-01-31`.
    Date,
    /// `2026-01-31T10:00:00Z`, `…00.123Z`.
    Instant,
    /// `2026-01-31T10:00:00`.
    Local,
    /// `2026-01-31 10:00:00`.
    Spaced,
}

/// The shape of a text that its type would spell in exactly the same way.
pub(super) fn text_shape(text: &str) -> Option<TextShape> {
    let is_second = |text: &str, pattern: &str| {
        text.len() == 19
            && text.starts_with(['1', '2'])
            && NaiveDateTime::parse_from_str(text, pattern)
                .is_ok_and(|time| time.format(pattern).to_string() == text)
    };
    if text.len() == 10 {
        let is_day = text.starts_with(['1', '2'])
            && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok_and(|day| day.to_string() == text);
        return is_day.then_some(TextShape::Date);
    }
    if is_second(text, "%Y-%m-%dT%H:%M:%S") {
        return Some(TextShape::Local);
    }
    if is_second(text, "%Y-%m-%d %H:%M:%S") {
        return Some(TextShape::Spaced);
    }
    let seconds = text.strip_suffix('Z')?;
    let (seconds, is_fraction) = match seconds.split_once('.') {
        None => (seconds, true),
        Some((seconds, fraction)) => (
            seconds,
            fraction.len() == 3
                && fraction != "000"
                && fraction.bytes().all(|byte| byte.is_ascii_digit()),
        ),
    };
    (is_fraction && is_second(seconds, "%Y-%m-%dT%H:%M:%S")).then_some(TextShape::Instant)
}

impl Numbers {
    fn see(&mut self, number: &str) {
        self.count += 1;
        let digits = number.strip_prefix('-').unwrap_or(number);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole_digits = if whole == "0" { 0 } else { whole.len() };
        self.whole = self.whole.max(whole_digits);
        self.fraction = self.fraction.max(fraction.len());
        self.beyond_int |= number.parse::<i32>().is_err();
        let integer = number.parse::<i64>().ok();
        self.beyond_bigint |= integer.is_none();
        let is_in = |from: i64, to: i64| integer.is_some_and(|it| (from..to).contains(&it));
        self.beyond_seconds |= !is_in(1_000_000_000, 5_000_000_000);
        self.beyond_millis |= !is_in(1_000_000_000_000, 5_000_000_000_000);
    }

    fn typed(&self, name: &str) -> Typed {
        if is_time_name(name) && !self.beyond_seconds {
            return Typed::timed("timestamp", "epoch_s");
        }
        if is_time_name(name) && !self.beyond_millis {
            return Typed::timed("timestamp", "epoch_ms");
        }
        self.plain()
    }

    fn plain(&self) -> Typed {
        if self.count == 0 {
            return Typed::plain("json");
        }
        if !self.beyond_int {
            return Typed::plain("int");
        }
        if !self.beyond_bigint {
            return Typed::plain("bigint");
        }
        let (whole, fraction) = (self.whole.max(1), self.fraction);
        if whole + fraction <= 38 {
            return Typed::plain(&format!("decimal({},{fraction})", whole + fraction));
        }
        Typed::timed("string", "number")
    }
}

/// Whether a number of this name may be an instant.
fn is_time_name(name: &str) -> bool {
    let name = column_name(name);
    let words = [
        "at",
        "time",
        "date",
        "ttl",
        "expires",
        "expiry",
        "expire",
        "timestamp",
        "created",
        "updated",
        "modified",
        "ct",
        "md",
        "expdate",
        "epoch",
        "ts",
        "on",
    ];
    name.split('_').any(|word| words.contains(&word))
}
