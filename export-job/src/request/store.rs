//! The records of requests in the lake.

use dynalake_pipeline::store::Store;
use serde::Deserialize;

use super::record::VERSION;
use super::{RequestError, RequestRecord};

const FOLDER: &str = "state/requests/";

/// Key of a request's record.
pub fn key(id: &str) -> String {
    format!("{FOLDER}{id}.json")
}

/// Writes the record of a new request. Where there is one already, it is the same request, made
/// twice within a second: that one is given.
///
/// # Errors
/// The store failed, or the record that is there is not readable.
pub async fn create(store: &Store, record: RequestRecord) -> Result<RequestRecord, RequestError> {
    let key = key(&record.id);
    if store.put_if_absent(&key, text(&record)?).await? {
        return Ok(record);
    }
    Ok(read(store, &key).await?.unwrap_or(record))
}

/// Writes what is known now.
///
/// # Errors
/// The store failed.
pub async fn save(store: &Store, record: &RequestRecord) -> Result<(), RequestError> {
    Ok(store.put(&key(&record.id), text(record)?).await?)
}

/// Forgets a request, for which DynamoDB made nothing.
///
/// # Errors
/// The store failed.
pub async fn forget(store: &Store, record: &RequestRecord) -> Result<(), RequestError> {
    Ok(store.delete(&key(&record.id)).await?)
}

/// All requests, oldest first.
///
/// # Errors
/// The store failed, or a record is not readable.
pub async fn list(store: &Store) -> Result<Vec<RequestRecord>, RequestError> {
    let mut records = Vec::new();
    for meta in store.list(FOLDER).await? {
        records.extend(read(store, &meta.key).await?);
    }
    records.sort_by(|a, b| (a.requested_at_ms, &a.id).cmp(&(b.requested_at_ms, &b.id)));
    Ok(records)
}

async fn read(store: &Store, key: &str) -> Result<Option<RequestRecord>, RequestError> {
    #[derive(Deserialize)]
    struct Form {
        version: u32,
    }
    let Some(bytes) = store.get(key).await? else {
        return Ok(None);
    };
    let unreadable = |problem: String| RequestError::Unreadable {
        address: store.address(key),
        problem,
    };
    let form: Form =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    if form.version != VERSION {
        return Err(unreadable(format!(
            "it has form {}, this software reads form {VERSION}",
            form.version
        )));
    }
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| unreadable(error.to_string()))
}

fn text(record: &RequestRecord) -> Result<bytes::Bytes, RequestError> {
    let mut text = serde_json::to_vec_pretty(record).map_err(|error| RequestError::Unreadable {
        address: key(&record.id),
        problem: error.to_string(),
    })?;
    text.push(b'\n');
    Ok(text.into())
}
