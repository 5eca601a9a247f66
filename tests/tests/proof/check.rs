//! Whether the lake equals the table.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use dynalake_pipeline::audit::{Verdict, audit};
use dynalake_pipeline::baseline;
use dynalake_pipeline::current::rule::MARGIN_MS;
use dynalake_pipeline::current::{AsOf, MergeOptions, current_rows};
use dynalake_pipeline::rebuild::rebuild_item;
use dynalake_schemas::{Catalog, ColumnSource, row_columns};
use dynalake_tests::oracle::{Plain, item};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use tokio::runtime::Runtime;

use arrow::array::AsArray;

use crate::lake::Lake;
use crate::source::Source;

/// An item by attribute.
type Item = BTreeMap<String, Plain>;
/// Items by key, each with the entity whose table it is in.
type Items = BTreeMap<(String, String), (usize, Item)>;

/// Whether the lake must be exact: everything has been delivered, and the newest baseline is later
/// than 2M after the last write whose record was lost.
pub fn must_be_exact(source: &Source, lake: &Lake, runtime: &Runtime) -> bool {
    let baseline = runtime
        .block_on(Box::pin(baseline::current(&lake.store, None)))
        .unwrap();
    let waiting = source.shards.iter().any(|shard| !shard.waiting.is_empty());
    let whole = match (source.last_lost, baseline) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(lost), Some(baseline)) => lost < baseline.at_ms - 2 * MARGIN_MS,
    };
    !waiting && whole
}

/// Rust's current rows of all tables, rebuilt into items: the same as a scan of the table.
pub fn rows_equal_the_table(source: &mut Source, lake: &Lake, runtime: &Runtime) {
    let found = current_items(lake, runtime);
    let scanned: BTreeMap<(String, String), Item> = source
        .scan()
        .iter()
        .map(|scanned| (crate::model::key_of(scanned), item(&scanned.to_string())))
        .collect();
    let keys: BTreeSet<&(String, String)> = found.keys().chain(scanned.keys()).collect();
    for key in keys {
        let (lake_has, table_has) = match (found.get(key), scanned.get(key)) {
            (Some((entity, found)), Some(scanned)) => {
                let mut scanned = scanned.clone();
                hide(&lake.catalog, *entity, &mut scanned);
                if *found == scanned {
                    continue;
                }
                (format!("{found:?}"), format!("{scanned:?}"))
            }
            (found, scanned) => (
                found.map_or("nothing".to_owned(), |found| format!("{found:?}")),
                scanned.map_or("nothing".to_owned(), |scanned| format!("{scanned:?}")),
            ),
        };
        let trace = source.trace(key);
        panic!(
            "{key:?}: the lake has\n  {lake_has}\nand the table\n  {table_has}\nthe stream said{trace}"
        );
    }
}

/// Whether an audit of the newest baseline says that the lake would have said the same without it;
/// false where it need not: there is no older baseline, or records were lost that only the newest one
/// makes up for.
pub fn audit_finds_nothing(source: &Source, lake: &Lake, runtime: &Runtime) -> bool {
    let baselines = runtime
        .block_on(Box::pin(baseline::list(&lake.store)))
        .unwrap();
    let [.., older, newest] = &baselines[..] else {
        return false;
    };
    if source
        .last_lost
        .is_some_and(|lost| lost >= older.at_ms - 2 * MARGIN_MS)
    {
        return false;
    }
    let spool = tempfile::tempdir_in(lake.folder.path()).unwrap();
    let options = MergeOptions {
        memory_bytes: 16 << 20,
        spool: spool.path().to_owned(),
    };
    let (store, catalog) = (&lake.store, &lake.catalog);
    let report = audit(store, catalog, &newest.label, newest.at_ms, 5, &options);
    let report = runtime.block_on(Box::pin(report)).unwrap();
    assert_eq!(report.verdict(), Verdict::Equal, "{report:#?}");
    true
}

fn current_items(lake: &Lake, runtime: &Runtime) -> Items {
    let mut items = Items::new();
    for (entity, schema) in lake.catalog.entities.iter().enumerate() {
        let spool = tempfile::tempdir_in(lake.folder.path()).unwrap();
        // Little, so that runs are merged in several passes.
        let options = MergeOptions {
            memory_bytes: 4 << 20,
            spool: spool.path().to_owned(),
        };
        let mut batches = Vec::new();
        let mut sink = |batch| {
            batches.push(batch);
            Ok(())
        };
        let rows = current_rows(
            &lake.store,
            &lake.catalog,
            entity,
            AsOf::Now,
            &options,
            &mut sink,
        );
        runtime.block_on(Box::pin(rows)).unwrap();
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let text = rebuild_item(&lake.catalog, entity, batch, row).unwrap();
                let rebuilt = item(&text);
                let key = match (&rebuilt["PK"], &rebuilt["SK"]) {
                    (Plain::S(pk), Plain::S(sk)) => (pk.clone(), sk.clone()),
                    other => panic!("keys of another type: {other:?}"),
                };
                let other = items.insert(key.clone(), (entity, rebuilt));
                if let Some((other, _)) = other {
                    let other = &lake.catalog.entities[other].table;
                    panic!("{key:?} is in `{}` and in `{other}`", schema.table);
                }
            }
        }
    }
    items
}

/// Takes away what the schema keeps out of the lake.
fn hide(catalog: &Catalog, entity: usize, item: &mut Item) {
    for column in &catalog.entities[entity].columns {
        if let ColumnSource::Attribute(name) = &column.source
            && column.transform.is_some()
        {
            item.retain(|attribute, _| !name.may_take(attribute));
        }
    }
}

/// Every record that was delivered has a row, no row is of another record, nothing is in quarantine.
pub fn nothing_is_lost_or_made_up(source: &Source, lake: &Lake, runtime: &Runtime) {
    let list = |prefix| runtime.block_on(Box::pin(lake.store.list(prefix))).unwrap();
    if let Some(object) = list("quarantine/").first() {
        let body = runtime.block_on(Box::pin(lake.store.get(&object.key)));
        let body = body.unwrap().expect("a listed object is there");
        panic!("in quarantine: {}", String::from_utf8_lossy(&body));
    }
    let mut stored = BTreeSet::new();
    for object in list("changes/") {
        let read = runtime.block_on(Box::pin(lake.store.get(&object.key)));
        let body: Bytes = read.unwrap().expect("a listed object is there");
        let reader = ParquetRecordBatchReaderBuilder::try_new(body).unwrap();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let text = |column| batch.column(column).as_string::<i32>();
            let positions = text(row_columns::STREAM).iter().zip(text(row_columns::SEQ));
            stored.extend(positions.map(|(stream, seq)| {
                let owned = |text: Option<&str>| text.unwrap().to_owned();
                (owned(stream), owned(seq))
            }));
        }
    }
    let delivered = source.shards.iter().flat_map(|shard| &shard.done);
    let delivered: BTreeSet<(String, String)> =
        delivered.map(|record| record.position.clone()).collect();
    assert_eq!(
        delivered.len(),
        source.told,
        "the driver delivered everything"
    );
    assert_eq!(stored, delivered, "rows of exactly the delivered records");
}
