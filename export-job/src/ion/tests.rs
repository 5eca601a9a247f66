use dynalake_pipeline::json::canonical_item;
use ion_rs::{Decimal, Element, TextFormat, Value, WriteConfig};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn converted(line: &str) -> Result<String, Reject> {
    let mut json = "left over".to_owned();
    to_json(line.as_bytes(), &mut json).map(|()| json)
}

/// The JSON of `value` as the attribute `a` of an item.
fn attribute(value: &str) -> Result<String, Reject> {
    let json = converted(&format!("$ion_1_0 {{Item:{{a:{value}}}}}"))?;
    let json = json.strip_prefix(r#"{"Item":{"a":"#).unwrap();
    Ok(json.strip_suffix("}}").unwrap().to_owned())
}

#[test]
fn a_line_as_aws_writes_it() {
    let line = r#"$ion_1_0 {Item:{PK:"USER#u1",total:12345678901234567890.123456789012345678,price:6d2,tags:$dynamodb_SS::["b","a"],scores:$dynamodb_NS::[1.,0.5,-3.],blob:{{AAEC/w==}},blobs:$dynamodb_BS::[{{AA==}},{{/w==}}],active:true,gone:null,empty:"",emptyList:[],emptyMap:{},mixed:["x",2.,{k:false}],'odd name':"quoted field"}}"#;
    let expected = r#"{"Item":{"PK":{"S":"USER#u1"},"total":{"N":"12345678901234567890.123456789012345678"},"price":{"N":"600"},"tags":{"SS":["b","a"]},"scores":{"NS":["1","0.5","-3"]},"blob":{"B":"AAEC/w=="},"blobs":{"BS":["AA==","/w=="]},"active":{"BOOL":true},"gone":{"NULL":true},"empty":{"S":""},"emptyList":{"L":[]},"emptyMap":{"M":{}},"mixed":{"L":[{"S":"x"},{"N":"2"},{"M":{"k":{"BOOL":false}}}]},"odd name":{"S":"quoted field"}}}"#;
    assert_eq!(converted(line).unwrap(), expected);
    // What DynamoDB's own writer does not do, but Ion allows.
    let spaced = line
        .replace("$ion_1_0 {", " $ion_1_0{ ")
        .replace(',', "\t,\r ");
    assert_eq!(converted(&spaced).unwrap(), expected);
    assert_eq!(
        converted(line.trim_start_matches("$ion_1_0 ")).unwrap(),
        expected
    );
    assert_eq!(from_json(expected.as_bytes()).unwrap(), line);
}

#[test]
fn a_record_of_an_incremental_export_loses_its_wrapping() {
    let line = r#"$ion_1_0 {Record:{Keys:{PK:"a"},Metadata:{WriteTimestampMicros:1684374845117899.},OldImage:{PK:"a",n:1.},NewImage:{PK:"a",n:2.}}}"#;
    let json = r#"{"Keys":{"PK":{"S":"a"}},"Metadata":{"WriteTimestampMicros":{"N":"1684374845117899"}},"OldImage":{"PK":{"S":"a"},"n":{"N":"1"}},"NewImage":{"PK":{"S":"a"},"n":{"N":"2"}}}"#;
    assert_eq!(from_json(json.as_bytes()).unwrap(), line);
    let expected = json.replace(r#""OldImage":{"PK":{"S":"a"},"n":{"N":"1"}},"#, "");
    assert_eq!(converted(line).unwrap(), expected);
    // Nobody reads it.
    let old = line.replace("OldImage:{PK:\"a\",n:1.}", "OldImage:{PK:word}");
    assert_eq!(converted(&old).unwrap(), expected);
    // Members that mean nothing are passed over at either level, and null is absent, as in JSON.
    let more = line.replace("{Record:{", "{v:1,Item:null,Record:{x:a::(b),");
    assert_eq!(converted(&more).unwrap(), expected);
}

#[test]
fn names_that_begin_like_a_symbol_id_are_names() {
    let line = r#"$ion_1_0 {Item:{$0a:"$1b",m:{$12_$:1.},'$0':"c"}}"#;
    let expected = r#"{"Item":{"$0a":{"S":"$1b"},"m":{"M":{"$12_$":{"N":"1"}}},"$0":{"S":"c"}}}"#;
    assert_eq!(converted(line).unwrap(), expected);
}

#[test]
fn keys_are_told_where_an_image_is_not() {
    let keys = |line: &str| {
        let mut json = String::new();
        keys_to_json(line.as_bytes(), &mut json).map(|()| json)
    };
    let expected = r#"{"Keys":{"PK":{"S":"a"}}}"#;
    for line in [
        "$ion_1_0 {Record:{NewImage:{PK:\"b\",n:word},Keys:{PK:\"a\"}}}",
        "$ion_1_0 {NewImage:[],Keys:{PK:\"a\"}}",
    ] {
        converted(line).unwrap_err();
        assert_eq!(keys(line).unwrap(), expected);
    }
    let images = "$ion_1_0 {Record:{Keys:null,OldImage:{PK:\"b\",n:word},NewImage:{PK:\"a\"}}}";
    assert_eq!(keys(images).unwrap(), r#"{"NewImage":{"PK":{"S":"a"}}}"#);
    keys("$ion_1_0 {Record:{Keys:{PK:word}}}").unwrap_err();
    keys("$ion_1_0 {Record:{Keys:{PK:\"a\"}}").unwrap_err();
}

#[test]
fn numbers_keep_every_digit() {
    let zeros = |n| "0".repeat(n);
    let nines = "9".repeat(38);
    let cases = [
        ("103.", "103".to_owned()),
        ("6d2", "600".to_owned()),
        ("2D3", "2000".to_owned()),
        ("1_000.5", "1000.5".to_owned()),
        ("7", "7".to_owned()),
        ("-7", "-7".to_owned()),
        ("0x1F", "31".to_owned()),
        ("0", "0".to_owned()),
        ("-0", "0".to_owned()),
        ("-0.", "0".to_owned()),
        ("0d99", "0".to_owned()),
        ("-0.00", "0".to_owned()),
        ("1.50", "1.5".to_owned()),
        ("-25d-3", "-0.025".to_owned()),
        ("9007199254740993.", "9007199254740993".to_owned()),
        ("-9007199254740998.25", "-9007199254740998.25".to_owned()),
        ("18446744073709551616", "18446744073709551616".to_owned()),
        (&nines, nines.clone()),
        (&format!("{nines}."), nines.clone()),
        (&format!("{nines}d87"), format!("{nines}{}", zeros(87))),
        (&format!("{nines}d-167"), format!("0.{}{nines}", zeros(129))),
        ("1d125", format!("1{}", zeros(125))),
        (&format!("1{}.", zeros(125)), format!("1{}", zeros(125))),
        (&format!("1{}", zeros(125)), format!("1{}", zeros(125))),
        ("7d-130", format!("0.{}7", zeros(129))),
        (&format!("0.{}7", zeros(129)), format!("0.{}7", zeros(129))),
    ];
    for (ion, number) in cases {
        assert_eq!(
            attribute(ion),
            Ok(format!(r#"{{"N":"{number}"}}"#)),
            "{ion}"
        );
    }
    let refused = [
        ("9".repeat(39), "38 significant digits"),
        ("1d126".to_owned(), "outside the range"),
        ("1d-131".to_owned(), "outside the range"),
        (format!("{nines}d-168"), "outside the range"),
        ("1d999999999999999999".to_owned(), "outside the range"),
        ("1.5d-9223372036854775807".to_owned(), "outside the range"),
        ("1.5d-9223372036854775808".to_owned(), "not Ion 1.0"),
        ("9".repeat(513), "longer than 512 bytes"),
        (format!("1.{}1", zeros(70_000)), "longer than 512 bytes"),
    ];
    for (ion, message) in refused {
        let reject = attribute(&ion).unwrap_err();
        assert!(reject.message.contains(message), "{ion}: {reject}");
    }
}

#[test]
fn texts_and_names_are_read_in_every_spelling() {
    let cases = [
        (r#""a\"b\\\/""#, r#"a\"b\\/"#),
        (r#""\x41\u00e9\U0001F600\uD83D\uDE00""#, "Aé😀😀"),
        (
            r#""\0\a\b\t\n\f\r\v\?\'""#,
            r"\u0000\u0007\b\t\n\f\r\u000b?'",
        ),
        (r#""{[(/*'''""#, "{[(/*'''"),
        ("\"\u{80}\u{2028}山田\"", "\u{80}\u{2028}山田"),
        (r"'''it''' '''''' ''' is '\''''", r"it is ''"),
    ];
    for (ion, text) in cases {
        assert_eq!(attribute(ion), Ok(format!(r#"{{"S":"{text}"}}"#)), "{ion}");
    }
    let names = [
        ("'a b'", "a b"),
        ("''", ""),
        (r#""x""#, "x"),
        (r"'it\'s'", "it's"),
        ("'$10'", "$10"),
        ("$4", "name"),
        ("$a", "$a"),
        ("$12345678901a", "$12345678901a"),
        ("'null'", "null"),
        ("'山'", "山"),
        (r"'\x00\uD83D\uDE00'", r"\u0000😀"),
        ("$dynamodb_SS", "$dynamodb_SS"),
        ("Item", "Item"),
        ("'''long'''", "long"),
    ];
    for (ion, name) in names {
        let json = converted(&format!("$ion_1_0 {{Item:{{{ion}:true}}}}"));
        assert_eq!(
            json,
            Ok(format!(r#"{{"Item":{{"{name}":{{"BOOL":true}}}}}}"#)),
            "{ion}"
        );
    }
    let long = "n".repeat(65_535);
    let json = converted(&format!("$ion_1_0 {{Item:{{{long}:{{{{ A A E = }}}}}}}}")).unwrap();
    assert_eq!(json, format!(r#"{{"Item":{{"{long}":{{"B":"AAE="}}}}}}"#));
    // Symbols of a table that the line brings along.
    let line = r#"$ion_1_0 $ion_symbol_table::{symbols:["Item","PK","$dynamodb_NS"]} {$10:{$11:$12::[1.]}}"#;
    assert_eq!(converted(line).unwrap(), r#"{"Item":{"PK":{"NS":["1"]}}}"#);
}

#[test]
fn what_is_no_attribute_value_is_refused_at_its_path() {
    let cases = [
        ("1e0", "float"),
        ("nan", "float"),
        ("+inf", "float"),
        ("2026-11-18T", "timestamp"),
        ("2026-11-18T06:26:40.000Z", "timestamp"),
        ("word", "symbol"),
        ("'quoted'", "symbol"),
        ("$0", "symbol"),
        ("(a b)", "s-expression"),
        ("{{\"clob\"}}", "clob"),
        ("null.string", "null with a type"),
        ("null.struct", "null with a type"),
        ("null.float", "float"),
        ("$dynamodb_XX::[1.]", "annotation other than"),
        ("x::\"text\"", "annotation other than"),
        ("$0::[1.]", "symbol without text"),
        ("$dynamodb_SS::$dynamodb_SS::[]", "several annotations"),
        ("$dynamodb_SS::\"x\"", "not a list"),
        ("$dynamodb_SS::null.list", "not a list"),
        ("$dynamodb_SS::{a:1.}", "not a list"),
        ("$dynamodb_SS::[\"a\",1.]", "another type"),
        ("$dynamodb_NS::[1.,x::1.]", "another type"),
        ("$dynamodb_BS::[{{}},null]", "another type"),
        ("$dynamodb_NS::[1.,[1.]]", "another type"),
    ];
    for (ion, message) in cases {
        for (outer, path) in [("{0}", "Item.a"), ("[1.,{b:{0}}]", "Item.a[1].b")] {
            let reject = attribute(&outer.replace("{0}", ion)).unwrap_err();
            assert!(reject.message.contains(message), "{ion}: {reject}");
            if !message.contains("symbol without text") {
                assert_eq!(reject.code, ReasonCode::MalformedAttributeValue, "{ion}");
            }
            let inner = if message == "another type" { "[1]" } else { "" };
            assert_eq!(reject.path, Some(format!("{path}{inner}")), "{ion}");
        }
    }
}

#[test]
fn lines_of_another_shape_are_refused() {
    use ReasonCode::{MalformedIon, MalformedRecord};
    let cases: [(&[u8], ReasonCode, &str); 23] = [
        (b"", MalformedIon, "no Ion value"),
        (b"$ion_1_0", MalformedIon, "no Ion value"),
        (b"$ion_1_1 {Item:{}}", MalformedIon, "not Ion 1.0"),
        (
            b"$ion_1_0 {Item:{}} {Item:{}}",
            MalformedIon,
            "more than one",
        ),
        (b"$ion_1_0 {Item:{}} x", MalformedIon, "more than one"),
        (b"$ion_1_0 {Item:{}", MalformedIon, "not Ion 1.0 at byte"),
        (b"$ion_1_0 {Item:{}}}", MalformedIon, "not Ion 1.0 at byte"),
        (
            b"$ion_1_0 {Item:{a:01}}",
            MalformedIon,
            "not Ion 1.0 at byte",
        ),
        (b"$ion_1_0 {Item:{a:{{A}}}}", MalformedIon, "not Ion 1.0"),
        (b"$ion_1_0 {Item:{a:{{ [[[", MalformedIon, "blob"),
        (b"$ion_1_0 {Item:{a:\"x}}", MalformedIon, "does not end"),
        (b"$ion_1_0 {Item:{'a:1.}}", MalformedIon, "does not end"),
        (b"$ion_1_0 {Item:{a:'''b}}", MalformedIon, "does not end"),
        (b"$ion_1_0 {Item:{a:\"\\", MalformedIon, "does not end"),
        (b"$ion_1_0 {Item:{a:\"\\q\"}}", MalformedIon, "not Ion 1.0"),
        (
            b"$ion_1_0 {Item:{a:\"\\uDE00\"}}",
            MalformedIon,
            "not Ion 1.0",
        ),
        (b"$ion_1_0 {Item:{/* x */}}", MalformedIon, "a comment"),
        (
            b"$ion_1_0 {Item:{a:\"\xff\"}}",
            MalformedIon,
            "not UTF-8 at byte 19",
        ),
        (
            b"{\"Item\":{\"a\":{\"S\":\"x\"}}}",
            MalformedIon,
            "JSON, not Ion",
        ),
        (b"$ion_1_0 [1.]", MalformedRecord, "the line is not"),
        (b"$ion_1_0 x::{Item:{}}", MalformedRecord, "the line is not"),
        (
            b"$ion_1_0 {Item:null.struct}",
            MalformedRecord,
            "Item is not",
        ),
        (b"$ion_1_0 {Record:[]}", MalformedRecord, "`Record` is not"),
    ];
    for (line, code, message) in cases {
        let shown = String::from_utf8_lossy(line).into_owned();
        let reject = to_json(line, &mut String::new()).unwrap_err();
        assert_eq!(reject.code, code, "{shown}: {reject}");
        assert!(reject.message.contains(message), "{shown}: {reject}");
    }
}

#[test]
fn hostile_lines_neither_panic_nor_overflow_the_stack() {
    let deep = 2_000_000;
    let lines = [
        "[".repeat(deep),
        "{a:".repeat(deep),
        "(".repeat(deep),
        format!("{{Item:{{a:{}", "x::[".repeat(deep)),
        format!("{{{{\"a\"{}", "[".repeat(deep)),
        format!("{{{{'''{}", "[".repeat(deep)),
        format!("''{}", "[".repeat(deep)),
        format!("'''a''' '''\\'''{}", "[".repeat(deep)),
        format!("{{{{//}}}}{}", "[".repeat(deep)),
        format!("{{{{}}{}", "[".repeat(deep)),
        format!("//'\n{}", "[".repeat(deep)),
        format!("/*\"*/{}", "[".repeat(deep)),
        format!("{{Item:{{${}:1}}}}", "9".repeat(30)),
        "{Item:{a:$4294967296}}".to_owned(),
        "{Item:{a:$999999999::1}}".to_owned(),
        "{Item:{$999999999:1}}".to_owned(),
        "{Item:{a:\"\\UFFFFFFFF\"}}".to_owned(),
        "{Item:{'\\U00110000':1}}".to_owned(),
        "{Item:{a:\"\\U+000041\"}}".to_owned(),
        "{Item:{a:'''\\U00110000'''}}".to_owned(),
        "{Item:{a:\"\\U0000D800\"}}".to_owned(),
        "{Item:{a:0000-00-00T}}".to_owned(),
        "$ion_999_0 {}".to_owned(),
        "$ion_symbol_table::{imports:[{name:\"x\",version:1,max_id:9999999999}]} {}".to_owned(),
        "$ion_symbol_table::$ion_symbol_table {$10:{}}".to_owned(),
    ];
    let work = move || {
        for line in lines {
            let shown: String = line.chars().take(40).collect();
            let reject = converted(&format!("$ion_1_0 {line}")).unwrap_err();
            // The last resort was not needed.
            assert_ne!(reject.message, GAVE_UP, "{shown}");
        }
        let nested = |n| format!("$ion_1_0 {{Item:{{a:{}{}}}}}", "[".repeat(n), "]".repeat(n));
        assert!(converted(&nested(100)).is_ok());
        let reject = converted(&nested(110)).unwrap_err();
        assert!(reject.message.contains("nested deeper"), "{reject}");
    };
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    thread.spawn(work).unwrap().join().unwrap();
}

/// An AttributeValue in canonical spelling, and the same in Ion.
fn attribute_value() -> impl Strategy<Value = (serde_json::Value, Element)> {
    let number = || (any::<i64>(), -40_i64..40);
    let decimal = |(digits, exponent): (i64, i64)| {
        let text = number::canonical(&format!("{digits}e{exponent}")).unwrap();
        (text, Element::from(Decimal::new(digits, exponent)))
    };
    let text = || any::<String>();
    let bytes = || vec(any::<u8>(), 0..9);
    let blob = |bytes: Vec<u8>| {
        (
            STANDARD.encode(&bytes),
            Element::from(Value::Blob(bytes.into())),
        )
    };
    let set = |tag: &str, members: Vec<(String, Element)>| {
        let (json, ion): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let annotation = format!("$dynamodb_{tag}");
        let list = Element::from(Value::List(ion.into()));
        (json!({ tag: json }), list.with_annotations([annotation]))
    };
    let leaf = prop_oneof![
        text().prop_map(|text| (json!({ "S": text }), Element::from(text.as_str()))),
        number()
            .prop_map(decimal)
            .prop_map(|(json, ion)| (json!({ "N": json }), ion)),
        any::<i64>().prop_map(|n| (json!({ "N": n.to_string() }), Element::from(n))),
        bytes()
            .prop_map(blob)
            .prop_map(|(json, ion)| (json!({ "B": json }), ion)),
        any::<bool>().prop_map(|value| (json!({ "BOOL": value }), Element::from(value))),
        Just((
            json!({ "NULL": true }),
            Element::from(Value::Null(IonType::Null))
        )),
        vec(text(), 0..4).prop_map(move |all| {
            let member = |text: String| (text.clone(), Element::from(text));
            set("SS", all.into_iter().map(member).collect())
        }),
        vec(number().prop_map(decimal), 0..4).prop_map(move |all| set("NS", all)),
        vec(bytes().prop_map(blob), 0..4).prop_map(move |all| set("BS", all)),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(|values| {
                let (json, ion): (Vec<_>, Vec<_>) = values.into_iter().unzip();
                (json!({ "L": json }), Element::from(Value::List(ion.into())))
            }),
            members(inner).prop_map(|(json, ion)| (json!({ "M": json }), ion)),
        ]
    })
}

fn members(
    values: impl Strategy<Value = (serde_json::Value, Element)>,
) -> impl Strategy<Value = (Map<String, serde_json::Value>, Element)> {
    let name = prop_oneof![
        any::<String>(),
        "[$a-z_0-9' \"]{0,4}",
        "null|true|false|nan|\\$[0-9]{1,3}[a-z_$]{0,2}"
    ];
    btree_map(name, values, 0..5).prop_map(|members| {
        let mut ion = Element::struct_builder();
        let mut json = Map::new();
        for (name, (value, element)) in members {
            ion = ion.with_field(name.as_str(), element);
            json.insert(name, value);
        }
        (json, Element::from(ion.build()))
    })
}

proptest! {
    /// The library's own writer is the oracle for how values may be spelled in Ion.
    #[test]
    fn any_item_in_any_spelling_is_the_item(
        (json, ion) in members(attribute_value()),
        format in prop_oneof![
            Just(TextFormat::Compact), Just(TextFormat::Lines), Just(TextFormat::Pretty)
        ],
    ) {
        let item = serde_json::to_string(&json).unwrap();
        let line = Element::from(Element::struct_builder().with_field("Item", ion).build());
        let config = WriteConfig::<Text>::new(format);
        let spelled = line.encode_as(config).unwrap();
        let mut text = String::new();
        to_json(spelled.as_bytes(), &mut text).unwrap();
        let found = text.strip_prefix("{\"Item\":").unwrap().strip_suffix('}').unwrap();
        let expected = canonical_item(item.as_bytes()).unwrap();
        prop_assert_eq!(canonical_item(found.as_bytes()).unwrap(), expected.clone());
        // Our own writer, for tests and the demo.
        let ours = from_json(format!("{{\"Item\":{expected}}}").as_bytes()).unwrap();
        to_json(ours.as_bytes(), &mut text).unwrap();
        prop_assert_eq!(text, format!("{{\"Item\":{expected}}}"));
    }

    #[test]
    fn text_of_ions_own_signs_never_makes_the_library_give_up(
        line in "(\\{|\\}|\\[|\\]|\\(|\\)|\\{\\{|\\}\\}|[a$_]|\\$ion_1_0 |::|:|,|'|'''|\"|\\\\|\\\\[xuU]|[0-9dDeE.+-]|-?[0-9]{1,9}|T|nan|null\\.|[ \n]|Item:|é|=|/){0,24}"
    ) {
        for line in [line.clone(), format!("$ion_1_0 {{Item:{{a:{line}}}}}")] {
            if let Err(reject) = converted(&line) {
                prop_assert_ne!(reject.message, GAVE_UP);
            }
        }
    }
}
