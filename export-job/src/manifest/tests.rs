use super::*;

const SUMMARY: &str = r#"{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:eu-west-1:1:table/shop/export/01795000000000-0a1b2c3d","tableArn":"arn:aws:dynamodb:eu-west-1:1:table/shop","exportTime":"2026-11-18T06:26:40.123Z","s3Prefix":"a/b","manifestFilesS3Key":"a/b/AWSDynamoDB/01795000000000-0a1b2c3d/manifest-files.json","billedSizeBytes":7,"itemCount":4,"outputFormat":"DYNAMODB_JSON","new":[1]}"#;

/// The summary with one member changed; `null` removes it.
fn with(name: &str, value: serde_json::Value) -> Vec<u8> {
    let mut summary: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(SUMMARY).unwrap();
    if value.is_null() {
        summary.remove(name);
    } else {
        summary.insert(name.to_owned(), value);
    }
    serde_json::to_vec(&summary).unwrap()
}

fn refusal(bytes: &[u8]) -> (RefusalKind, String) {
    let error = Summary::parse(bytes, "the-summary").unwrap_err();
    assert!(error.to_string().starts_with("`the-summary`: "), "{error}");
    (error.refusal().unwrap(), error.to_string())
}

#[test]
fn a_full_export_of_either_version() {
    let summary = Summary::parse(SUMMARY.as_bytes(), "s").unwrap();
    assert_eq!(summary.export_id, "01795000000000-0a1b2c3d");
    assert_eq!(summary.table, "shop");
    let export_time = 1_794_983_200_123;
    assert_eq!(summary.kind, ExportKind::Full { export_time });
    assert_eq!(summary.kind.at_ms(), export_time);
    assert_eq!(summary.label, "20261118T062640Z");
    assert_eq!(summary.s3_prefix.as_deref(), Some("a/b"));
    assert_eq!((summary.item_count, summary.billed_bytes), (4, 7));
    let newer = with("version", "2023-08-01".into());
    assert_eq!(Summary::parse(&newer, "s").unwrap(), summary);
    let ion = Summary::parse(&with("outputFormat", "ION".into()), "s").unwrap();
    assert_eq!(
        (summary.format, ion.format),
        (DataFormat::Json, DataFormat::Ion)
    );
    let said = with("exportType", "FULL_EXPORT".into());
    assert_eq!(Summary::parse(&said, "s").unwrap(), summary);
}

#[test]
fn each_required_member_is_named_when_missing() {
    for name in [
        "version",
        "exportArn",
        "tableArn",
        "exportTime",
        "manifestFilesS3Key",
        "itemCount",
        "outputFormat",
    ] {
        let (kind, message) = refusal(&with(name, serde_json::Value::Null));
        assert_eq!(kind, RefusalKind::BadManifest);
        assert!(
            message.contains(&format!("`{name}` is missing")),
            "{message}"
        );
    }
}

#[test]
fn other_kinds_of_export_are_refused_with_the_remedy() {
    assert_eq!(
        refusal(&with("exportType", "NEW".into())).0,
        RefusalKind::BadManifest
    );
    let (kind, message) = refusal(&with("version", "2031-01-01".into()));
    assert_eq!(kind, RefusalKind::UnknownVersion);
    assert!(message.contains("2031-01-01"), "{message}");
}

#[test]
fn an_export_with_a_filter_is_refused_however_it_is_spelled() {
    let expression = serde_json::json!({"KeyConditionExpression": "PK = :a"});
    for (name, value) in [
        ("filterSpecification", expression.clone()),
        ("FilterSpecification", expression),
        ("filterExpression", "total > :a".into()),
        ("projectionExpression", "PK, SK".into()),
        ("keyConditionExpression", "PK = :a".into()),
    ] {
        let (kind, message) = refusal(&with(name, value));
        assert_eq!(kind, RefusalKind::Filtered, "{message}");
        assert!(message.contains(name), "{message}");
        assert!(!message.contains(":a"), "{message}");
    }
    for nothing in [serde_json::Value::Null, "".into(), serde_json::json!({})] {
        assert!(Summary::parse(&with("filterSpecification", nothing), "f").is_ok());
    }
}

const INCREMENTAL: &str = r#"{"version":"2023-08-01","exportArn":"arn:aws:dynamodb:us-east-1:1:table/shop/export/01695097218000-d6299cbd","startTime":"2023-09-19T04:20:18.000Z","endTime":"2023-09-19T04:40:24.780Z","tableArn":"arn:aws:dynamodb:us-east-1:1:table/shop","tableId":"b116b490-6460-4d4a-9a6b-5d360abf4fb3","exportFromTime":"2023-09-18T17:00:00.000Z","exportToTime":"2023-09-19T04:00:00.000Z","s3Bucket":"exports","s3Prefix":null,"s3SseAlgorithm":"AES256","s3SseKmsKeyId":null,"manifestFilesS3Key":"AWSDynamoDB/01695097218000-d6299cbd/manifest-files.json","billedSizeBytes":20901239349,"itemCount":169928274,"outputFormat":"DYNAMODB_JSON","outputView":"NEW_AND_OLD_IMAGES","exportType":"INCREMENTAL_EXPORT"}"#;

#[test]
fn an_incremental_export_is_a_window_and_a_view() {
    let parse = |text: &str| Summary::parse(text.as_bytes(), "the-summary");
    let summary = parse(INCREMENTAL).unwrap();
    let (from, to) = (1_695_056_400_000, 1_695_096_000_000);
    let kind = |view| ExportKind::Incremental { from, to, view };
    assert_eq!(summary.kind, kind(ExportView::NewAndOldImages));
    assert_eq!(summary.kind.at_ms(), to);
    assert_eq!(summary.label, "20230918T170000Z-20230919T040000Z");
    assert_eq!(summary.s3_bucket.as_deref(), Some("exports"));
    for view in ["NEW_IMAGE", "NEW_IMAGES"] {
        let text = INCREMENTAL.replace("NEW_AND_OLD_IMAGES", view);
        assert_eq!(parse(&text).unwrap().kind, kind(ExportView::NewImage));
    }
    // The times tell an incremental export too.
    let untyped = INCREMENTAL.replace(r#","exportType":"INCREMENTAL_EXPORT""#, "");
    assert_eq!(parse(&untyped).unwrap(), summary);
    for (from, to, problem) in [
        ("\"exportToTime\"", "\"x\"", "`exportToTime` is missing"),
        ("\"exportFromTime\"", "\"x\"", "`exportFromTime` is missing"),
        ("\"outputView\"", "\"x\"", "`outputView` is missing"),
        ("NEW_AND_OLD_IMAGES", "OLD_IMAGE", "unknown `outputView`"),
        ("2023-09-18T17", "2023-09-20T17", "is not after"),
        ("2023-09-18T17:00:00.000Z", "1695056400", "ISO 8601"),
    ] {
        let (kind, message) = refusal(INCREMENTAL.replace(from, to).as_bytes());
        assert_eq!(kind, RefusalKind::BadManifest);
        assert!(message.contains(problem), "{message}");
    }
}

#[test]
fn members_of_the_wrong_form_are_refused() {
    for (name, value) in [
        ("tableArn", "arn:aws:s3:::bucket"),
        ("tableArn", "not-an-arn:dynamodb:eu-west-1:1:table/t"),
        ("tableArn", "arn:aws:dynamodb:eu-west-1:1:table/"),
        ("exportArn", "arn:aws:dynamodb:eu-west-1:1:table/shop"),
        ("exportArn", "x/export/../../etc"),
        ("exportTime", "yesterday"),
        ("outputFormat", "CSV"),
        ("itemCount", "4"),
    ] {
        assert_eq!(
            refusal(&with(name, value.into())).0,
            RefusalKind::BadManifest,
            "{name} {value}"
        );
    }
    assert_eq!(refusal(b"").0, RefusalKind::BadManifest);
    assert_eq!(
        refusal(b"{\"itemCount\": 100, invalid").0,
        RefusalKind::BadManifest
    );
    assert_eq!(
        refusal(&with("itemCount", (-1).into())).0,
        RefusalKind::BadManifest
    );
}

fn entry(key: &str) -> String {
    format!(
        r#"{{"itemCount":1,"md5Checksum":"FjvgqIxwymKf1RbbqtrZag==","etag":"e-1","dataFileS3Key":"{key}"}}"#
    )
}

#[test]
fn data_files_come_in_any_order_and_leave_in_one() {
    let text = format!(
        "{}\n\n{}\n",
        entry("p/data/b.ion.gz"),
        entry("data/a.json.gz")
    );
    let files = parse_files(text.as_bytes(), "f").unwrap();
    assert_eq!(
        files
            .iter()
            .map(|file| file.name.as_str())
            .collect::<Vec<_>>(),
        ["a.json.gz", "b.ion.gz"]
    );
    assert_eq!(files[1].key, "p/data/b.ion.gz");
    assert_eq!(
        (files[0].format, files[1].format),
        (DataFormat::Json, DataFormat::Ion)
    );
    assert_eq!(parse_files(b"", "f").unwrap(), []);
}

#[test]
fn bad_entries_are_refused_with_their_line() {
    let good = entry("data/a.json.gz");
    for bad in [
        "{bad json here}".to_owned(),
        r#"{"itemCount":1,"md5Checksum":"abc==","dataFileS3Key":"file.json.gz"}"#.to_owned(),
        r#"{"itemCount":1,"dataFileS3Key":"file.json.gz"}"#.to_owned(),
        r#"{"md5Checksum":"FjvgqIxwymKf1RbbqtrZag==","dataFileS3Key":"file.json.gz"}"#.to_owned(),
        r#"{"itemCount":1,"md5Checksum":"FjvgqIxwymKf1RbbqtrZag=="}"#.to_owned(),
        entry("other/a.json.gz"),
        entry("data/../../../etc/x.gz"),
        entry("data/x.json"),
        entry("data/x.csv.gz"),
        entry("data/.gz"),
        entry("data/_hidden.json.gz"),
        entry("data/a b.json.gz"),
        entry(""),
    ] {
        let error = parse_files(format!("{good}\n{bad}\n").as_bytes(), "f").unwrap_err();
        assert_eq!(error.refusal(), Some(RefusalKind::BadManifest), "{bad}");
        assert!(error.to_string().contains("line 2"), "{bad}: {error}");
    }
}

#[test]
fn checksums_are_verified_and_named() {
    let checksum = STANDARD.encode(Md5::digest(SUMMARY));
    verify_checksum(SUMMARY.as_bytes(), checksum.as_bytes(), "m", "m.md5").unwrap();
    verify_checksum(
        SUMMARY.as_bytes(),
        format!("{checksum}\n").as_bytes(),
        "m",
        "m.md5",
    )
    .unwrap();
    for wrong in ["FjvgqIxwymKf1RbbqtrZag==", "", "not base64"] {
        let error =
            verify_checksum(SUMMARY.as_bytes(), wrong.as_bytes(), "m", "m.md5").unwrap_err();
        assert_eq!(error.refusal(), Some(RefusalKind::Checksum));
        assert!(error.to_string().contains("`m.md5`"), "{error}");
    }
}
