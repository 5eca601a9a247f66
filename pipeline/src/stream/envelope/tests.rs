use aws_lambda_events::event::dynamodb;
use proptest::prelude::*;

use super::*;
use crate::stream::StreamError;

const ARN: &str =
    "arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-11-01T00:00:00.000";
const KEYS: &str = r#"{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#1"}}"#;
const ITEM: &str = r#"{"PK":{"S":"USER#1"},"SK":{"S":"ORDER#1"},"total":{"N":"12.50"}}"#;

/// A well-formed record; `{` of its two objects are the places where tests add members, since of a
/// member given twice the last one counts.
fn record(name: &str, outer: &str, inner: &str) -> String {
    let new = if name == "REMOVE" { "null" } else { ITEM };
    format!(
        r#"{{"eventID":"e1","eventName":"{name}","eventVersion":"1.1","eventSource":"aws:dynamodb",
        "awsRegion":"eu-west-1","eventSourceARN":"{ARN}","dynamodb":{{
        "ApproximateCreationDateTime":1795003600,"Keys":{KEYS},"NewImage":{new},
        "SequenceNumber":"100000000000000000001","SizeBytes":26,
        "StreamViewType":"NEW_AND_OLD_IMAGES"{inner}}}{outer}}}"#
    )
}

fn event(records: &[String]) -> String {
    format!(r#"{{"Records":[{}]}}"#, records.join(","))
}

/// What became of one record: its change, or path and message.
fn read_one(record: &str) -> Result<String, (String, String)> {
    let event = event(&[record.to_owned()]);
    let open = open_event(event.as_bytes()).unwrap();
    let records = read_records(&open).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].payload, record);
    match records[0].change_record(0, Origin::Stream) {
        Ok(change) => Ok(format!("{:?} {:?}", change.operation, change.reason)),
        Err(reject) => Err((reject.path.unwrap_or_default(), reject.message)),
    }
}

fn refused(event: &str) -> String {
    match open_event(event.as_bytes()).map(|open| read_records(&open).map(|records| records.len()))
    {
        Err(error) | Ok(Err(error)) => {
            assert_eq!(error.error_type(), "dynalake.Event");
            error.chain()
        }
        Ok(Ok(records)) => panic!("{records} records were read"),
    }
}

#[test]
fn a_record_is_read_as_it_stands() {
    let old = format!(r#","OldImage":{ITEM}"#);
    let text = event(&[record("MODIFY", "", &old)]);
    let open = open_event(text.as_bytes()).unwrap();
    let records = read_records(&open).unwrap();
    let change = records[0].change_record(7, Origin::Replay).unwrap();
    assert_eq!(change.operation, Operation::Modify);
    assert_eq!(change.reason, None);
    assert_eq!(change.at, 7);
    assert_eq!(change.stream, Some("2026-11-01T00:00:00.000"));
    assert_eq!(
        change.sequence_number,
        SequenceNumber::parse("100000000000000000001")
    );
    assert_eq!(change.event_id, Some("e1"));
    assert_eq!(change.origin, Origin::Replay);
    assert_eq!(change.keys, Some(KEYS.as_bytes()));
    assert_eq!(change.new_image, Some(ITEM.as_bytes()));
    assert_eq!(change.old_image, Some(ITEM.as_bytes()));
    assert_eq!(records[0].creation_ms, Some(1_795_003_600_000));
    assert_eq!(records[0].table(), Some("shop"));
}

#[test]
fn only_a_delete_by_the_service_is_an_expiry() {
    let service = r#""type":"Service","principalId":"dynamodb.amazonaws.com""#;
    for (name, identity, expected) in [
        ("REMOVE", format!("{{{service}}}"), "Remove Some(Ttl)"),
        (
            "REMOVE",
            r#"{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}"#.to_owned(),
            "Remove Some(Ttl)",
        ),
        ("REMOVE", "null".to_owned(), "Remove Some(User)"),
        ("REMOVE", "\"root\"".to_owned(), "Remove Some(User)"),
        (
            "REMOVE",
            r#"{"type":"Service"}"#.to_owned(),
            "Remove Some(User)",
        ),
        (
            "REMOVE",
            r#"{"type":"Service","principalId":"replication.dynamodb.amazonaws.com"}"#.to_owned(),
            "Remove Some(User)",
        ),
        ("INSERT", format!("{{{service}}}"), "Insert None"),
        ("MODIFY", format!("{{{service}}}"), "Modify None"),
    ] {
        let outer = format!(r#","userIdentity":{identity}"#);
        assert_eq!(read_one(&record(name, &outer, "")).unwrap(), expected);
    }
    assert_eq!(
        read_one(&record("REMOVE", "", "")).unwrap(),
        "Remove Some(User)"
    );
}

#[test]
fn a_malformed_record_says_what_is_wrong_and_where() {
    let inner = |members: &str| record("INSERT", "", members);
    let outer = |members: &str| record("INSERT", members, "");
    for (record, path, message) in [
        ("17".to_owned(), "", "not an object"),
        ("null".to_owned(), "", "not an object"),
        ("{}".to_owned(), "dynamodb", "no `dynamodb` object"),
        (
            outer(r#","dynamodb":[]"#),
            "dynamodb",
            "no `dynamodb` object",
        ),
        (
            inner(r#","SequenceNumber":null"#),
            "dynamodb.SequenceNumber",
            "Kinesis",
        ),
        (
            inner(r#","SequenceNumber":"""#),
            "dynamodb.SequenceNumber",
            "1 to 40 digits",
        ),
        (
            inner(r#","SequenceNumber":"12a""#),
            "dynamodb.SequenceNumber",
            "1 to 40 digits",
        ),
        (
            inner(r#","SequenceNumber":-1"#),
            "dynamodb.SequenceNumber",
            "1 to 40 digits",
        ),
        (
            inner(r#","SequenceNumber":{}"#),
            "dynamodb.SequenceNumber",
            "1 to 40 digits",
        ),
        (
            outer(r#","eventName":"UPSERT""#),
            "eventName",
            "INSERT, MODIFY or REMOVE",
        ),
        (
            outer(r#","eventName":null"#),
            "eventName",
            "INSERT, MODIFY or REMOVE",
        ),
        (
            outer(r#","eventSourceARN":null"#),
            "eventSourceARN",
            "GetRecords",
        ),
        (
            outer(r#","eventSourceARN":"eventsource_arn""#),
            "eventSourceARN",
            "stream",
        ),
        (
            outer(r#","eventSource":"aws:sqs""#),
            "eventSource",
            "aws:sqs",
        ),
        (inner(r#","Keys":null"#), "Keys", "no key attributes"),
        (inner(r#","Keys":[]"#), "Keys", "an object"),
        (
            inner(r#","NewImage":null"#),
            "NewImage",
            "NEW_AND_OLD_IMAGES",
        ),
        (inner(r#","NewImage":"x""#), "NewImage", "an object"),
        (inner(r#","OldImage":7"#), "OldImage", "an object"),
        (
            inner(r#","ApproximateCreationDateTime":"yesterday""#),
            "dynamodb.ApproximateCreationDateTime",
            "number",
        ),
        (
            record("REMOVE", "", r#","NewImage":{}"#),
            "NewImage",
            "a REMOVE has an item",
        ),
    ] {
        // A well-formed neighbour, so that the event as a whole is DynamoDB's.
        let text = event(&[self::record("REMOVE", "", ""), record.clone()]);
        let open = open_event(text.as_bytes()).unwrap();
        let records = read_records(&open).unwrap();
        assert!(records[0].change.is_ok());
        assert_eq!(records[1].payload, record);
        let Err(reject) = &records[1].change else {
            panic!("{record}")
        };
        assert_eq!(reject.path.as_deref().unwrap_or_default(), path, "{record}");
        assert!(
            reject.message.contains(message),
            "{record}: {}",
            reject.message
        );
    }
}

#[test]
fn what_is_not_needed_may_be_absent_unknown_or_odd() {
    for record in [
        record(
            "INSERT",
            r#","userIdentity":null,"eventID":null,"new":{"x":[1]}"#,
            "",
        ),
        record(
            "INSERT",
            r#","eventID":7,"eventSource":null,"eventVersion":[]"#,
            "",
        ),
        record(
            "INSERT",
            "",
            r#","ApproximateCreationDateTime":null,"SizeBytes":"x""#,
        ),
        record(
            "INSERT",
            "",
            r#","ApproximateCreationDateTimePrecision":"MICROSECOND""#,
        ),
        record("INSERT", "", r#","StreamViewType":null"#),
        record("INSERT", "", r#","StreamViewType":"SOMETHING_NEW""#),
        record("INSERT", "", r#","SequenceNumber":111,"OldImage":{}"#),
        // What is inside an item is not the envelope's matter, half a surrogate pair included.
        record("INSERT", "", r#","NewImage":{"PK":{"S":"\ud800"}}"#),
    ] {
        assert_eq!(read_one(&record).unwrap(), "Insert None", "{record}");
    }
    let nested = format!(
        r#","NewImage":{{"a":{}1{}}}"#,
        "[".repeat(5_000),
        "]".repeat(5_000)
    );
    assert_eq!(
        read_one(&record("INSERT", "", &nested)).unwrap(),
        "Insert None"
    );
}

#[test]
fn an_empty_image_is_not_an_absent_one() {
    let read = |members: &str| {
        let text = event(&[record("MODIFY", "", members)]);
        let open = open_event(text.as_bytes()).unwrap();
        let records = read_records(&open).unwrap();
        let change = records[0].change.clone().unwrap();
        (
            change.new_image.map(str::to_owned),
            change.old_image.map(str::to_owned),
        )
    };
    let item = Some(ITEM.to_owned());
    assert_eq!(read(""), (item.clone(), None));
    assert_eq!(read(r#","OldImage":null"#), (item.clone(), None));
    assert_eq!(read(r#","OldImage":{}"#), (item, Some("{}".to_owned())));
    assert_eq!(read(r#","NewImage":{}"#), (Some("{}".to_owned()), None));
}

#[test]
fn view_types_without_new_images_fail_the_invocation_with_the_remedy() {
    for view_type in ["KEYS_ONLY", "OLD_IMAGE"] {
        let keys_only = format!(r#","StreamViewType":"{view_type}","NewImage":null"#);
        let text = event(&[record("REMOVE", "", ""), record("MODIFY", "", &keys_only)]);
        let open = open_event(text.as_bytes()).unwrap();
        let error = read_records(&open).map(|_| ()).unwrap_err();
        assert_eq!(error.error_type(), "dynalake.StreamViewType");
        let text = error.chain();
        assert!(
            text.contains(view_type) && text.contains("record 1"),
            "{text}"
        );
        assert!(text.contains("NEW_AND_OLD_IMAGES"), "{text}");
    }
}

#[test]
fn windows_and_failure_records_are_opened() {
    let plain = record("INSERT", "", "");
    let without_arn = record("INSERT", r#","eventSourceARN":null"#, "");
    let batch = event(std::slice::from_ref(&plain));
    let window = format!(
        r#"{{"Records":[{without_arn}],"window":{{"start":"a","end":"b"}},"state":{{}},
        "shardId":"s","eventSourceARN":"{ARN}","isFinalInvokeForWindow":false}}"#
    );
    let info = format!(r#""DDBStreamBatchInfo":{{"shardId":"s","streamArn":"{ARN}"}}"#);
    let quoted = serde_json::to_string(&event(&[without_arn])).unwrap();
    let failure = format!(r#"{{"version":"1.0","requestContext":{{}},{info},"payload":{quoted}}}"#);
    let object = format!(r#"{{"version":"1.0",{info},"payload":{batch}}}"#);
    for text in [&batch, &window, &failure, &object] {
        let open = open_event(text.as_bytes()).unwrap();
        let records = read_records(&open).unwrap();
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].table(), Some("shop"), "{text}");
        assert!(records[0].change.is_ok());
    }
    for empty in [
        r#"{"Records":[]}"#,
        r#"{"Records":null,"window":{},"isFinalInvokeForWindow":true}"#,
    ] {
        let open = open_event(empty.as_bytes()).unwrap();
        assert!(read_records(&open).unwrap().is_empty());
    }
}

#[test]
fn other_events_are_refused_by_name() {
    let kinesis = r#"{"Records":[{"eventSource":"aws:kinesis","kinesis":{"data":"e30="}}]}"#;
    for (text, expected) in [
        ("", "ends too early"),
        ("{\"Records\":[", "ends too early"),
        ("{\"Records\":[}", "not JSON"),
        ("17", "not an object"),
        ("{}", "no `Records`"),
        ("[{}]", "EventBridge Pipes"),
        (r#"{"Records":{}}"#, "not a list"),
        (r#"{"Records":[],"NextShardIterator":null}"#, "GetRecords"),
        (
            r#"{"version":"1.0","DDBStreamBatchInfo":{"shardId":"s"}}"#,
            "holds no records",
        ),
        (
            r#"{"version":"1.0","DDBStreamBatchInfo":{},"payload":null}"#,
            "holds no records",
        ),
        (
            r#"{"version":"1.0","DDBStreamBatchInfo":{},"payload":"{}"}"#,
            "no `Records`",
        ),
        (r#"{"version":"1.0","KinesisBatchInfo":{}}"#, "Kinesis"),
        (kinesis, "Kinesis"),
        (
            r#"{"Records":[{"eventSource":"aws:sqs","body":"{}"}]}"#,
            "aws:sqs",
        ),
        (
            r#"{"Records":[{"EventSource":"aws:sns","Sns":{}}]}"#,
            "aws:sns",
        ),
        (r#"{"eventName":"INSERT","dynamodb":{}}"#, "single record"),
        (r#"{"Item":{"PK":{"S":"SECRET"}}}"#, "export"),
        (r#""SECRET""#, "not an object"),
    ] {
        let message = refused(text);
        assert!(message.contains(expected), "{text}: {message}");
        assert!(!message.contains("SECRET"), "{message}");
    }
    assert!(open_event(b"\xff").unwrap_err().chain().contains("UTF-8"));
}

#[test]
fn arns_are_cut_into_table_and_label() {
    assert_eq!(parse_arn(ARN), Some(("shop", "2026-11-01T00:00:00.000")));
    for partition in ["aws-cn", "aws-us-gov"] {
        let arn = ARN.replacen("aws", partition, 1);
        assert_eq!(parse_arn(&arn).unwrap().0, "shop");
    }
    for arn in [
        "",
        "arn",
        "arn:aws:dynamodb:eu-west-1:1:table/shop",
        "arn:aws:dynamodb:eu-west-1:1:table/shop/stream/",
        "arn:aws:dynamodb:eu-west-1:1:table//stream/x",
        "arn:aws:kinesis:eu-west-1:1:table/shop/stream/x",
        "arn:aws:dynamodb:eu-west-1:1:table/shop/index/i/stream/x",
    ] {
        assert_eq!(parse_arn(arn), None, "{arn}");
    }
}

/// Our reading agrees with `aws_lambda_events` on everything that crate keeps.
fn agrees_with_oracle(text: &str) {
    let oracle: dynamodb::Event = serde_json::from_str(text).unwrap();
    let open = open_event(text.as_bytes()).unwrap();
    let records = read_records(&open).unwrap();
    assert_eq!(records.len(), oracle.records.len());
    for (ours, theirs) in records.iter().zip(&oracle.records) {
        assert_eq!(
            ours.event_id.as_deref().unwrap_or_default(),
            theirs.event_id
        );
        assert_eq!(ours.arn.as_deref(), theirs.event_source_arn.as_deref());
        let Ok(change) = &ours.change else { continue };
        assert_eq!(change.operation.as_str(), theirs.event_name);
        let theirs = &theirs.change;
        assert_eq!(
            ours.sequence_number.as_deref(),
            theirs.sequence_number.as_deref()
        );
        if let Some(at) = ours.creation_ms.filter(|at| at % 1_000 == 0) {
            assert_eq!(at, theirs.approximate_creation_date_time.timestamp_millis());
        }
        let item = |raw: Option<&str>| -> serde_dynamo::Item {
            raw.map(|raw| serde_json::from_str(raw).unwrap())
                .unwrap_or_default()
        };
        assert_eq!(item(Some(change.keys)), theirs.keys);
        assert_eq!(item(change.new_image), theirs.new_image);
        assert_eq!(item(change.old_image), theirs.old_image);
    }
}

#[test]
fn our_reading_agrees_with_the_events_crate() {
    let old = format!(r#","OldImage":{ITEM},"SequenceNumber":"9""#);
    agrees_with_oracle(&event(&[
        record(
            "INSERT",
            r#","userIdentity":{"type":"Service","principalId":"x"}"#,
            "",
        ),
        record("MODIFY", "", &old).replacen(r#""SequenceNumber":"100000000000000000001","#, "", 1),
        record("REMOVE", "", "").replacen(r#""NewImage":null,"#, "", 1),
    ]));
}

#[test]
fn every_shared_sample_is_read_or_refused_with_a_reason() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    let mut folders = vec![
        root.join("streams"),
        root.join("synthetic"),
        root.join("nasty"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else {
                continue;
            };
            let outcome = open_event(&bytes)
                .and_then(|open| read_records(&open).map(|records| records.len()));
            match &outcome {
                Ok(records) => assert!(*records > 0, "{}", path.display()),
                Err(error) => assert!(error.chain().len() > 20, "{}", path.display()),
            }
            let text = String::from_utf8_lossy(&bytes);
            if outcome.is_ok()
                && !path.ends_with("failure-dest-s3.json")
                && serde_json::from_str::<dynamodb::Event>(&text).is_ok()
            {
                agrees_with_oracle(&text);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        if let Ok(open) = open_event(&bytes) {
            let read: Result<_, StreamError> = read_records(&open);
            prop_assert!(read.is_ok() || read.is_err());
        }
    }

    #[test]
    fn any_damage_is_read_or_refused(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = event(&[record("INSERT", "", ""), record("REMOVE", "", "")]).into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let outcome = open_event(&bytes).and_then(|open| {
            let records = read_records(&open)?;
            Ok(records.iter().map(|record| record.payload.len()).sum::<usize>())
        });
        prop_assert!(outcome.is_err() || outcome.is_ok_and(|length| length > 100));
    }
}
