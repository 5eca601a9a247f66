use crate::world::World;

#[test]
fn wrong_s3_options_are_usage_errors_before_anything_is_sent() {
    let world = World::new();
    for sse in ["aes", "kms", "aws:kms:"] {
        let run = world
            .run(&["tables", "s3://bucket/lake", "--sse", sse])
            .exits(2);
        assert!(
            run.err.contains("`AES256`, `aws:kms` or `aws:kms:KEY`"),
            "{}",
            run.err
        );
    }
    for uri in ["s3://", "s3://B", "gs://bucket/x", "s3://bucket/a//b"] {
        let run = world.run(&["tables", uri]).exits(2);
        assert!(run.err.contains("hint:"), "{uri}: {}", run.err);
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_a_remote_failure() {
    let world = World::new();
    let mut command = world.command(&["tables", "s3://bucket/lake", "--path-style"]);
    // Nobody listens on port 1; metadata services are not asked for credentials.
    let output = command
        .env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(
        err.contains("s3://bucket/lake") && err.contains("run the same command again"),
        "{err}"
    );
    assert!(!err.contains("secret"), "{err}");
}
