//! Stopped anywhere and started again: the lake of an undisturbed run, nothing whole done twice.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn stopped_before_any_put_and_started_again() {
    let undisturbed = Bench::new();
    undisturbed.convert().await.unwrap();
    let expected = tree(&undisturbed.lake());
    let mut stops = 0;
    for puts in 0.. {
        let bench = Bench::new();
        let stopping = ConvertOptions {
            stop_after_puts: Some(puts),
            ..bench.options()
        };
        match bench.run(&stopping).await {
            Ok(_) => break,
            Err(ExportError::Stopped) => {}
            Err(other) => panic!("{other}"),
        }
        stops += 1;
        assert!(!bench.is_complete(), "stopped before put {puts}");
        let recorded = tree(&bench.lake().join("state/exports"))
            .keys()
            .filter(|key| key.ends_with(".json.gz.json"))
            .count();
        let report = bench.convert().await.unwrap();
        assert_eq!(report.files.resumed, u64::try_from(recorded).unwrap());
        assert_eq!(report.items, 62);
        assert!(tree(&bench.lake()) == expected, "stopped before put {puts}");
    }
    // Every file that is in the lake in the end is one put, and each was once the first to fail.
    assert_eq!(stops, expected.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_export_is_not_converted_again() {
    let bench = Bench::new();
    let first = bench.convert().await.unwrap();
    let before = tree(&bench.lake());
    let second = bench.convert().await.unwrap();
    assert_eq!((second.files.converted, second.files.resumed), (0, 4));
    let same = ConvertReport {
        files: first.files,
        ..second
    };
    assert_eq!(same, first);
    assert!(tree(&bench.lake()) == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_and_cut_objects_are_made_again() {
    let bench = Bench::new();
    let report = bench.convert().await.unwrap();
    let expected = tree(&bench.lake());
    let users: Vec<&String> = expected
        .keys()
        .filter(|key| key.starts_with("snapshot/users/"))
        .collect();
    std::fs::remove_file(bench.lake().join(users[0])).unwrap();
    std::fs::write(bench.lake().join(users[1]), b"cut").unwrap();
    std::fs::remove_file(bench.lake().join(&report.quarantine_objects[0])).unwrap();
    let again = bench.convert().await.unwrap();
    assert!(
        (2..=3).contains(&again.files.converted),
        "{:?}",
        again.files
    );
    assert!(tree(&bench.lake()) == expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_plan_holds_whatever_memory_a_later_run_has() {
    let undisturbed = Bench::new();
    undisturbed.convert().await.unwrap();
    let bench = Bench::new();
    let stopping = ConvertOptions {
        stop_after_puts: Some(6),
        ..bench.options()
    };
    assert!(matches!(
        bench.run(&stopping).await,
        Err(ExportError::Stopped)
    ));
    let other = ConvertOptions {
        workers: NonZeroUsize::new(7),
        memory_mb: 3,
        object_mb: 1,
        ..bench.options()
    };
    bench.run(&other).await.unwrap();
    assert!(tree(&bench.lake()) == tree(&undisturbed.lake()));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_schemas_are_refused_until_told_to_replace() {
    let bench = Bench::new();
    bench.convert().await.unwrap();
    let before = tree(&bench.lake());
    let renamed = catalog_with(LAKE_TOML, &[&USER_TOML.replace("\"users\"", "\"people\"")]);
    let convert = async |lake: &Path, options: &ConvertOptions| {
        run_into(&bench.export, lake, &renamed, options).await
    };
    let error = convert(&bench.lake(), &bench.options()).await.unwrap_err();
    assert_eq!(error.refusal(), Some(RefusalKind::OtherPlan), "{error}");
    assert!(error.to_string().contains("other schemas"), "{error}");
    assert!(tree(&bench.lake()) == before);

    let fresh = bench.folder.path().join("fresh");
    convert(&fresh, &bench.options()).await.unwrap();
    // Stopped in between, the replacement goes on with and without being asked for again.
    let stopping = ConvertOptions {
        replace: true,
        stop_after_puts: Some(5),
        ..bench.options()
    };
    let stopped = convert(&bench.lake(), &stopping).await;
    assert!(matches!(stopped, Err(ExportError::Stopped)), "{stopped:?}");
    assert!(!bench.is_complete());
    convert(&bench.lake(), &bench.options()).await.unwrap();
    // The schemas of before stay: other baselines may have been made with them.
    let mut expected = tree(&fresh);
    let kept = before.into_iter();
    expected.extend(kept.filter(|(key, _)| key.starts_with("state/schemas/")));
    assert!(tree(&bench.lake()) == expected);
}
