//! Which exports of a lake are complete.

use std::collections::BTreeSet;

use dynalake_pipeline::store::Store;
use serde::Deserialize;

use crate::exit::{Failure, Outcome};

/// Labels (`YYYYMMDDTHHMMSSZ`) of the exports whose conversion has been finished: each has a
/// `state/exports/<export>/complete.json`, written last.
pub(crate) async fn complete(store: &Store) -> Outcome<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Complete {
        label: String,
    }
    let mut labels = BTreeSet::new();
    for object in store.list("state/exports/").await? {
        if !object.key.ends_with("/complete.json") {
            continue;
        }
        // Listed and gone: somebody converts the export again.
        let Some(bytes) = store.get(&object.key).await? else {
            continue;
        };
        let complete: Complete = serde_json::from_slice(&bytes).map_err(|error| {
            Failure::findings(format!("`{}` is not readable: {error}", object.key))
                .hint("remove it and run the same `dynalake export convert` again")
        })?;
        labels.insert(complete.label);
    }
    Ok(labels)
}
