use std::time::Duration;

use dynalake_pipeline::store::Store;
use dynalake_pipeline::time::parse_iso8601;

use super::*;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const ARN: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/shop";

fn at(text: &str) -> i64 {
    parse_iso8601(text).unwrap().0
}

fn target() -> Target {
    Target {
        table_arn: ARN.to_owned(),
        bucket: "exports".to_owned(),
        prefix: Some("nightly".to_owned()),
        bucket_owner: None,
        kms_key: None,
        format: DataFormat::Json,
    }
}

fn on(earliest: &str, latest: &str) -> Recovery {
    Recovery {
        enabled: true,
        earliest_ms: Some(at(earliest)),
        latest_ms: Some(at(latest)),
    }
}

fn full(text: &str) -> Wanted {
    Wanted::Full { at_ms: at(text) }
}

fn seen(id: &str, status: ExportStatus) -> Seen {
    Seen {
        export_arn: format!("{ARN}/export/{id}"),
        status,
        start_ms: Some(1_000),
        end_ms: (status == ExportStatus::Completed).then_some(361_000),
        items: None,
        billed_bytes: None,
        failure: None,
    }
}

#[test]
fn any_stretch_is_covered_by_legal_windows_without_gap_or_overlap() {
    let from = at("2026-05-01T00:00:30Z");
    for minutes in (0..4 * 24 * 60).chain([35 * 24 * 60, 35 * 24 * 60 + 1]) {
        let to = from + minutes * MINUTE;
        let windows = split(from, to);
        if minutes < 15 {
            assert!(windows.is_empty(), "{minutes}");
            continue;
        }
        assert_eq!(windows[0].from_ms, from, "{minutes}");
        assert_eq!(windows.last().unwrap().to_ms, to, "{minutes}");
        for pair in windows.windows(2) {
            assert_eq!(pair[0].to_ms, pair[1].from_ms, "{minutes}");
        }
        for window in &windows {
            let length = window.length_ms();
            assert!((15 * MINUTE..=DAY).contains(&length), "{minutes}: {length}");
        }
        // No more of them than needed.
        assert_eq!(
            i64::try_from(windows.len()).unwrap(),
            (minutes + 1439) / 1440
        );
    }
}

#[test]
fn a_full_export_is_of_the_latest_second_unless_told_otherwise() {
    let recovery = on("2026-04-01T00:00:00Z", "2026-05-01T11:55:07.900Z");
    let now = at("2026-05-01T12:00:00Z");
    assert_eq!(
        plan_full(recovery, None, now),
        Ok(vec![full("2026-05-01T11:55:07Z")])
    );
    let asked = Some(at("2026-04-20T00:00:00Z"));
    assert_eq!(
        plan_full(recovery, asked, now),
        Ok(vec![full("2026-04-20T00:00:00Z")])
    );
    for outside in ["2026-03-31T23:59:59Z", "2026-05-01T11:55:08Z"] {
        let refusal = plan_full(recovery, Some(at(outside)), now).unwrap_err();
        assert!(refusal.to_string().contains("2026-04-01T00:00:00Z"));
        assert!(matches!(refusal, Refusal::OutsideRecovery { .. }));
    }
    // MiniStack says that earliest and latest are now.
    let moment = on("2026-05-01T12:00:00Z", "2026-05-01T12:00:00Z");
    assert_eq!(
        plan_full(moment, None, now),
        Ok(vec![full("2026-05-01T12:00:00Z")])
    );
}

#[test]
fn what_is_off_or_out_of_reach_is_said_with_the_command_that_helps() {
    let table = TableArn::parse(ARN).unwrap();
    let now = at("2026-05-01T12:00:30Z");
    let off = Recovery {
        enabled: false,
        earliest_ms: None,
        latest_ms: None,
    };
    let refusal = plan_full(off, None, now).unwrap_err();
    assert_eq!(
        refusal.remedy(&table, "FULL"),
        "turn it on, wait some five minutes, and run the same command again: \
         `aws dynamodb update-continuous-backups --region eu-west-1 --table-name shop \
         --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true`"
    );

    let recovery = on("2026-04-01T00:00:00Z", "2026-05-01T11:55:30Z");
    let plan = |baseline: Option<&str>| {
        let stretch = Stretch {
            from_ms: baseline.map(at),
            to_ms: None,
        };
        plan_incremental(recovery, stretch, ExportView::NewImage, now)
    };
    let none = plan(None).unwrap_err();
    assert!(none.remedy(&table, "FULL").contains("`FULL`"));
    let broken = plan(Some("2026-03-31T23:59:59Z")).unwrap_err();
    assert!(broken.to_string().contains("back to 2026-04-01T00:00:00Z"));
    assert!(broken.remedy(&table, "FULL").contains("`FULL`"));
    let early = plan(Some("2026-05-01T11:41:00Z")).unwrap_err();
    assert_eq!(
        early.remedy(&table, "FULL"),
        "run the same command at 2026-05-01T12:02:00Z or later"
    );
    // At that time it is possible indeed.
    let later = at("2026-05-01T12:02:00Z");
    let recovery = on("2026-04-01T00:00:00Z", "2026-05-01T11:57:00Z");
    let stretch = Stretch {
        from_ms: Some(at("2026-05-01T11:41:00Z")),
        to_ms: None,
    };
    assert!(plan_incremental(recovery, stretch, ExportView::NewImage, later).is_ok());
    // A gap is filled exactly, where it can be.
    let fill = |to: &str| {
        let to_ms = Some(at(to));
        plan_incremental(
            recovery,
            Stretch { to_ms, ..stretch },
            ExportView::NewImage,
            later,
        )
    };
    let window = Window {
        from_ms: at("2026-05-01T11:41:00Z"),
        to_ms: at("2026-05-01T11:56:59Z"),
    };
    let view = ExportView::NewImage;
    assert_eq!(
        fill("2026-05-01T11:56:59Z"),
        Ok(vec![Wanted::Incremental { window, view }])
    );
    let short = fill("2026-05-01T11:55:59Z").unwrap_err();
    assert!(short.remedy(&table, "FULL").contains("`FULL`"));
    assert!(matches!(short, Refusal::TooShort { .. }));
    let late = fill("2026-05-01T11:57:01Z").unwrap_err();
    assert!(matches!(late, Refusal::OutsideRecovery { .. }));
}

#[test]
fn incremental_exports_go_on_from_the_baseline_up_to_the_last_settled_minute() {
    let recovery = on("2026-04-01T00:00:00Z", "2026-05-03T00:07:40Z");
    let now = at("2026-05-03T00:12:40Z");
    let from = at("2026-05-01T00:00:00Z");
    let stretch = Stretch {
        from_ms: Some(from),
        to_ms: None,
    };
    let wanted = plan_incremental(recovery, stretch, ExportView::NewAndOldImages, now).unwrap();
    let windows: Vec<(i64, i64)> = wanted
        .iter()
        .map(|wanted| match wanted {
            Wanted::Incremental { window, .. } => (window.from_ms, window.to_ms),
            Wanted::Full { .. } => panic!("a full export"),
        })
        .collect();
    // Two days and 7 minutes: a third window would be too short.
    let end = at("2026-05-03T00:07:00Z");
    assert_eq!(
        windows,
        [
            (from, from + DAY),
            (from + DAY, end - 15 * MINUTE),
            (end - 15 * MINUTE, end)
        ]
    );
}

#[test]
fn tokens_are_a_function_of_what_is_asked_for() {
    let wanted = full("2026-05-01T00:00:00Z");
    let token = client_token(&target(), &wanted, 0);
    assert_eq!(token, client_token(&target(), &wanted, 0));
    // Recorded: another token would make a second export of a request that an older version sent.
    assert_eq!(token, "dynalake-ab447bf65afd05d689dcb79fc5a7aa125a750cf0");
    assert!(token.len() <= 64 && !token.contains('$'));
    let window = Window {
        from_ms: 0,
        to_ms: DAY,
    };
    let view = |view| Wanted::Incremental { window, view };
    let others = [
        client_token(&target(), &wanted, 1),
        client_token(&target(), &full("2026-05-01T00:00:01Z"), 0),
        client_token(&target(), &view(ExportView::NewImage), 0),
        client_token(&target(), &view(ExportView::NewAndOldImages), 0),
        client_token(
            &Target {
                prefix: None,
                ..target()
            },
            &wanted,
            0,
        ),
        client_token(
            &Target {
                format: DataFormat::Ion,
                ..target()
            },
            &wanted,
            0,
        ),
        client_token(
            &Target {
                bucket_owner: Some("k".to_owned()),
                ..target()
            },
            &wanted,
            0,
        ),
        client_token(
            &Target {
                kms_key: Some("k".to_owned()),
                ..target()
            },
            &wanted,
            0,
        ),
    ];
    let mut all: Vec<&String> = others.iter().chain([&token]).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), others.len() + 1);
}

#[test]
fn a_request_is_sent_watched_and_converted_and_a_failure_is_asked_for_anew() {
    let now = at("2026-05-03T00:12:40Z");
    let wanted: Vec<Wanted> = split(now - 2 * DAY, now)
        .into_iter()
        .map(|window| Wanted::Incremental {
            window,
            view: ExportView::NewImage,
        })
        .collect();
    let mut record = RequestRecord::new(target(), &wanted, now);
    assert!(record.id.starts_with("20260503T001240Z-"), "{}", record.id);
    assert_eq!(
        (record.stage(), record.next(now)),
        (Stage::Requested, Step::Send(0))
    );
    assert!(!record.has_exports());
    record.saw(0, seen("01-a", ExportStatus::InProgress));
    assert_eq!(record.next(now), Step::Send(1));
    record.saw(1, seen("01-b", ExportStatus::InProgress));
    assert_eq!(
        (record.stage(), record.next(now)),
        (Stage::Exporting, Step::Look(vec![0, 1]))
    );
    assert!(!record.saw(1, seen("01-b", ExportStatus::InProgress)));
    assert!(record.saw(0, seen("01-a", ExportStatus::Completed)));
    let failure = Failed {
        code: "S3AccessDenied".to_owned(),
        message: "denied".to_owned(),
    };
    record.saw(
        1,
        Seen {
            failure: Some(failure),
            ..seen("01-b", ExportStatus::Failed)
        },
    );
    assert_eq!(
        (record.stage(), record.next(now)),
        (Stage::Failed, Step::Failed(vec![1]))
    );

    // What is whole is kept; what failed gets another token, since the old one is the failed export's.
    let before = record.exports[1].client_token.clone();
    assert_eq!(record.retry_failed(now), 1);
    assert_ne!(record.exports[1].client_token, before);
    assert_eq!(record.next(now), Step::Send(1));
    record.saw(1, seen("01-c", ExportStatus::Completed));
    assert_eq!(
        (record.stage(), record.next(now)),
        (Stage::Exported, Step::Convert)
    );
    assert_eq!(
        record.sources(),
        [
            "s3://exports/nightly/AWSDynamoDB/01-a/",
            "s3://exports/nightly/AWSDynamoDB/01-c/"
        ]
    );
    record.converted = true;
    assert_eq!(
        (record.stage(), record.next(now)),
        (Stage::Converted, Step::Done)
    );
    record.committed = true;
    assert_eq!(record.stage(), Stage::Committed);
}

#[test]
fn a_token_that_dynamodb_may_have_forgotten_is_looked_for_before_it_is_sent() {
    let now = at("2026-05-03T00:00:00Z");
    let mut record = RequestRecord::new(target(), &[full("2026-05-02T00:00:00Z")], now);
    assert_eq!(record.next(now + 7 * HOUR - 1), Step::Send(0));
    assert_eq!(record.next(now + 7 * HOUR), Step::Find(0));
    let later = now + 9 * HOUR;
    record.ask_anew(0, later);
    assert_eq!(record.next(later), Step::Send(0));
    assert_eq!(record.exports[0].attempt, 1);
}

#[tokio::test]
async fn records_are_kept_in_the_lake_and_the_same_request_is_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let lake = Store::local(folder.path());
    let now = at("2026-05-03T00:00:00Z");
    let record = RequestRecord::new(target(), &[full("2026-05-02T00:00:00Z")], now);
    let mut first = store::create(&lake, record.clone()).await.unwrap();
    first.saw(0, seen("01-a", ExportStatus::InProgress));
    store::save(&lake, &first).await.unwrap();
    // Made again within the second: what is known of it is kept.
    assert_eq!(store::create(&lake, record).await.unwrap(), first);
    let windows = split(now - DAY, now);
    let incremental = Wanted::Incremental {
        window: windows[0],
        view: ExportView::NewImage,
    };
    let second = RequestRecord::new(target(), &[incremental], now - 1000);
    store::create(&lake, second.clone()).await.unwrap();
    assert_eq!(
        store::list(&lake).await.unwrap(),
        [second.clone(), first.clone()]
    );
    store::forget(&lake, &second).await.unwrap();
    assert_eq!(store::list(&lake).await.unwrap(), [first.clone()]);

    let text = std::fs::read_to_string(folder.path().join(store::key(&first.id))).unwrap();
    let newer = text.replace("\"version\": 1", "\"version\": 2");
    std::fs::write(folder.path().join(store::key(&first.id)), newer).unwrap();
    let error = store::list(&lake).await.unwrap_err();
    assert!(error.to_string().contains("form 2"), "{error}");
}

#[test]
fn earlier_exports_of_the_same_kind_give_the_estimate() {
    let wanted = full("2026-05-02T00:00:00Z");
    let mut record = RequestRecord::new(target(), &[wanted], 0);
    assert_eq!(
        usual_duration_ms(std::slice::from_ref(&record), ARN, &wanted),
        None
    );
    record.saw(0, seen("01-a", ExportStatus::Completed));
    let records = [record];
    assert_eq!(usual_duration_ms(&records, ARN, &wanted), Some(360_000));
    assert_eq!(
        usual_duration_ms(&records, ARN, &full("2026-01-01T00:00:00Z")),
        Some(360_000)
    );
    let windows = split(0, DAY);
    let incremental = Wanted::Incremental {
        window: windows[0],
        view: ExportView::NewImage,
    };
    assert_eq!(usual_duration_ms(&records, ARN, &incremental), None);
    assert_eq!(usual_duration_ms(&records, "other", &wanted), None);
}

#[test]
fn pauses_grow_up_to_the_longest() {
    let second = Duration::from_secs;
    let mut pauses = Pauses::new(second(10), second(30));
    let first: Vec<Duration> = (0..5).map(|_| pauses.next_pause()).collect();
    assert_eq!(
        first,
        [
            second(10),
            second(15),
            Duration::from_millis(22_500),
            second(30),
            second(30)
        ]
    );
    let mut none = Pauses::new(second(0), second(0));
    assert_eq!(
        (none.next_pause(), none.next_pause()),
        (second(0), second(0))
    );
}

#[test]
fn table_arns_are_told_from_others() {
    let table = TableArn::parse(ARN).unwrap();
    assert_eq!((table.region(), table.name()), ("eu-west-1", "shop"));
    let china = "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/a.b_c-d";
    assert_eq!(TableArn::parse(china).unwrap().name(), "a.b_c-d");
    for (text, says) in [
        ("shop", "is no ARN"),
        (
            "arn:aws:dynamodb:eu-west-1:123456789012:table/shop/stream/2026-05-01T00:00:00.000",
            "/stream/",
        ),
        (
            "arn:aws:dynamodb:eu-west-1:123456789012:table/shop/index/by-name",
            "not the ARN of a table",
        ),
        (
            "arn:aws:s3:eu-west-1:123456789012:table/shop",
            "not the ARN",
        ),
        ("arn:aws:dynamodb:eu-west-1:1234:table/shop", "not the ARN"),
        ("arn:aws:dynamodb::123456789012:table/shop", "not the ARN"),
    ] {
        let problem = TableArn::parse(text).unwrap_err();
        assert!(problem.contains(says), "{text}: {problem}");
    }
}
