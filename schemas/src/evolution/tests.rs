use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::fixture::{catalog, ecommerce, entity, errors, folder, warnings};
use crate::load::{LOCK_FILE, check};
use crate::lock::{Lock, lock};
use crate::model::Catalog;
use crate::row_columns;

const BEFORE: &str = "id = \"string\"\na = \"int\"\nb = \"array<struct<x:int,y:decimal(9,2)>>\"\nc = \"map<string,string>\"";

fn write(folder: &Path, version: i32, extra: &str, columns: &str) {
    let text = entity("x", "partition_key = \"A#{id}\"", columns);
    let text = format!("version = {version}\n{extra}\n{text}");
    fs::write(folder.join("x.toml"), text).unwrap();
}

/// A folder locked with `BEFORE` at version 1.
fn locked() -> TempDir {
    let folder = folder(&[]);
    write(folder.path(), 1, "", BEFORE);
    let locked = lock(folder.path()).unwrap();
    assert!(
        locked.changed && locked.warnings.is_empty(),
        "{}",
        locked.warnings
    );
    folder
}

fn ids(catalog: &Catalog) -> Vec<i32> {
    let schema = catalog.entities[0].arrow_schema();
    let id = |field: &arrow::datatypes::FieldRef| {
        field.metadata()[crate::arrow_schema::FIELD_ID_KEY]
            .parse()
            .unwrap()
    };
    schema
        .fields()
        .iter()
        .skip(row_columns::COUNT)
        .map(id)
        .collect()
}

#[test]
fn a_lock_is_the_same_text_for_the_same_schemas_and_is_read_back() {
    let folder = locked();
    let text = fs::read_to_string(folder.path().join(LOCK_FILE)).unwrap();
    assert!(
        text.contains("{ id = 103, path = \"b.element\", type = \"struct\" }"),
        "{text}"
    );
    assert_eq!(Lock::parse(&text).unwrap().to_text(), text);
    let again = lock(folder.path()).unwrap();
    assert!(!again.changed && again.text == text);
    assert!(errors(folder.path()).is_empty() && check(folder.path()).problems.is_empty());
}

#[test]
fn without_a_lock_ids_go_by_order_and_a_warning_says_so() {
    let folder = folder(&[]);
    write(folder.path(), 1, "", BEFORE);
    assert_eq!(ids(&catalog(folder.path())), [100, 101, 102, 106]);
    assert!(
        check(folder.path())
            .problems
            .to_string()
            .contains("schemas lock")
    );
}

#[test]
fn what_old_files_can_follow_is_fine_with_a_higher_version() {
    for (columns, extra) in [
        (format!("{BEFORE}\nd = \"date\""), ""),
        (
            BEFORE.replace("y:decimal(9,2)", "y:decimal(9,2),z:string"),
            "",
        ),
        (BEFORE.replace("a = \"int\"", "a = \"bigint\""), ""),
        (BEFORE.replace("x:int", "x:bigint"), ""),
        (BEFORE.replace("decimal(9,2)", "decimal(38,2)"), ""),
        (BEFORE.replace("\na = \"int\"", ""), "removed = \"a\""),
        (BEFORE.replace("x:int,", ""), "removed = [\"b.element.x\"]"),
        (
            BEFORE.replace("a = \"int\"", "a = { transform = \"drop\" }"),
            "",
        ),
    ] {
        let folder = locked();
        write(folder.path(), 1, extra, &columns);
        let said = errors(folder.path()).join("\n");
        assert!(
            said.contains("differ from version 1") && said.contains("version = 2"),
            "{said}"
        );
        write(folder.path(), 2, extra, &columns);
        assert!(
            errors(folder.path()).is_empty(),
            "{:?}",
            errors(folder.path())
        );
        assert!(
            warnings(folder.path())
                .join("\n")
                .contains("latest changes"),
            "{columns}"
        );
        lock(folder.path()).unwrap();
        assert!(check(folder.path()).problems.is_empty());
    }
}

#[test]
fn everything_else_is_refused_with_the_remedy() {
    for (columns, what, remedy) in [
        (
            BEFORE.replace("a = \"int\"", "a = \"string\""),
            "`a` was int and is string",
            "a_2",
        ),
        (
            BEFORE.replace("a = \"int\"", "a = \"double\""),
            "old files cannot be read",
            "re-base",
        ),
        (
            BEFORE.replace("decimal(9,2)", "decimal(12,4)"),
            "`b.element.y` was decimal(9,2)",
            "b_2",
        ),
        (
            BEFORE.replace("decimal(9,2)", "decimal(8,2)"),
            "is decimal(8,2)",
            "removed = [\"b\"]",
        ),
        (
            BEFORE
                .replace("array<", "set<")
                .replace("struct<x:int,y:decimal(9,2)>", "int"),
            "`b` was array and is set",
            "b_2",
        ),
        (
            BEFORE.replace("\na = \"int\"", ""),
            "`a` is gone",
            "removed = [\"a\"]",
        ),
        (
            BEFORE.replace(",y:decimal(9,2)", ""),
            "`b.element.y` is gone",
            "reserved",
        ),
        (
            BEFORE.replace("x:int", "w:int,x:int"),
            "`b.element.w` is new and stands before",
            "move",
        ),
        (
            BEFORE.replace("a = ", "n = \"int\"\na = "),
            "`n` is new and stands before `a`",
            "move",
        ),
        (
            BEFORE.replace("x:int,y:decimal(9,2)", "y:decimal(9,2),x:int"),
            "stood before",
            "order",
        ),
        (
            BEFORE.replace("id = \"string\"\na", "a") + "\nid = \"string\"",
            "`id` stood before",
            "end",
        ),
    ] {
        let folder = locked();
        write(folder.path(), 2, "", &columns);
        let said = errors(folder.path());
        assert!(
            said.len() == 1 && said[0].contains(what) && said[0].contains(remedy),
            "{said:#?}"
        );
        assert!(
            lock(folder.path()).is_err(),
            "what is refused is not locked"
        );
    }
    let folder = folder(&[]);
    write(
        folder.path(),
        1,
        "",
        "id = \"string\"\nm = { type = \"string\", transform = \"mask\" }",
    );
    lock(folder.path()).unwrap();
    write(folder.path(), 2, "", "id = \"string\"\nm = \"string\"");
    assert!(errors(folder.path())[0].contains("the transform of `m` was mask and is none"));
}

const SECRET: &str = "secret = { type = \"json\", transform = \"drop\" }";

/// A folder locked with these columns behind `id`.
fn locked_with(columns: &str) -> TempDir {
    let folder = folder(&[]);
    write(folder.path(), 1, "", &format!("id = \"string\"\n{columns}"));
    assert!(lock(folder.path()).unwrap().warnings.is_empty());
    folder
}

#[test]
fn what_was_dropped_is_not_stored_unnoticed() {
    let other = SECRET.replace("type = \"json\"", "attribute = \"Other\"");
    for (columns, place, what) in [
        (
            "secret = { type = \"json\" }",
            "x.toml:9",
            "`secret` was dropped and would be stored",
        ),
        (
            "secret = { type = \"string\", transform = \"mask\" }",
            "x.toml:9",
            "would be stored",
        ),
        (
            "",
            "x.toml:3",
            "`secret` was dropped and is gone: attribute `secret` would go to `_rest`",
        ),
        (
            other.as_str(),
            "x.toml:9",
            "drops another attribute than before",
        ),
    ] {
        let folder = locked_with(SECRET);
        let columns = format!("id = \"string\"\n{columns}");
        write(folder.path(), 2, "", &columns);
        let said = errors(folder.path());
        assert!(said.len() == 1, "{said:#?}");
        for part in [
            place,
            what,
            "transform = \"drop\"",
            "removed = [\"secret\"]",
        ] {
            assert!(said[0].contains(part), "{part}: {said:#?}");
        }
        assert!(
            lock(folder.path()).is_err(),
            "what is refused is not locked"
        );
        // Said to be meant: fine with a higher version, now and after locking.
        write(folder.path(), 1, "removed = \"secret\"", &columns);
        assert!(
            errors(folder.path())[0].contains("version = 2"),
            "{columns}"
        );
        write(folder.path(), 2, "removed = \"secret\"", &columns);
        let said = errors(folder.path());
        assert!(said.is_empty(), "{said:#?}");
        lock(folder.path()).unwrap();
        let said = warnings(folder.path());
        if columns.contains("\ndrop") || columns.contains("Other") {
            // The entry has done its work, and would let the next one through.
            assert!(
                said.len() == 1 && said[0].contains("dropped as before"),
                "{said:#?}"
            );
            write(folder.path(), 2, "", &columns);
        }
        let problems = check(folder.path()).problems;
        assert!(problems.is_empty(), "{problems}");
    }
}

#[test]
fn an_entry_in_removed_does_not_allow_beforehand_what_is_dropped_again() {
    let folder = locked_with(SECRET);
    let clear = "id = \"string\"\nsecret = \"json\"";
    write(folder.path(), 2, "removed = \"secret\"", clear);
    lock(folder.path()).unwrap();
    write(
        folder.path(),
        3,
        "removed = \"secret\"",
        &format!("id = \"string\"\n{SECRET}"),
    );
    let locked = lock(folder.path()).unwrap();
    let said = warnings(folder.path());
    assert!(
        locked.warnings.len() == 1 && said[0].contains("take `secret` out of `removed`"),
        "{said:#?}"
    );
}

#[test]
fn a_new_table_or_no_entity_does_not_get_round_what_is_dropped() {
    let moved = |columns: &str, extra: &str| {
        let text = entity("x", "partition_key = \"A#{id}\"", columns).replace("xs", "ys");
        format!("{extra}\n{text}")
    };
    let folder = locked_with(&format!("{SECRET}\nm = {{ transform = \"mask\" }}"));
    let path = folder.path().join("x.toml");
    fs::write(&path, moved("id = \"string\"", "")).unwrap();
    let said = errors(folder.path());
    assert!(
        said.len() == 1
            && said[0].contains("`secret` was dropped in `xs`, the table of `x` before"),
        "{said:#?}"
    );
    // Meant, or dropped there too: fine.
    fs::write(&path, moved("id = \"string\"", "removed = \"secret\"")).unwrap();
    assert!(errors(folder.path()).is_empty());
    let said = warnings(folder.path()).join("\n");
    assert!(!said.contains("knows no such column"), "{said}");
    fs::write(&path, moved(&format!("id = \"string\"\n{SECRET}"), "")).unwrap();
    assert!(errors(folder.path()).is_empty());

    fs::remove_file(&path).unwrap();
    let said = warnings(folder.path()).join("\n");
    assert!(
        said.contains("no entity writes to `xs` any more")
            && said.contains("with `secret` and `m` in the clear"),
        "{said}"
    );
}

#[test]
fn items_that_change_their_table_are_told_of() {
    let folder = locked();
    let text = fs::read_to_string(folder.path().join(LOCK_FILE)).unwrap();
    assert!(
        text.contains("match = 'partition_key \"A#{id}\"'\n"),
        "{text}"
    );
    let other = entity(
        "x",
        "partition_key = \"A#{id}\"\nattributes = { t = [\"x\", \"y\"] }",
        BEFORE,
    );
    fs::write(folder.path().join("x.toml"), other).unwrap();
    assert!(errors(folder.path()).is_empty());
    let said = warnings(folder.path());
    for part in [
        "x.toml:3 the `[match]` of `x` is another than before (partition_key \"A#{id}\")",
        "in two tables",
        "full export",
    ] {
        assert!(
            said.iter().any(|said| said.contains(part)),
            "{part}: {said:#?}"
        );
    }
    let text = lock(folder.path()).unwrap().text;
    assert!(text.contains("t = \"x\" or \"y\""), "{text}");
    assert_eq!(Lock::parse(&text).unwrap().to_text(), text);
    assert!(warnings(folder.path()).is_empty());

    let new = entity("n", "partition_key = \"N#{id}\"", "id = \"string\"");
    fs::write(folder.path().join("n.toml"), new).unwrap();
    let said = warnings(folder.path()).join("\n");
    assert!(
        said.contains("table `ns` is new") && said.contains("`unmatched`"),
        "{said}"
    );
    // A lock of before the line says nothing of it.
    let old: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("match = "))
        .collect();
    fs::write(folder.path().join(LOCK_FILE), old.join("\n")).unwrap();
    fs::remove_file(folder.path().join("n.toml")).unwrap();
    let said = warnings(folder.path());
    assert!(
        said.len() == 1 && said[0].contains("latest changes"),
        "{said:#?}"
    );
}

#[test]
fn what_is_dropped_again_is_guarded_again() {
    let folder = locked_with(SECRET);
    let clear = "id = \"string\"\nsecret = \"json\"";
    write(folder.path(), 2, "removed = \"secret\"", clear);
    lock(folder.path()).unwrap();
    write(folder.path(), 3, "", &format!("id = \"string\"\n{SECRET}"));
    let text = lock(folder.path()).unwrap().text;
    assert!(
        text.contains("dropped = [\n    { path = \"secret\" },\n]"),
        "{text}"
    );
    write(folder.path(), 4, "", clear);
    assert!(errors(folder.path())[0].contains("`secret` was dropped and would be stored"));
}

#[test]
fn dropped_columns_are_in_the_lock_with_their_attributes() {
    let folder = locked_with(&format!(
        "{SECRET}\nt = {{ attribute = \"To Ken\", transform = \"drop\" }}"
    ));
    let text = fs::read_to_string(folder.path().join(LOCK_FILE)).unwrap();
    let listed =
        "dropped = [\n    { path = \"secret\" },\n    { path = \"t\", reads = \"To Ken\" },\n]";
    assert!(text.contains(listed), "{text}");
    assert_eq!(Lock::parse(&text).unwrap().to_text(), text);
    for broken in [
        text.replace("path = \"secret\"", "name = \"secret\""),
        text.replace(listed, "dropped = true"),
    ] {
        fs::write(folder.path().join(LOCK_FILE), broken).unwrap();
        assert!(errors(folder.path())[0].contains("`dropped` is not of the form"));
    }
}

#[test]
fn locks_of_before_the_list_say_that_they_guard_nothing() {
    let folder = locked_with(SECRET);
    let path = folder.path().join(LOCK_FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replace("dropped = [\n    { path = \"secret\" },\n]\n", ""),
    )
    .unwrap();
    assert!(errors(folder.path()).is_empty());
    let said = warnings(folder.path()).join("\n");
    assert!(
        said.contains("latest changes")
            && said.contains("lake.lock does not know that `secret` is dropped"),
        "{said}"
    );
    assert_eq!(lock(folder.path()).unwrap().text, text);
}

#[test]
fn another_reading_of_the_same_type_is_a_warning() {
    let folder = locked();
    let columns = BEFORE.replace("a = \"int\"", "a = { type = \"int\", attribute = \"A\" }");
    write(folder.path(), 2, "", &columns);
    assert!(errors(folder.path()).is_empty());
    assert!(
        warnings(folder.path())
            .join("\n")
            .contains("`a` was read from its defaults, now from")
    );
}

#[test]
fn files_that_are_in_use_are_not_judged_again() {
    let folder = locked();
    let kept = catalog(folder.path()).files;
    let other = BEFORE.replace("a = \"int\"", "a = \"string\"");
    write(folder.path(), 1, "", &other);
    assert!(!errors(folder.path()).is_empty());
    let texts = kept.iter().map(|(name, text)| {
        let text = text.replace("a = \"int\"", "a = \"string\"");
        (name.to_owned(), text)
    });
    let read = Catalog::from_files(&texts.collect(), Path::new("kept")).unwrap();
    assert_eq!(
        ids(&read),
        ids(&Catalog::from_files(&kept, Path::new("kept")).unwrap())
    );
    let broken = [("lake.toml".to_owned(), "database".to_owned())];
    let problems = Catalog::from_files(&broken.into_iter().collect(), Path::new("kept"));
    let problems = problems.unwrap_err().to_string();
    assert!(problems.contains("kept/lake.toml:1"), "{problems}");
}

#[test]
fn versions_do_not_fall() {
    let folder = locked();
    write(folder.path(), 5, "", BEFORE);
    lock(folder.path()).unwrap();
    write(folder.path(), 4, "", BEFORE);
    assert!(errors(folder.path())[0].contains("below the locked version 5"));
}

#[test]
fn ids_and_names_of_what_is_gone_stay_reserved() {
    let folder = locked();
    let without = BEFORE.replace("\na = \"int\"", "");
    write(folder.path(), 2, "removed = \"a\"", &without);
    lock(folder.path()).unwrap();
    write(folder.path(), 3, "", &format!("{without}\nd = \"date\""));
    lock(folder.path()).unwrap();
    assert_eq!(
        ids(&catalog(folder.path())),
        [100, 102, 106, 109],
        "101 is not given out again"
    );
    write(
        folder.path(),
        4,
        "",
        &format!("{without}\nd = \"date\"\na = \"string\""),
    );
    assert!(errors(folder.path())[0].contains("`a` was int and is string"));
    write(
        folder.path(),
        4,
        "",
        &format!("{without}\nd = \"date\"\na = \"bigint\""),
    );
    assert_eq!(ids(&catalog(folder.path())), [100, 102, 106, 109, 101]);
}

#[test]
fn a_new_table_is_a_new_beginning_and_the_old_one_stays_in_the_lock() {
    let folder = locked();
    let text = entity("x", "partition_key = \"A#{id}\"", "id = \"bigint\"").replace("xs", "ys");
    fs::write(folder.path().join("x.toml"), text).unwrap();
    assert!(errors(folder.path()).is_empty());
    let said = warnings(folder.path()).join("\n");
    assert!(said.contains("no entity writes to `xs` any more"), "{said}");
    let locked = lock(folder.path()).unwrap();
    assert!(locked.text.contains("retired = true") && locked.warnings.is_empty());
}

#[test]
fn columns_that_cannot_be_read_are_not_called_gone() {
    let folder = locked();
    write(
        folder.path(),
        1,
        "",
        &BEFORE.replace("a = \"int\"", "a = \"integer\""),
    );
    let said = errors(folder.path());
    assert!(
        said.len() == 1 && said[0].contains("`integer` is not a type"),
        "{said:#?}"
    );
}

#[test]
fn a_lock_that_cannot_be_read_is_an_error_and_stays_as_it_is() {
    for text in [
        "format = 2\ndatabase = \"x\"",
        "database = \"x\"",
        "format = 1",
        "format = ",
        "format = 1\ndatabase = \"x\"\n[table.xs]\nversion = 1",
        "format = 1\ndatabase = \"x\"\n[table.xs]\nentity = \"x\"\nversion = 1\nnext_id = 100\ncolumns = [\n{ id = 100, path = \"a\", type = \"int\" }]",
        "format = 1\ndatabase = \"x\"\n[table.xs]\nentity = \"x\"\nversion = 1\nnext_id = 101\ncolumns = [\n{ id = 100, path = \"a\", type = \"long\" }]",
    ] {
        let folder = locked();
        fs::write(folder.path().join(LOCK_FILE), text).unwrap();
        let said = errors(folder.path());
        assert!(
            said.len() == 1 && said[0].contains("restore it"),
            "{text}: {said:#?}"
        );
        assert!(lock(folder.path()).is_err());
        assert_eq!(
            fs::read_to_string(folder.path().join(LOCK_FILE)).unwrap(),
            text
        );
    }
}

#[test]
fn the_example_is_locked_as_it_stands() {
    let checked = check(&ecommerce());
    assert!(checked.problems.is_empty(), "{}", checked.problems);
}
