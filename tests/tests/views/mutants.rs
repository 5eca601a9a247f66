//! The rule broken in the views' text, one way after the other: each must show.

use dynalake_tests::duckdb_available;

use super::things;
use super::traps::{B, trapped};

/// What is replaced in the statement of `things` for it to be broken.
struct Mutant {
    name: &'static str,
    replaced: &'static [(&'static str, &'static str)],
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "margin 0",
        replaced: &[("2024-10-03 23:59:00.000", "2024-10-04 00:04:00.000")],
    },
    Mutant {
        name: "a margin that lets rows of an hour before decide",
        replaced: &[("2024-10-03 23:59:00.000", "2024-10-03 22:59:00.000")],
    },
    Mutant {
        name: "numbers compared as text without padding",
        replaced: &[("\"_seq\" DESC", "ltrim(\"_seq\", '0') DESC")],
    },
    Mutant {
        name: "numbers compared without their stream",
        replaced: &[("\"_stream\" DESC NULLS LAST, ", "")],
    },
    Mutant {
        name: "newest by time",
        replaced: &[(
            "ORDER BY \"_stream\" DESC",
            "ORDER BY \"_at\" DESC, \"_stream\" DESC",
        )],
    },
    Mutant {
        name: "any change beats any baseline",
        replaced: &[
            (
                "\n  HAVING max(\"_at\") >= TIMESTAMPTZ '2024-10-03 23:59:00.000+00'",
                "",
            ),
            (
                " AND \"_latest\" >= TIMESTAMPTZ '2024-10-03 23:59:00.000+00'",
                "",
            ),
            ("WHERE \"dt\" >= '2024-10-02'", "WHERE true"),
        ],
    },
    Mutant {
        name: "no implicit absence: what the baseline does not have is told by any change",
        replaced: &[
            (
                " AND \"_latest\" >= TIMESTAMPTZ '2024-10-03 23:59:00.000+00'",
                " AND (\"_latest\" >= TIMESTAMPTZ '2024-10-03 23:59:00.000+00' OR \"_pk\" NOT IN \
                 (SELECT \"_pk\" FROM \"things_snapshot\" WHERE \"export\" = '20241004T000400Z'))",
            ),
            ("WHERE \"dt\" >= '2024-10-02'", "WHERE true"),
        ],
    },
    Mutant {
        name: "moves without tombstones",
        replaced: &[(
            "WHERE \"dt\" >= '2024-10-02'",
            "WHERE \"dt\" >= '2024-10-02' AND \"_reason\" IS DISTINCT FROM 'moved'",
        )],
    },
    Mutant {
        name: "rows left out by their time first",
        replaced: &[(
            "WHERE \"dt\" >= '2024-10-02'",
            "WHERE \"_at\" >= TIMESTAMPTZ '2024-10-03 23:59:00.000+00'",
        )],
    },
    Mutant {
        name: "days no wider than the margin",
        replaced: &[("'2024-10-02'", "'2024-10-03'")],
    },
    Mutant {
        name: "the time of the newest row decides, not the latest time",
        replaced: &[(" AND \"_latest\" >=", " AND \"_at\" >=")],
    },
    Mutant {
        name: "deleted items shown",
        replaced: &[(" AND \"_op\" <> 'REMOVE'", "")],
    },
    Mutant {
        name: "deletes that do not hide the baseline's row",
        replaced: &[(
            "  GROUP BY 1, 2",
            "    AND \"_op\" <> 'REMOVE'\n  GROUP BY 1, 2",
        )],
    },
    Mutant {
        name: "the baseline joined by partition key alone",
        replaced: &[(" AND c.\"_sk\" = coalesce(b.\"_sk\", '')", "")],
    },
    Mutant {
        name: "keys joined as one text",
        replaced: &[(
            "c.\"_pk\" = b.\"_pk\" AND c.\"_sk\" = coalesce(b.\"_sk\", '')",
            "c.\"_pk\" || c.\"_sk\" = b.\"_pk\" || coalesce(b.\"_sk\", '')",
        )],
    },
    Mutant {
        name: "all baselines at once",
        replaced: &[("b.\"export\" = '20241004T000400Z' AND ", "")],
    },
];

/// Breaks a NULL-safe join, which shows only in a table without a sort key.
const NULL_KEYS: Mutant = Mutant {
    name: "sort keys that are NULL compared as others",
    replaced: &[(
        "c.\"_sk\" = coalesce(b.\"_sk\", '')",
        "c.\"_sk\" = b.\"_sk\"",
    )],
};

fn broken(script: &str, mutant: &Mutant) -> String {
    let begin = script.find("CREATE OR REPLACE VIEW \"things\" AS").unwrap();
    let end = begin + script[begin..].find(";\n").unwrap();
    let mut statement = script[begin..end].to_owned();
    for (from, to) in mutant.replaced {
        assert!(
            statement.contains(from),
            "{}: `{from}` is not in\n{statement}",
            mutant.name
        );
        statement = statement.replace(from, to);
    }
    format!("{}{statement}{}", &script[..begin], &script[end..])
}

#[tokio::test]
async fn every_broken_view_is_caught() {
    if !duckdb_available() {
        return;
    }
    let world = trapped(true).await;
    // An older baseline beside the current one.
    let items = [(("old", Some("x")), "thing", "wrong")];
    world.commit_beside(B - 86_400_000, &items).await;
    let expected = world.expected("thing");
    let script = world.script().await;
    assert_eq!(things(&script), expected);
    for mutant in MUTANTS {
        let found = things(&broken(&script, mutant));
        assert_ne!(found, expected, "`{}` goes unseen", mutant.name);
    }
    let without_sort_key = trapped(false).await;
    let script = without_sort_key.script().await;
    let found = things(&broken(&script, &NULL_KEYS));
    assert_ne!(
        found,
        without_sort_key.expected("thing"),
        "{}",
        NULL_KEYS.name
    );
}
