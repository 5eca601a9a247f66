//! Batches that the event source mapping gave up, in its on-failure bucket (Lambda developer guide,
//! "Adding an on-failure destination"): the whole event stands in `payload`, as a JSON string; keys are
//! `aws/lambda/<mapping>/<shard>/YYYY/MM/DD/YYYY-MM-DDTHH.MM.SS-<UUID>`.

use bytes::Bytes;
use dynalake_pipeline::store::{ObjectMeta, Store, StoreError};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What their keys begin with in the bucket.
#[cfg(feature = "cloud")]
pub(in crate::commands) const PREFIX: &str = "aws/lambda";

/// Where those that were replayed go, beside the others: the bucket's lifecycle is the same.
const REPLAYED: &str = "replayed/";

/// The batches that were not replayed, oldest first per shard.
pub(in crate::commands) async fn list(store: &Store) -> Result<Vec<ObjectMeta>, StoreError> {
    let mut objects = store.list("").await?;
    objects.retain(|object| !object.key.starts_with(REPLAYED));
    Ok(objects)
}

/// Moves a batch to those that were replayed. Broken off, it is in both places, and is replayed again.
pub(super) async fn set_aside(store: &Store, key: &str, body: Bytes) -> Result<String, StoreError> {
    let moved = format!("{REPLAYED}{key}");
    store.put(&moved, body).await?;
    store.delete(key).await?;
    Ok(moved)
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// The event of a batch. The error is a sentence without its values.
pub(super) fn event(record: &[u8]) -> Result<Vec<u8>, String> {
    let record: Record<'_> = serde_json::from_slice(record)
        .map_err(|error| format!("it is not the JSON of a batch that was given up: {error}"))?;
    let Some(payload) = record
        .payload
        .map(RawValue::get)
        .filter(|text| *text != "null")
    else {
        return Err(
            "it has no `payload`: only an S3 destination of the mapping keeps the changes themselves"
                .to_owned(),
        );
    };
    if !payload.starts_with('"') {
        return Ok(payload.as_bytes().to_vec());
    }
    serde_json::from_str::<String>(payload)
        .map(String::into_bytes)
        .map_err(|error| format!("its `payload` is not a JSON string: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_stands_in_the_payload_as_text_or_as_it_is() {
        let text = br#"{"version":"1.0","payload":"{\"Records\":[]}"}"#;
        assert_eq!(event(text).unwrap(), br#"{"Records":[]}"#);
        let whole = br#"{"payload":{"Records":[]}}"#;
        assert_eq!(event(whole).unwrap(), br#"{"Records":[]}"#);
        let queued = br#"{"DDBStreamBatchInfo":{"shardId":"s"}}"#;
        assert!(event(queued).unwrap_err().contains("no `payload`"));
        assert!(event(b"PAR1").unwrap_err().contains("not the JSON"));
    }
}
