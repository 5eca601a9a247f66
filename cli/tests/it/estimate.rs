//! `dynalake estimate`.

use std::path::PathBuf;

use crate::world::World;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Set this to write what the command says into the page.
const WRITE: &str = "DYNALAKE_WRITE_DOCS";

#[test]
fn the_page_on_cost_is_what_the_command_says() {
    let world = World::new();
    let path = repository().join("docs/cost.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut fresh = String::new();
    let mut commands = 0;
    for (index, block) in page.split("```\n").enumerate() {
        if index > 0 {
            fresh.push_str("```\n");
        }
        match block.strip_prefix("$ dynalake ") {
            Some(rest) if index % 2 == 1 => {
                let command = rest.lines().next().unwrap();
                let arguments: Vec<&str> = command.split(' ').collect();
                let run = world.run(&arguments).exits(0);
                for text in ["$ dynalake ", command, "\n", &run.out] {
                    fresh.push_str(text);
                }
                commands += 1;
            }
            _ => fresh.push_str(block),
        }
    }
    assert_eq!(commands, 2);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, fresh).unwrap();
    } else {
        assert_eq!(page, fresh, "run this test with {WRITE}=1");
    }
}

const LOAD: [&str; 9] = [
    "estimate",
    "--changes-per-second",
    "4",
    "--item-bytes",
    "1000",
    "--table-gb",
    "8",
    "--entities",
    "8",
];

#[test]
fn each_cost_is_the_product_that_is_shown_and_prices_can_be_edited() {
    let world = World::new();
    let json = [&LOAD[..], &["--format", "json"]].concat();
    let report = world.run(&json).exits(0).json();
    let lines = report["lines"].as_array().unwrap();
    let mut total = 0.0;
    for line in lines {
        let factors = line["factors"].as_array().unwrap().iter();
        let product: f64 = factors
            .map(|factor| factor["value"].as_f64().unwrap())
            .product();
        let cost = line["cost"].as_f64().unwrap();
        assert!((product - cost).abs() < 1e-9, "{line}");
        total += cost;
    }
    assert!((report["total"].as_f64().unwrap() - total).abs() < 1e-9);
    assert_eq!(report["prices"]["region"], "us-east-1");

    let list = std::fs::read_to_string(repository().join("infra/prices.toml")).unwrap();
    let dearer = list.replace("secret_month = 0.40", "secret_month = 1.40");
    world.write("prices.toml", &dearer);
    let edited = [&json[..], &["--prices", "prices.toml"]].concat();
    let edited = world.run(&edited).exits(0).json();
    let difference = edited["total"].as_f64().unwrap() - total;
    assert!((difference - 1.0).abs() < 1e-9, "{difference}");
}

#[test]
fn a_list_with_other_names_and_a_load_that_is_none_are_refused() {
    let world = World::new();
    let list = std::fs::read_to_string(repository().join("infra/prices.toml")).unwrap();
    for (from, to, says) in [
        ("secret_month", "secret_moth", "unknown field `secret_moth`"),
        (
            "batch_records = 10000",
            "batch_records = 0",
            "`batch_records` must be greater than 0",
        ),
    ] {
        world.write("prices.toml", list.replace(from, to));
        let arguments = [&LOAD[..], &["--prices", "prices.toml"]].concat();
        let run = world.run(&arguments).exits(2);
        assert!(run.err.contains(says), "{run:?}");
    }
    let mut negative = LOAD;
    negative[6] = "NaN";
    let run = world.run(&negative).exits(2);
    assert!(run.err.contains("must be 0 or greater"), "{run:?}");
}
