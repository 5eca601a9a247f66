use std::fs;
use std::path::Path;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;

use crate::store::{Store, StoreErrorKind};

fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path().join("not/yet/there"));
    (folder, store)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
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

#[tokio::test]
async fn an_object_is_read_back_as_it_was_put() {
    let (_folder, store) = store();
    assert_eq!(store.get("a/b").await.unwrap(), None);
    assert_eq!(store.head("a/b").await.unwrap(), None);
    assert_eq!(store.list("").await.unwrap(), vec![]);

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
    let meta = store.head("a/b").await.unwrap().unwrap();
    assert_eq!((meta.key.as_str(), meta.size), ("a/b", 11));
    assert!(meta.modified_ms > 1_700_000_000_000);
    let mut reader = store.open_read("a/b").await.unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).await.unwrap();
    assert_eq!((text.as_str(), reader.size()), ("hello world", 11));

    store.delete("a/b").await.unwrap();
    store.delete("a/b").await.unwrap();
    assert_eq!(store.get("a/b").await.unwrap(), None);
}

#[tokio::test]
async fn a_put_leaves_nothing_but_the_object() {
    let (folder, store) = store();
    store
        .put("t/x.parquet", Bytes::from_static(b"1"))
        .await
        .unwrap();
    store
        .put("t/x.parquet", Bytes::from_static(b"2"))
        .await
        .unwrap();
    assert!(
        !store
            .put_if_absent("t/x.parquet", Bytes::from_static(b"3"))
            .await
            .unwrap()
    );
    assert_eq!(names(&folder.path().join("not/yet/there/t")), ["x.parquet"]);
    assert_eq!(store.get("t/x.parquet").await.unwrap().unwrap(), "2");
}

#[tokio::test]
async fn a_failed_put_keeps_the_old_object_and_leaves_no_temporary_file() {
    let (folder, store) = store();
    store.put("t/x", Bytes::from_static(b"old")).await.unwrap();
    // A folder in the place of the target cannot be replaced by a file.
    store.put("t/d/y", Bytes::from_static(b"1")).await.unwrap();
    let error = store
        .put("t/d", Bytes::from_static(b"2"))
        .await
        .unwrap_err();
    assert_eq!(error.operation(), "put");
    assert!(error.to_string().contains("not/yet/there/t/d"), "{error}");
    let missing = folder.path().join("missing");
    let error = store.put_file("t/x", &missing).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotFound);
    assert!(error.to_string().contains("missing"), "{error}");
    assert_eq!(names(&folder.path().join("not/yet/there/t")), ["d", "x"]);
    assert_eq!(store.get("t/x").await.unwrap().unwrap(), "old");
}

#[tokio::test]
async fn leftovers_of_a_crash_are_not_objects() {
    let (folder, store) = store();
    store.put("t/x", Bytes::from_static(b"1")).await.unwrap();
    let root = folder.path().join("not/yet/there");
    fs::write(root.join("t/.Ab3xYz.tmp"), b"half").unwrap();
    fs::create_dir(root.join("t/.hidden")).unwrap();
    fs::write(root.join("t/.hidden/y"), b"half").unwrap();
    assert_eq!(keys(&store, "").await, ["t/x"]);
    let error = store.get("t/.Ab3xYz.tmp").await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::BadKey);
}

#[tokio::test]
async fn listing_takes_the_prefix_as_text_and_sorts_bytewise() {
    let (_folder, store) = store();
    for key in [
        "b", "a/z", "a/b/c", "a/b-1", "a/b.txt", "a/B", "ab/x", "a/é",
    ] {
        store.put(key, Bytes::from_static(b"1")).await.unwrap();
    }
    assert_eq!(
        keys(&store, "").await,
        [
            "a/B", "a/b-1", "a/b.txt", "a/b/c", "a/z", "a/é", "ab/x", "b"
        ]
    );
    assert_eq!(keys(&store, "a").await.len(), 7);
    assert_eq!(keys(&store, "a/").await.len(), 6);
    assert_eq!(keys(&store, "a/b").await, ["a/b-1", "a/b.txt", "a/b/c"]);
    assert_eq!(keys(&store, "a/b/").await, ["a/b/c"]);
    assert_eq!(keys(&store, "a/b/c").await, ["a/b/c"]);
    for nothing in ["c", "a/b/c/d", "../", "/a", "a//", "a/b/../"] {
        assert_eq!(keys(&store, nothing).await, [""; 0], "{nothing}");
    }
}

#[tokio::test]
async fn of_many_that_put_if_absent_one_wins() {
    let (_folder, store) = store();
    let puts = (0..16u8).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            (
                n,
                store
                    .put_if_absent("lock", Bytes::from(vec![n]))
                    .await
                    .unwrap(),
            )
        })
    });
    let mut winners = Vec::new();
    for put in puts {
        let (n, won) = put.await.unwrap();
        if won {
            winners.push(n);
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(store.get("lock").await.unwrap().unwrap(), winners);
}

#[tokio::test]
async fn keys_that_leave_the_root_touch_nothing() {
    let (folder, store) = store();
    fs::write(folder.path().join("secret"), b"1").unwrap();
    for key in [
        "../../../secret",
        "/etc/hostname",
        "a/../../../../secret",
        "",
    ] {
        assert_eq!(
            store.get(key).await.unwrap_err().kind(),
            StoreErrorKind::BadKey
        );
        let put = store.put(key, Bytes::from_static(b"2")).await;
        assert_eq!(put.unwrap_err().kind(), StoreErrorKind::BadKey);
        assert_eq!(
            store.delete(key).await.unwrap_err().kind(),
            StoreErrorKind::BadKey
        );
        assert_eq!(
            store.head(key).await.unwrap_err().kind(),
            StoreErrorKind::BadKey
        );
    }
    assert_eq!(fs::read(folder.path().join("secret")).unwrap(), b"1");
}

#[tokio::test]
async fn a_range_past_the_end_and_a_missing_object_are_told_apart() {
    let (_folder, store) = store();
    store.put("x", Bytes::from_static(b"12345")).await.unwrap();
    assert_eq!(
        store.get_range("x", 3..9).await.unwrap_err().kind(),
        StoreErrorKind::Changed
    );
    assert_eq!(
        store.get_range("y", 0..1).await.unwrap_err().kind(),
        StoreErrorKind::NotFound
    );
    assert_eq!(
        store.open_read("y").await.unwrap_err().kind(),
        StoreErrorKind::NotFound
    );
    // A file stands where the key needs a folder: no object there, and none can be put there.
    assert_eq!(store.get("x/y").await.unwrap(), None);
    assert_eq!(store.head("x/y").await.unwrap(), None);
    store.delete("x/y").await.unwrap();
    store
        .put("x/y", Bytes::from_static(b"1"))
        .await
        .unwrap_err();
}

#[tokio::test]
async fn a_file_is_copied_whole() {
    let (folder, store) = store();
    let source = folder.path().join("source");
    let body: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    fs::write(&source, &body).unwrap();
    store.put_file("t/big", &source).await.unwrap();
    assert_eq!(store.get("t/big").await.unwrap().unwrap(), body);
    assert!(source.exists());
}

#[cfg(unix)]
#[tokio::test]
async fn objects_are_readable_by_whom_the_umask_lets() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, store) = store();
    let plain = folder.path().join("plain");
    fs::write(&plain, b"1").unwrap();
    store.put("x", Bytes::from_static(b"1")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.path().join("not/yet/there/x")), mode(&plain));
}
