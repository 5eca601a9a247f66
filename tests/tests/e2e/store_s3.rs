//! The S3 store against a server that checks signatures and checksums.

use bytes::Bytes;
use dynalake_pipeline::store::s3::{CHUNK_SIZE, MULTIPART_ABOVE};
use dynalake_pipeline::store::{Encryption, S3Options, Store, StoreErrorKind};
use dynalake_tests::{Action, FaultProxy, ProxiedRequest, seaweed};
use tokio::io::AsyncReadExt as _;

/// Bytes in which a part that lands in the wrong place shows.
fn body(length: usize) -> Bytes {
    (0u32..).flat_map(u32::to_le_bytes).take(length).collect()
}

async fn keys(store: &Store, prefix: &str) -> Vec<String> {
    store
        .list(prefix)
        .await
        .unwrap()
        .into_iter()
        .map(|meta| meta.key)
        .collect()
}

fn is_write(request: &ProxiedRequest) -> bool {
    request.method == "PUT" || request.method == "POST"
}

#[tokio::test]
async fn an_object_is_read_back_as_it_was_put() {
    let Some(server) = seaweed() else { return };
    let store = server.place("round-trip").store();
    assert_eq!(store.get("a/b").await.unwrap(), None);
    assert_eq!(store.head("a/b").await.unwrap(), None);
    assert_eq!(store.list("").await.unwrap(), vec![]);
    assert_eq!(
        store.open_read("a/b").await.unwrap_err().kind(),
        StoreErrorKind::NotFound
    );

    store
        .put("a/b", Bytes::from_static(b"first"))
        .await
        .unwrap();
    store
        .put("a/b", Bytes::from_static(b"hello world"))
        .await
        .unwrap();

    assert_eq!(store.get("a/b").await.unwrap().unwrap(), "hello world");
    assert_eq!(store.get_range("a/b", 6..11).await.unwrap(), "world");
    assert_eq!(store.get_range("a/b", 3..3).await.unwrap(), "");
    assert_eq!(
        store.get_range("a/b", 6..20).await.unwrap_err().kind(),
        StoreErrorKind::Changed
    );
    let meta = store.head("a/b").await.unwrap().unwrap();
    assert_eq!((meta.key.as_str(), meta.size), ("a/b", 11));
    assert!(meta.modified_ms > 1_700_000_000_000);
    let mut text = String::new();
    store
        .open_read("a/b")
        .await
        .unwrap()
        .read_to_string(&mut text)
        .await
        .unwrap();
    assert_eq!(text, "hello world");

    store.put("empty", Bytes::new()).await.unwrap();
    assert_eq!(store.get("empty").await.unwrap().unwrap(), "");
    let mut nothing = Vec::new();
    store
        .open_read("empty")
        .await
        .unwrap()
        .read_to_end(&mut nothing)
        .await
        .unwrap();
    assert_eq!(nothing, b"");

    store.delete("a/b").await.unwrap();
    store.delete("a/b").await.unwrap();
    assert_eq!(store.get("a/b").await.unwrap(), None);
}

#[tokio::test]
async fn keys_with_signs_that_urls_escape_are_the_same_in_put_list_and_get() {
    let Some(server) = seaweed() else { return };
    let store = server.place("escapes").store();
    let names = [
        "dt=2026-05-01/a b+c&d.txt",
        "dt=2026-05-01/注文%20~!$'()*,;:@",
        "z",
    ];
    for name in names {
        store
            .put(name, Bytes::copy_from_slice(name.as_bytes()))
            .await
            .unwrap();
    }
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    assert_eq!(keys(&store, "").await, sorted);
    assert_eq!(keys(&store, "dt=2026-05-01/").await, sorted[..2]);
    assert_eq!(keys(&store, "dt=2026-0").await, sorted[..2]);
    for name in names {
        assert_eq!(store.get(name).await.unwrap().unwrap(), name.as_bytes());
    }
}

#[tokio::test]
async fn a_listing_of_more_than_one_page_is_whole() {
    let Some(server) = seaweed() else { return };
    let store = server.place("pages").store();
    let names: Vec<String> = (0..1005).map(|n| format!("p/{n:04}")).collect();
    let mut puts = tokio::task::JoinSet::new();
    for chunk in names.chunks(126) {
        let (store, chunk) = (store.clone(), chunk.to_vec());
        puts.spawn(async move {
            for name in chunk {
                store.put(&name, Bytes::from_static(b"1")).await.unwrap();
            }
        });
    }
    puts.join_all().await;
    assert_eq!(keys(&store, "p/").await, names);
}

#[tokio::test]
async fn large_objects_go_up_in_parts_from_memory_and_from_a_file() {
    let Some(server) = seaweed() else { return };
    let place = server.place("parts");
    let proxy = FaultProxy::start(server.address());
    let store = place.through(proxy.endpoint()).store();
    let whole = body(MULTIPART_ABOVE + 5_000_001);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f"), &whole).unwrap();

    store
        .put("small", whole.slice(..MULTIPART_ABOVE))
        .await
        .unwrap();
    assert_eq!(
        proxy
            .seen()
            .iter()
            .filter(|request| is_write(request))
            .count(),
        1
    );
    proxy.heal();
    store.put("memory", whole.clone()).await.unwrap();
    // Start, three parts, completion.
    assert_eq!(
        proxy
            .seen()
            .iter()
            .filter(|request| is_write(request))
            .count(),
        5
    );
    store
        .put_file("file", &folder.path().join("f"))
        .await
        .unwrap();

    for key in ["memory", "file"] {
        assert_eq!(store.get(key).await.unwrap().unwrap(), whole, "{key}");
        let mut reader = store.open_read(key).await.unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).await.unwrap();
        assert_eq!(
            (reader.size(), read.len()),
            (whole.len() as u64, whole.len())
        );
        assert_eq!(read, whole, "{key}");
        let across = CHUNK_SIZE - 3..CHUNK_SIZE + 3;
        let at = usize::try_from(across.start).unwrap();
        let expected = whole.slice(at..at + 6);
        assert_eq!(store.get_range(key, across).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn an_upload_in_parts_that_fails_is_aborted_and_leaves_nothing() {
    let Some(server) = seaweed() else { return };
    let place = server.place("abort");
    let proxy = FaultProxy::start(server.address());
    let store = place.through(proxy.endpoint()).store();
    let whole = body(MULTIPART_ABOVE + 1);
    for n in 0..3 {
        proxy.fail_put(n, Action::Deny);
        let error = store.put("x", whole.clone()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(
            proxy
                .seen()
                .iter()
                .any(|request| request.method == "DELETE"),
            "aborted"
        );
    }
    proxy.set(|request| {
        let completes = request.method == "POST" && request.target.contains("uploadId");
        if completes {
            Action::SlowDown
        } else {
            Action::Pass
        }
    });
    let error = store.put("x", whole.clone()).await.unwrap_err();
    assert!(error.retryable(), "{error}");
    proxy.heal();
    assert_eq!(store.list("").await.unwrap(), vec![]);
    let call = place
        .client()
        .list_multipart_uploads()
        .bucket(place.bucket)
        .send();
    let uploads = Box::pin(call).await.unwrap();
    let ours = |upload: &&aws_sdk_s3::types::MultipartUpload| {
        upload
            .key()
            .is_some_and(|key| key.starts_with(&place.prefix))
    };
    assert_eq!(uploads.uploads().iter().filter(ours).count(), 0);
    store.put("x", whole.clone()).await.unwrap();
    assert_eq!(store.get("x").await.unwrap().unwrap(), whole);
}

#[tokio::test]
async fn of_many_that_put_if_absent_one_wins() {
    let Some(server) = seaweed() else { return };
    let store = server.place("absent").store();
    let mut puts = tokio::task::JoinSet::new();
    for n in 0..12u8 {
        let store = store.clone();
        puts.spawn(async move {
            store
                .put_if_absent("lock", Bytes::from(vec![n]))
                .await
                .unwrap()
                .then_some(n)
        });
    }
    let winners: Vec<u8> = puts.join_all().await.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(store.get("lock").await.unwrap().unwrap(), winners);
    assert!(
        !store
            .put_if_absent("lock", Bytes::from_static(b"x"))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn a_passing_failure_is_retried_and_a_lasting_one_says_what_the_service_said() {
    let Some(server) = seaweed() else { return };
    let place = server.place("retry");
    let proxy = FaultProxy::start(server.address());
    let store = place.through(proxy.endpoint()).store();

    for action in [Action::SlowDown, Action::Reset, Action::DropAnswer] {
        proxy.set(move |request| {
            if request.attempt == 0 {
                action
            } else {
                Action::Pass
            }
        });
        store.put("x", body(100_000)).await.unwrap();
        assert_eq!(proxy.seen().len(), 2, "{action:?}");
        assert_eq!(
            store.get("x").await.unwrap().unwrap(),
            body(100_000),
            "{action:?}"
        );
    }

    proxy.fail_put(0, Action::SlowDown);
    let error = store.put("x", body(10)).await.unwrap_err();
    assert!(error.retryable());
    assert_eq!(proxy.seen().len(), 4, "four attempts");
    assert_eq!(
        (error.http_status(), error.code()),
        (Some(503), Some("SlowDown"))
    );
    assert_eq!(error.request_id(), Some("PROXY0000000001"));
    assert_eq!(error.extended_request_id(), Some("proxy/extended/1"));
    assert_eq!(error.address(), format!("{}/x", place.uri()));
    let text = error.to_string();
    for part in [
        "cannot put",
        "/x`",
        "503",
        "SlowDown",
        "Please reduce",
        "PROXY0000000001",
    ] {
        assert!(text.contains(part), "{text}");
    }

    proxy.fail_put(0, Action::Reset);
    let error = store.put("x", body(10)).await.unwrap_err();
    assert!(
        error.retryable() && error.http_status().is_none(),
        "{error}"
    );
    assert!(error.cause().is_some());

    proxy.fail_put(0, Action::Deny);
    let error = store.put("x", body(10)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Denied);
    assert!(
        !error.retryable() && error.to_string().contains("check the credentials"),
        "{error}"
    );
    assert_eq!(proxy.seen().len(), 1, "not tried again");
    assert_eq!(
        store.get("x").await.unwrap().unwrap(),
        body(100_000),
        "the object is as it was"
    );
}

#[tokio::test]
async fn a_body_that_breaks_off_is_read_again() {
    let Some(server) = seaweed() else { return };
    let place = server.place("broken-body");
    let proxy = FaultProxy::start(server.address());
    let store = place.through(proxy.endpoint()).store();
    let whole = body(usize::try_from(CHUNK_SIZE).unwrap() + 1_000_000);
    store.put("x", whole.clone()).await.unwrap();

    let first_get_breaks = |request: &ProxiedRequest| {
        if request.method == "GET" && request.attempt == 0 {
            Action::Truncate
        } else {
            Action::Pass
        }
    };
    proxy.set(first_get_breaks);
    assert_eq!(store.get("x").await.unwrap().unwrap(), whole);
    proxy.set(first_get_breaks);
    let mut read = Vec::new();
    store
        .open_read("x")
        .await
        .unwrap()
        .read_to_end(&mut read)
        .await
        .unwrap();
    assert_eq!(read, whole);

    proxy.set(|request| {
        if request.method == "GET" {
            Action::Truncate
        } else {
            Action::Pass
        }
    });
    let error = store.get("x").await.unwrap_err();
    assert!(error.retryable(), "{error}");
    assert!(error.to_string().contains("broke off"), "{error}");
}

#[tokio::test]
async fn a_reader_fails_when_the_object_is_replaced_meanwhile() {
    let Some(server) = seaweed() else { return };
    let place = server.place("replaced");
    let proxy = FaultProxy::start(server.address());
    let store = place.through(proxy.endpoint()).store();
    store.put("x", body(1000)).await.unwrap();
    let mut reader = store.open_read("x").await.unwrap();
    store.put("x", body(1001)).await.unwrap();
    proxy.heal();
    let mut read = Vec::new();
    let result = reader.read_to_end(&mut read).await;
    // Servers that check `If-Match` on GET refuse; the header is sent in any case.
    let seen = proxy.seen();
    assert!(
        seen.iter()
            .all(|request| request.header("if-match").is_some()),
        "{seen:?}"
    );
    assert!(result.is_err(), "read {} bytes", read.len());
}

#[tokio::test]
async fn wrong_credentials_and_a_missing_bucket_are_told_apart_from_a_missing_object() {
    let Some(server) = seaweed() else { return };
    let place = server.place("denied");
    let wrong = place.client_with("AKIDEXAMPLE", "not-the-secret");
    let store = Store::s3(wrong, place.bucket, &place.prefix, S3Options::default());
    let error = store.put("x", body(10)).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (StoreErrorKind::Denied, Some("SignatureDoesNotMatch"))
    );
    assert_eq!(
        store.get("x").await.unwrap_err().kind(),
        StoreErrorKind::Denied
    );

    let store = Store::s3(place.client(), "no-such-bucket", "", S3Options::default());
    let error = store.get("x").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code()),
        (StoreErrorKind::NotFound, Some("NoSuchBucket"))
    );
    assert!(store.list("").await.is_err());
}

#[tokio::test]
async fn every_call_carries_the_options_of_the_bucket() {
    let Some(server) = seaweed() else { return };
    let place = server.place("options");
    let proxy = FaultProxy::start(server.address());
    let options = S3Options {
        encryption: Encryption::Aes256,
        expected_bucket_owner: Some("111122223333".to_owned()),
    };
    let store = place.through(proxy.endpoint()).store_with(options);
    store.put("x", body(10)).await.unwrap();
    store.put("big", body(MULTIPART_ABOVE + 1)).await.unwrap();
    store.put_if_absent("y", body(10)).await.unwrap();
    store.get("x").await.unwrap();
    store.get_range("x", 1..2).await.unwrap();
    store.head("x").await.unwrap();
    store.list("").await.unwrap();
    store.delete("x").await.unwrap();
    for request in proxy.seen() {
        let owner = request.header("x-amz-expected-bucket-owner");
        assert_eq!(owner, Some("111122223333"), "{request:?}");
        // Parts and completions take the encryption of their upload's start.
        if is_write(&request) && !request.target.contains("uploadId") {
            let encryption = request.header("x-amz-server-side-encryption");
            assert_eq!(encryption, Some("AES256"), "{request:?}");
        }
        if request.method == "PUT" {
            assert!(
                request.header("x-amz-checksum-crc32").is_some(),
                "{request:?}"
            );
            let hash = request.header("x-amz-content-sha256").unwrap();
            assert_eq!(hash.len(), 64, "the body is signed: {request:?}");
        }
    }

    // The server has no KMS; what is asked for is seen on the way.
    for (key_id, expected) in [(Some("alias/lake"), Some("alias/lake")), (None, None)] {
        let encryption = Encryption::Kms {
            key_id: key_id.map(str::to_owned),
        };
        let options = S3Options {
            encryption,
            ..S3Options::default()
        };
        let store = place.through(proxy.endpoint()).store_with(options);
        proxy.set(|_| Action::Deny);
        store.put("x", body(10)).await.unwrap_err();
        store
            .put("big", body(MULTIPART_ABOVE + 1))
            .await
            .unwrap_err();
        let seen = proxy.seen();
        assert_eq!(seen.len(), 2);
        for request in seen {
            let header = |name: &str| request.header(name).map(str::to_owned);
            let prefix = "x-amz-server-side-encryption";
            assert_eq!(header(prefix).as_deref(), Some("aws:kms"));
            assert_eq!(
                header(&format!("{prefix}-aws-kms-key-id")).as_deref(),
                expected
            );
            assert_eq!(
                header(&format!("{prefix}-bucket-key-enabled")).as_deref(),
                Some("true")
            );
        }
    }
}
