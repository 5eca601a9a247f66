//! What is merged next, from names and sizes alone.

use super::super::plan::{Frame, LATE_OBJECTS, Unit, next_unit, output_key};
use super::*;
use crate::store::ObjectMeta;

const TARGET: u64 = 1000;

fn object(name: &str, size: u64) -> ObjectMeta {
    ObjectMeta {
        key: format!("changes/things/dt=2024-10-04/{name}.parquet"),
        size,
        modified_ms: 0,
    }
}

/// Plans until nothing is left to do, as if all rows stayed: gives the units and the sizes at the end.
fn play(catalog: &Catalog, mut live: Vec<ObjectMeta>) -> (Vec<Unit>, Vec<u64>) {
    let entity = catalog
        .entities
        .iter()
        .find(|e| e.table == "things")
        .unwrap();
    let frame = Frame {
        entity,
        day: "2024-10-04",
        target_bytes: TARGET,
    };
    let mut units = Vec::new();
    loop {
        live.sort_by(|a, b| a.key.cmp(&b.key));
        let Some(unit) = next_unit(frame, &live, |_| true) else {
            break;
        };
        assert!(units.len() < 1000, "no end");
        live.retain(|meta| !unit.inputs.contains(meta));
        let mut bytes: u64 = unit.inputs.iter().map(|input| input.size).sum();
        for part in 0.. {
            let size = bytes.min(TARGET + 3);
            live.push(ObjectMeta {
                key: output_key(frame, &unit.id, part),
                size,
                modified_ms: 0,
            });
            bytes -= size;
            if bytes == 0 {
                break;
            }
        }
        units.push(unit);
    }
    let mut sizes: Vec<u64> = live.iter().map(|meta| meta.size).collect();
    sizes.sort_unstable();
    (units, sizes)
}

#[test]
fn any_number_of_objects_ends_as_few_of_the_size_asked_for() {
    let catalog = catalog(THING_TOML);
    let many: Vec<ObjectMeta> = (0..5000).map(|n| object(&format!("{n:05}"), 1)).collect();
    let (units, sizes) = play(&catalog, many);
    assert!(units.iter().all(|unit| unit.inputs.len() <= 1000));
    assert!(sizes.len() <= 6, "{sizes:?}");
    assert_eq!(sizes.iter().sum::<u64>(), 5000);
    let large: Vec<ObjectMeta> = (0..50).map(|n| object(&format!("{n:05}"), 499)).collect();
    let (units, sizes) = play(&catalog, large);
    for unit in &units {
        assert!(unit.inputs.iter().map(|input| input.size).sum::<u64>() <= 4 * TARGET);
    }
    // Fewer than would be worth the work.
    let small = sizes.iter().filter(|size| **size < TARGET / 2).count();
    assert!(small < LATE_OBJECTS, "{sizes:?}");
}

#[test]
fn one_object_and_large_ones_are_left() {
    let catalog = catalog(THING_TOML);
    let units = |live| play(&catalog, live).0.len();
    assert_eq!(units(vec![]), 0);
    assert_eq!(units(vec![object("1", 10)]), 0);
    assert_eq!(
        units(vec![object("1", 500), object("2", 700), object("3", 9)]),
        0
    );
    assert_eq!(units(vec![object("1", 499), object("2", 1)]), 1);
}

#[test]
fn names_follow_from_what_is_merged() {
    let catalog = catalog(THING_TOML);
    let id = |live| play(&catalog, live).0[0].id.clone();
    let first = id(vec![object("1", 10), object("2", 10)]);
    assert_eq!(first, id(vec![object("2", 10), object("1", 10)]));
    assert_ne!(first, id(vec![object("1", 10), object("2", 11)]));
    assert_ne!(first, id(vec![object("1", 10), object("3", 10)]));
    assert_eq!(first.len(), 32);
}
