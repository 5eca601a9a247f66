//! A function that is not deployed rightly says so at its start, all at once.

use std::collections::BTreeMap;
use std::fs;

use dynalake_tests::InitError;

use crate::world::{SECRET, World, start};

/// The error of a start that must fail.
fn refused(variables: &BTreeMap<String, String>) -> InitError {
    let error = start(variables).expect_err("the start fails");
    // Lambda hears of it, and the process ends by itself and not by a panic.
    assert!(error.body.is_some(), "{}", error.text());
    assert!(
        error.status.is_some_and(|status| status.code().is_some()),
        "{:?}",
        error.status
    );
    assert!(!error.text().contains("panicked"), "{}", error.text());
    error
}

fn message(error: &InitError) -> String {
    let body = error.body.as_ref().unwrap();
    assert!(body["errorType"].is_string(), "{body}");
    body["errorMessage"].as_str().unwrap().to_owned()
}

#[test]
fn all_problems_of_the_configuration_are_told_at_once() {
    let Some(world) = World::new("bad-configuration") else {
        return;
    };
    let mut variables = world.variables();
    variables.remove("DYNALAKE_LAKE");
    variables.insert("DYNALAKE_S3_PATH_STYLE".to_owned(), "perhaps".to_owned());
    variables.insert("DYNALAKE_LAEK".to_owned(), "s3://bucket/lake".to_owned());
    variables.insert("DYNALAKE_SCHEMAS".to_owned(), "/no/such/folder".to_owned());
    let text = message(&refused(&variables));
    for part in [
        "DYNALAKE_LAKE",
        "DYNALAKE_LAEK",
        "DYNALAKE_S3_PATH_STYLE",
        "/no/such/folder",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn a_bad_schema_folder_is_refused_with_file_and_reason() {
    let Some(world) = World::new("bad-schema") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(World::schemas()).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let spoil = |file: &str, from: &str, to: &str| {
        let path = folder.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from));
        fs::write(&path, text.replace(from, to)).unwrap();
    };
    spoil("user.toml", "name = \"string\"", "name = \"varchar\"");
    spoil("order.toml", "decimal(12,2)", "decimal(99,2)");
    let mut variables = world.variables();
    variables.insert(
        "DYNALAKE_SCHEMAS".to_owned(),
        folder.path().display().to_string(),
    );
    let text = message(&refused(&variables));
    for part in ["user.toml", "varchar", "order.toml", "decimal(99,2)"] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
}

#[test]
fn a_missing_hmac_key_is_refused_and_a_given_one_is_never_shown() {
    let Some(world) = World::new("no-key") else {
        return;
    };
    let mut variables = world.variables();
    variables.remove("DYNALAKE_HMAC_KEY");
    let text = message(&refused(&variables));
    assert!(
        text.contains("DYNALAKE_HMAC_KEY") && text.contains("email"),
        "{text}"
    );

    let mut variables = world.variables();
    variables.insert("DYNALAKE_OTHER".to_owned(), "x".to_owned());
    let error = refused(&variables);
    assert!(error.text().contains("DYNALAKE_OTHER"), "{}", error.text());
    assert!(!error.text().contains(SECRET), "{}", error.text());
}

#[test]
fn a_lake_that_is_no_address_is_refused() {
    let Some(world) = World::new("bad-lake") else {
        return;
    };
    for lake in ["http://example.com/lake", "s3://No_Bucket/x", ""] {
        let mut variables = world.variables();
        variables.insert("DYNALAKE_LAKE".to_owned(), lake.to_owned());
        let text = message(&refused(&variables));
        assert!(text.contains("DYNALAKE_LAKE"), "{text}");
    }
}
