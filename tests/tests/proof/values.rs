//! Random attribute values: such that fit a column, and any.

use dynalake_schemas::{ColumnType, StringFormat, TimeFormat};
use dynalake_tests::Random;
use serde_json::{Map, Value, json};

/// The first one is empty: allowed everywhere but in sets.
const TEXTS: &[&str] = &[
    "",
    " ",
    "a",
    "A",
    "new",
    "shipped",
    "山田 太郎",
    "置き配希望 🚪",
    "null",
    "NaN",
    "0012",
    "a\"b\\c\n\t\u{0}\u{7f}\u{2028}",
    "{\"S\":\"x\"}",
    "#",
];

/// Numbers at the edges of DynamoDB and of the types that the lake has.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "0.10",
    "1e3",
    "1.5",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9007199254740993",
    "-9007199254740998.25",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "11888647184542023637",
    "110111111111111110000000000000000000000",
    "99999999999999999999999999999999999999",
    "-0.00000000000000000000000000000000000001",
    "9.9999999999999999999999999999999999999E+125",
    "-9.9999999999999999999999999999999999999E+125",
    "1E-130",
    "-1E-130",
    "0.0000001",
    "123456789012.34",
];

const NAMES: &[&str] = &["a", "b", "A", "ja", "en", "0", "fle-status", "a.b", "メモ"];

/// Any AttributeValue.
pub fn any(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 9 } else { 13 }) {
        0 | 1 => json!({"S": text(random)}),
        2 | 3 => json!({"N": random.pick(NUMBERS)}),
        4 => json!({"B": binary(random)}),
        5 => json!({"BOOL": random.chance(50)}),
        6 => json!({"NULL": true}),
        7 => json!({"SS": some(random, &TEXTS[1..])}),
        // Spellings of different numbers.
        8 => json!({"NS": some(random, &["1", "-2.50", "1e3", "9007199254740993", "1E-130", "0"])}),
        9 => json!({"BS": some(random, &["AA==", "AAEC", "//79"])}),
        10 | 11 => {
            let size = random.below(4);
            let values: Vec<Value> = (0..size).map(|_| any(random, depth - 1)).collect();
            json!({"L": values})
        }
        _ => {
            let size = random.below(4);
            let members = (0..size).map(|_| {
                let name = (*random.pick(NAMES)).to_owned();
                (name, any(random, depth - 1))
            });
            json!({"M": members.collect::<Map<String, Value>>()})
        }
    }
}

/// A value that the type can hold, exactly or not, and that is no mismatch.
pub fn fitting(random: &mut Random, ty: &ColumnType) -> Value {
    match ty {
        ColumnType::Boolean => json!({"BOOL": random.chance(50)}),
        ColumnType::Int => {
            let edges = ["0", "-0", "7", "1e3", "2147483647", "-2147483648"];
            json!({"N": random.pick(&edges)})
        }
        ColumnType::Bigint => {
            let edges = [
                "0",
                "12",
                "9007199254740993",
                "9223372036854775807",
                "-9223372036854775808",
            ];
            json!({"N": random.pick(&edges)})
        }
        ColumnType::Decimal { precision, scale } => {
            json!({"N": decimal(random, usize::from(*precision), usize::try_from(*scale).unwrap())})
        }
        ColumnType::String(StringFormat::Text) => json!({"S": text(random)}),
        ColumnType::Double | ColumnType::String(StringFormat::Number) => {
            json!({"N": random.pick(NUMBERS)})
        }
        ColumnType::Binary => json!({"B": binary(random)}),
        ColumnType::Date(format) => date(random, format),
        ColumnType::Timestamp(format) => timestamp(random, format),
        ColumnType::Array(child) => {
            let size = random.below(4);
            let values: Vec<Value> = (0..size).map(|_| fitting(random, &child.ty)).collect();
            json!({"L": values})
        }
        ColumnType::Set(child) => match child.ty {
            ColumnType::String(_) => json!({"SS": some(random, &TEXTS[1..])}),
            ColumnType::Binary => json!({"BS": some(random, &["AA==", "AAEC", "//79"])}),
            _ => json!({"NS": some(random, &["0", "12", "-7", "4e2", "4901234567894"])}),
        },
        ColumnType::Map { value, .. } => {
            let size = random.below(4);
            let members = (0..size).map(|_| {
                let name = (*random.pick(NAMES)).to_owned();
                (name, fitting(random, &value.ty))
            });
            json!({"M": members.collect::<Map<String, Value>>()})
        }
        ColumnType::Struct(members) => {
            let mut found = Map::new();
            for member in members {
                if random.chance(80) {
                    let value = fitting(random, &member.ty);
                    found.insert(member.attribute.as_str().to_owned(), value);
                }
            }
            if random.chance(10) {
                found.insert("undeclared".to_owned(), any(random, 1));
            }
            json!({"M": found})
        }
        ColumnType::Json => any(random, 3),
    }
}

fn text(random: &mut Random) -> String {
    match random.below(20) {
        0 => "長".repeat(500 + random.below(1_500)),
        1..=4 => format!("text {}", random.below(1_000)),
        _ => (*random.pick(TEXTS)).to_owned(),
    }
}

fn binary(random: &mut Random) -> &'static str {
    const CHOICES: &[&str] = &["", "AA==", "AAEC", "//79/A==", "ZmFrZSBwbmc="];
    random.pick::<&str>(CHOICES)
}

/// A number of at most so many digits, in one of its spellings.
fn decimal(random: &mut Random, precision: usize, scale: usize) -> String {
    let digits = |random: &mut Random, count: usize| -> String {
        (0..count)
            .map(|_| char::from(b"0123456789"[random.below(10)]))
            .collect()
    };
    let whole = random.below(precision - scale + 1);
    let whole = format!("1{}", digits(random, whole))
        .chars()
        .take(precision - scale)
        .collect::<String>();
    let whole = if whole.is_empty() {
        "0".to_owned()
    } else {
        whole
    };
    let fraction = random.below(scale + 1);
    let fraction = digits(random, fraction);
    let sign = if random.chance(20) { "-" } else { "" };
    match random.below(4) {
        0 => format!("{sign}{whole}"),
        1 if !fraction.is_empty() => format!("{sign}{whole}{fraction}e-{}", fraction.len()),
        _ if fraction.is_empty() => format!("{sign}{whole}.0"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

fn date(random: &mut Random, format: &TimeFormat) -> Value {
    match format {
        TimeFormat::Iso8601 => {
            json!({"S": random.pick(&["2026-05-01", "1970-01-01", "0001-01-01", "9999-12-31"])})
        }
        TimeFormat::Pattern(pattern) => panic!("no date of the pattern {pattern}"),
        epoch => epoch_number(random, epoch, 86_400),
    }
}

fn timestamp(random: &mut Random, format: &TimeFormat) -> Value {
    match format {
        TimeFormat::Iso8601 => json!({"S": random.pick(&[
            "2026-05-01T10:00:00Z",
            "2026-05-01T10:00:00.250Z",
            "1969-12-31T23:59:59.999Z",
            "9999-12-31T23:59:59Z",
        ])}),
        TimeFormat::Pattern(pattern) if pattern == "%Y-%m-%dT%H:%M:%S%:z" => {
            json!({"S": random.pick(&["2026-12-01T08:30:00+09:00", "2026-05-01T00:00:00+00:00"])})
        }
        TimeFormat::Pattern(pattern) => panic!("no time of the pattern {pattern}"),
        epoch => epoch_number(random, epoch, 1),
    }
}

fn epoch_number(random: &mut Random, format: &TimeFormat, unit: i64) -> Value {
    let seconds = *random.pick(&[0, 1_777_629_600, -86_400, 253_402_300_799]) / unit * unit;
    let factor = match format {
        TimeFormat::EpochSeconds => 1,
        TimeFormat::EpochMillis => 1_000,
        _ => 1_000_000,
    };
    json!({"N": (seconds * factor).to_string()})
}

/// One to three different ones.
fn some(random: &mut Random, choices: &[&'static str]) -> Vec<&'static str> {
    let mut choices = choices.to_vec();
    random.shuffle(&mut choices);
    choices.truncate(1 + random.below(3));
    choices
}
