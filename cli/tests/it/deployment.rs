use std::fs;
use std::io::Read;

use crate::world::{World, shop_schemas};

/// A file that begins like a Linux binary for this machine (62: `x86_64`, 183: arm64).
fn binary(machine: u8, content: &str) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0".to_vec();
    bytes.extend([machine, 0]);
    bytes.extend(content.as_bytes());
    bytes
}

#[test]
fn a_template_is_printed_or_written_with_the_tables_of_the_schemas() {
    let world = World::new();
    shop_schemas(&world);
    let printed = world.run(&["template", "schemas"]).exits(0).out;
    assert!(printed.starts_with("AWSTemplateFormatVersion"));
    assert!(printed.contains("\"Name\":\"orders_changes\""));
    assert!(printed.contains("AWS::Lambda::EventSourceMapping"));
    let run = world
        .run(&["template", "schemas", "--out", "template.yaml"])
        .exits(0);
    assert!(run.out.contains("template.yaml, "), "{run:#?}");
    assert_eq!(
        fs::read_to_string(world.path("template.yaml")).unwrap(),
        printed
    );
    let run = world
        .run(&["template", "schemas", "--out", "no/where.yaml"])
        .exits(2);
    assert!(run.err.contains("no/where.yaml cannot be written"));
}

#[test]
fn the_same_contents_give_the_same_zips_and_names() {
    let bundle = |world: &World, out: &str| {
        let run = world.run(&[
            "bundle",
            "schemas",
            "--artifacts",
            "bin",
            "--out",
            out,
            "--format",
            "json",
        ]);
        run.exits(0).json()["bundles"].clone()
    };
    let make = || {
        let world = World::new();
        shop_schemas(&world);
        world.write("schemas/README.md", "not for the functions");
        world.write("bin/stream", binary(183, "stream"));
        world.write("bin/export-job/bootstrap", binary(183, "export"));
        world
    };
    let (first, second) = (make(), make());
    let zips = bundle(&first, "out");
    assert_eq!(zips, bundle(&second, "out"));
    let names: Vec<&str> = zips
        .as_array()
        .unwrap()
        .iter()
        .map(|zip| zip["file"].as_str().unwrap())
        .collect();
    assert!(names[0].starts_with("schemas-"), "{names:?}");
    assert!(names[1].starts_with("stream-arm64-"), "{names:?}");
    assert!(names[2].starts_with("export-job-arm64-"), "{names:?}");
    for name in &names {
        let path = format!("out/{name}");
        let bytes = fs::read(first.path(&path)).unwrap();
        assert_eq!(bytes, fs::read(second.path(&path)).unwrap(), "{name}");
    }
    let open = |name: &str| {
        let file = fs::File::open(first.path(&format!("out/{name}"))).unwrap();
        zip::ZipArchive::new(file).unwrap()
    };
    let layer = open(names[0]);
    let files: Vec<String> = layer
        .file_names()
        .map(|name| name.unwrap().into_owned())
        .collect();
    let holds = |name: &str| files.iter().any(|file| file == name);
    assert!(holds("schemas/lake.toml"), "{files:?}");
    assert!(!holds("schemas/README.md"), "{files:?}");
    let mut function = open(names[1]);
    let mut bootstrap = function.by_name("bootstrap").unwrap();
    assert_eq!(bootstrap.unix_mode().map(|mode| mode & 0o777), Some(0o755));
    let mut content = Vec::new();
    bootstrap.read_to_end(&mut content).unwrap();
    assert_eq!(content, binary(183, "stream"));

    // Another schema is another layer, and no other function.
    second.write("schemas/lake.toml", {
        let text = fs::read_to_string(second.path("schemas/lake.toml")).unwrap();
        format!("{text}\n# changed\n")
    });
    let changed = bundle(&second, "out");
    assert_ne!(changed[0]["file"], zips[0]["file"]);
    assert_eq!(changed[1], zips[1]);
}

#[test]
fn what_lambda_cannot_run_is_refused() {
    let world = World::new();
    shop_schemas(&world);
    let bundle = |code| {
        world
            .run(&["bundle", "schemas", "--artifacts", "bin", "--out", "out"])
            .exits(code)
            .err
    };
    assert!(bundle(2).contains("no binary `stream` in bin"));
    world.write("bin/stream", "#!/bin/sh\n");
    assert!(bundle(2).contains("no Linux binary"));
    world.write("bin/stream", binary(183, ""));
    world.write("bin/export-job", binary(62, ""));
    assert!(bundle(2).contains("arm64, x86_64"));
    world.write("bin/export-job", binary(183, ""));
    world.write("schemas/bad.toml", "entity = 1");
    assert!(bundle(2).contains("schemas cannot be used"));
    assert!(!world.path("out").exists());
}
