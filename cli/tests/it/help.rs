use crate::world::World;

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    for command in [
        &["demo"][..],
        &["schemas", "check"],
        &["schemas", "lock"],
        &["schemas", "show"],
        &["schemas", "ddl"],
        &["export", "convert"],
        #[cfg(feature = "cloud")]
        &["export", "run"],
        #[cfg(feature = "cloud")]
        &["export", "status"],
        #[cfg(feature = "cloud")]
        &["export", "resume"],
        #[cfg(feature = "cloud")]
        &["export", "list"],
        &["baselines", "list"],
        &["baselines", "drop"],
        &["baselines", "retain"],
        &["baselines", "unlock"],
        &["compact"],
        &["replay"],
        &["tables"],
        &["show"],
        &["inspect"],
        &["quarantine", "list"],
        &["quarantine", "show"],
        &["quarantine", "replay"],
        &["template"],
        &["bundle"],
    ] {
        let run = world.run(&[command, &["--help"]].concat()).exits(0);
        assert!(run.out.contains("Example"), "{command:?}: {}", run.out);
        assert_eq!(run.err, "");
    }
    let run = world.run(&["--help"]).exits(0);
    assert!(
        run.out.contains("Exit codes") && run.out.contains("dynalake demo"),
        "{}",
        run.out
    );
    assert_eq!(
        world.run(&["--version"]).exits(0).out,
        format!("dynalake {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn slips_of_the_keyboard_are_usage_errors_with_a_suggestion() {
    let world = World::new();
    let run = world.run(&["tabels", "lake"]).exits(2);
    assert!(run.err.contains("tables"), "{}", run.err);
    world.run(&[]).exits(2);
    world.run(&["show", "lake"]).exits(2);
    let run = world.run(&["tables", "lake", "--format", "jsno"]).exits(2);
    assert!(run.err.contains("json"), "{}", run.err);
    let run = world
        .run(&["show", "lake", "t", "--changes", "--export", "x"])
        .exits(2);
    assert!(run.err.contains("cannot be used with"), "{}", run.err);
}
