//! Exports of the same items in DynamoDB JSON and in Ion become the same objects, byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;

use dynalake_export_job::export_writer::{ExportSpec, write_full_export};
use dynalake_export_job::format::DataFormat;
use dynalake_export_job::{ConvertOptions, NoProgress, Source, convert};
use dynalake_pipeline::pipeline::Secrets;
use dynalake_pipeline::store::Store;
use dynalake_schemas::Catalog;
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::generate;

/// The snapshot objects of an export of these items.
fn objects(
    runtime: &Runtime,
    catalog: &Arc<Catalog>,
    items: &[String],
    format: DataFormat,
) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let spec = ExportSpec {
        format,
        data_files: 2,
        ..ExportSpec::new("random", 1_777_000_000_000)
    };
    let export = write_full_export(&folder.path().join("bucket"), &spec, items).unwrap();
    runtime.block_on(async {
        let source = Source::local(&export).unwrap();
        let lake = Store::local(folder.path().join("lake"));
        let (secrets, options) = (Secrets::default(), ConvertOptions::default());
        let catalog = Arc::clone(catalog);
        let converted = convert(
            &source,
            &lake,
            catalog,
            &secrets,
            &options,
            Arc::new(NoProgress),
        )
        .await;
        assert_eq!(converted.unwrap().quarantined, 0);
        let mut objects = BTreeMap::new();
        for meta in lake.list("snapshot/").await.unwrap() {
            let body = lake.get(&meta.key).await.unwrap().unwrap();
            objects.insert(meta.key, body.to_vec());
        }
        objects
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn both_formats_of_an_export_become_the_same_bytes(case in generate::case()) {
        let catalog = Arc::new(case.catalog);
        // A line is one line.
        let compact = |item: &String| {
            let item: serde_json::Value = serde_json::from_str(item).unwrap();
            item.to_string()
        };
        let items: Vec<String> = case.items.iter().map(compact).collect();
        let runtime = Runtime::new().unwrap();
        let from_json = objects(&runtime, &catalog, &items, DataFormat::Json);
        let from_ion = objects(&runtime, &catalog, &items, DataFormat::Ion);
        prop_assert!(!from_json.is_empty());
        prop_assert!(from_json == from_ion, "{:?}", items);
    }
}
