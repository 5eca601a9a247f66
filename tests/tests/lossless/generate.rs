//! Random items, in random spellings, and random schemas that often (not always) fit them.

use std::fmt::Write as _;

use dynalake_schemas::Catalog;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Items with the keys `I#0`, `I#1`, … and a schema for them.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) catalog: Catalog,
    pub(crate) items: Vec<String>,
}

/// Column types that are tried on every attribute.
pub(crate) const SAMPLE_TYPES: &[&str] = &[
    "boolean",
    "int",
    "bigint",
    "double",
    "decimal(12,2)",
    "decimal(38,0)",
    "decimal(38,10)",
    "string",
    "binary",
    "date",
    "timestamp",
    "json",
    "array<string>",
    "array<int>",
    "array<json>",
    "array<array<decimal(6,2)>>",
    "array<struct<a:string,b:int,order_id:string>>",
    "set<string>",
    "set<bigint>",
    "set<decimal(20,4)>",
    "set<binary>",
    "map<string,string>",
    "map<string,int>",
    "map<string,array<string>>",
    "map<string,json>",
    "struct<a:int,b:string>",
    "struct<a:string,order_id:string,c:struct<a:int,b:map<string,int>>>",
];

/// Formats that are tried on times.
const TIME_FORMATS: &[&str] = &[
    "iso8601",
    "epoch_s",
    "epoch_ms",
    "epoch_us",
    "%Y-%m-%dT%H:%M:%S%.3fZ",
    "%Y-%m-%d %H:%M",
];

const NAMES: &[&str] = &[
    "a",
    "b",
    "c",
    "value",
    "orderId",
    "order_id",
    "OrderID",
    "fle-status",
    "a.b",
    "__edb_e__",
    "注文",
    "$10",
    "null",
    "it's \"so\"\\\u{1}\n",
];

pub(crate) fn case() -> impl Strategy<Value = Case> {
    (
        vec(item(), 1..6),
        vec(column(), 0..8),
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(|(items, columns, typed_key, seed)| {
            let items = items
                .into_iter()
                .enumerate()
                .map(|(number, mut item)| {
                    item.insert("PK".to_owned(), json!({ "S": format!("I#{number}") }));
                    spell_object(&item, &mut Spelling(seed ^ u64::try_from(number).unwrap()))
                })
                .collect();
            let mut lines = String::new();
            for (name, (ty, format)) in columns.iter().enumerate().map(|(n, c)| (NAMES[n % 4], c)) {
                // Column names must be unique: the first of each name is taken.
                if !lines.contains(&format!("\n{name} = ")) {
                    lines.push_str(&column_line(name, ty, format));
                }
            }
            lines.push_str(&column_line("order_id", "string", "iso8601"));
            if typed_key {
                lines.push_str("\npk = \"string\"");
            }
            Case {
                catalog: catalog(
                    &lines,
                    ["snake", "camel", "pascal"][usize::try_from(seed % 3).unwrap()],
                ),
                items,
            }
        })
}

/// A catalog with one column `value`.
pub(crate) fn one_column(ty: &str) -> Catalog {
    catalog(&column_line("value", ty, "iso8601"), "snake")
}

fn column() -> impl Strategy<Value = (&'static str, &'static str)> {
    (
        proptest::sample::select(SAMPLE_TYPES),
        proptest::sample::select(TIME_FORMATS),
    )
}

fn column_line(name: &str, ty: &str, format: &str) -> String {
    let date = ty == "date" && !matches!(format, "iso8601" | "epoch_s" | "epoch_ms" | "epoch_us");
    let format = if date { "%Y/%m/%d" } else { format };
    if matches!(ty, "date" | "timestamp") {
        format!("\n{name} = {{ type = \"{ty}\", format = \"{format}\" }}")
    } else {
        format!("\n{name} = \"{ty}\"")
    }
}

fn catalog(columns: &str, case: &str) -> Catalog {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "lake.toml",
        &format!(
            "database = \"random\"\n[source]\npartition_key = \"PK\"\nattribute_case = \"{case}\"\n"
        ),
    );
    let entity = "entity = \"item\"\ntable = \"items\"\nversion = 1\n[match]\npartition_key = \"I#{number}\"\n";
    write(
        "item.toml",
        &format!("{entity}[columns]\nnumber = \"int\"{columns}\n"),
    );
    Catalog::load(folder.path()).unwrap_or_else(|problems| panic!("{problems}\n{columns}"))
}

fn item() -> impl Strategy<Value = Map<String, Value>> {
    btree_map(proptest::sample::select(NAMES), attribute_value(), 0..8).prop_map(|members| {
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    })
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i16>().prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        "-?[1-9][0-9]{0,9}\\.[0-9]{1,4}",
        "-?[1-9][0-9]{0,37}",
        "-?[1-9]\\.[0-9]{0,37}[eE]-?[0-9]{1,2}",
        "[-+]?0{0,2}[0-9]{1,3}\\.0{0,3}",
        (1_600_000_000i64..1_900_000_000).prop_map(|n| n.to_string()),
        (1_600_000_000_000i64..1_900_000_000_000).prop_map(|n| n.to_string()),
        Just("0e7".to_owned()),
        Just("1E125".to_owned()),
        Just("-7e-130".to_owned()),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,12}",
        "[\\x00-\\x1f\"\\\\/a]{0,6}",
        "20[0-9]{2}-0[1-9]-[0-2][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,7})?(Z|\\+09:00)",
        "20[0-9]{2}[-/]0[1-9][-/][0-2][0-9]",
        "-?[0-9]{1,4}",
        Just("0001-01-01T00:00:00Z".to_owned()),
        Just("9999-12-31T23:59:59.999Z".to_owned()),
    ]
}

fn base64() -> impl Strategy<Value = String> {
    use base64::Engine;
    vec(any::<u8>(), 0..10)
        .prop_map(|bytes| base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// Any AttributeValue, all ten types, nested.
fn attribute_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => text().prop_map(|text| json!({ "S": text })),
        3 => number().prop_map(|number| json!({ "N": number })),
        1 => base64().prop_map(|bytes| json!({ "B": bytes })),
        1 => any::<bool>().prop_map(|value| json!({ "BOOL": value })),
        1 => Just(json!({ "NULL": true })),
        1 => vec(text(), 0..4).prop_map(|values| json!({ "SS": values })),
        1 => vec(number(), 0..4).prop_map(|values| json!({ "NS": values })),
        1 => vec(base64(), 0..4).prop_map(|values| json!({ "BS": values })),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(|values| json!({ "L": values })),
            btree_map(proptest::sample::select(NAMES), inner.clone(), 0..5)
                .prop_map(|members| json!({ "M": members })),
            btree_map("\\PC{0,4}", inner, 0..3).prop_map(|members| json!({ "M": members })),
        ]
    })
}

/// Where a spelling may vary: white space, member order, escapes.
struct Spelling(u64);

impl Spelling {
    fn choose(&mut self, options: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % options
    }

    fn space(&mut self) -> &'static str {
        ["", "", "", "", " ", "\n", "\t "][usize::try_from(self.choose(7)).unwrap()]
    }
}

/// The same item in another spelling.
pub(crate) fn respell(item: &str, seed: u64) -> String {
    let item: Map<String, Value> = serde_json::from_str(item).unwrap();
    spell_object(&item, &mut Spelling(seed))
}

fn spell_object(members: &Map<String, Value>, spelling: &mut Spelling) -> String {
    let mut members: Vec<_> = members.iter().collect();
    if !members.is_empty() {
        let turn = usize::try_from(spelling.choose(members.len() as u64)).unwrap();
        members.rotate_left(turn);
    }
    let members: Vec<String> = members
        .into_iter()
        .map(|(name, value)| {
            let (name, space) = (spell_text(name, spelling), spelling.space());
            format!("{space}{name}{space}:{}", spell(value, spelling))
        })
        .collect();
    format!("{{{}{}}}", members.join(","), spelling.space())
}

fn spell(value: &Value, spelling: &mut Spelling) -> String {
    let space = spelling.space();
    let text = match value {
        Value::Object(members) => {
            // The elements of a set have no order.
            if let Some((tag @ ("SS" | "NS" | "BS"), Value::Array(elements))) = members
                .iter()
                .next()
                .map(|(tag, value)| (tag.as_str(), value))
                && !elements.is_empty()
            {
                let mut elements = elements.clone();
                let turn = usize::try_from(spelling.choose(elements.len() as u64)).unwrap();
                elements.rotate_left(turn);
                return format!("{{\"{tag}\":{}}}", spell(&Value::Array(elements), spelling));
            }
            spell_object(members, spelling)
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(|e| spell(e, spelling)).collect();
            format!("[{}]", elements.join(","))
        }
        Value::String(text) => spell_text(text, spelling),
        other => other.to_string(),
    };
    format!("{space}{text}{space}")
}

fn spell_text(text: &str, spelling: &mut Spelling) -> String {
    let mut spelled = String::from("\"");
    for character in text.chars() {
        let escape = character < ' ' || matches!(character, '"' | '\\') || spelling.choose(20) == 0;
        if escape {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(spelled, "\\u{unit:04x}").unwrap();
            }
        } else {
            spelled.push(character);
        }
    }
    spelled.push('"');
    spelled
}
