//! The rule: a key's state is its newest change if one of its changes is dated at or after B − M,
//! else the baseline's row.
//!
//! - Newest is by (`_stream`, `_seq`), decisive is the greatest `_at`, and the two may be different
//!   rows. So no row is left out by its time before both are known, but for whole days.
//! - The baseline is joined against the keys of recent changes, the small side. No window and no
//!   aggregation goes over it.
//! - `_sk` is NULL in tables without a sort key. No key is an empty text (DynamoDB refuses them, and
//!   so does decoding), so that the empty text can stand for NULL in the join.

use super::dialect::{Dialect, identifier, literal};
use super::{Baseline, ViewColumn};
use crate::athena::athena_type;
use crate::model::Entity;
use crate::row_columns;
use crate::tables::{changes_table, snapshot_table};

/// Newest change first. Rows that are the same change have the same position.
const NEWEST_FIRST: &str =
    "\"_stream\" DESC NULLS LAST, \"_seq\" DESC NULLS LAST, \"_at\" DESC, \"_schema\" DESC";

/// Of the rows of one change, the one that stands for it first.
const LATEST_FIRST: &str = "\"_at\" DESC, \"_schema\" DESC";

/// Typed columns first, which people look for, then row columns.
pub(super) fn columns(entity: &Entity) -> Vec<ViewColumn> {
    let typed = entity.stored_columns().map(|column| ViewColumn {
        name: column.name.clone(),
        glue_type: athena_type(&column.ty),
    });
    let row = row_columns::ALL.iter().map(|column| ViewColumn {
        name: column.name.to_owned(),
        glue_type: column.kind.athena_type().to_owned(),
    });
    typed.chain(row).collect()
}

/// `alias."a", alias."b", …` in lines of moderate length.
fn column_list(entity: &Entity, alias: &str, indent: usize) -> String {
    let columns = columns(entity);
    let names = columns.iter().map(|column| match alias {
        "" => identifier(&column.name),
        alias => format!("{alias}.{}", identifier(&column.name)),
    });
    wrapped(names, indent)
}

/// Comma-separated, at most about 100 characters a line.
pub(super) fn wrapped(parts: impl Iterator<Item = String>, indent: usize) -> String {
    let mut text = String::new();
    let mut width = 0;
    for part in parts {
        let length = part.chars().count();
        if !text.is_empty() {
            text.push(',');
            if indent + width + length + 2 > 98 {
                text.push('\n');
                text.extend(std::iter::repeat_n(' ', indent));
                width = 0;
            } else {
                text.push(' ');
                width += 2;
            }
        }
        text.push_str(&part);
        width += length;
    }
    text
}

/// The query of `<table>`.
pub(super) fn current(
    entity: &Entity,
    baseline: Option<&Baseline>,
    dialect: Dialect<'_>,
) -> String {
    let changes = dialect.table(&changes_table(&entity.table));
    let list = |alias, indent| column_list(entity, alias, indent);
    let Some(baseline) = baseline else {
        return format!(
            r#"WITH ranked AS (
  SELECT {columns},
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY {NEWEST_FIRST}) AS "_rank"
  FROM {changes}
)
SELECT {selected}
FROM ranked
WHERE "_rank" = 1 AND "_op" <> 'REMOVE'"#,
            columns = list("", 4),
            selected = list("", 2),
        );
    };
    let snapshot = dialect.table(&snapshot_table(&entity.table));
    let decide_from = dialect.timestamp(&baseline.changes_decide_from());
    let first_day = literal(&baseline.first_day());
    let label = literal(&baseline.label);
    format!(
        r#"WITH changed AS (
  SELECT "_pk", coalesce("_sk", '') AS "_sk"
  FROM {changes}
  WHERE "dt" >= {first_day}
  GROUP BY 1, 2
  HAVING max("_at") >= {decide_from}
),
ranked AS (
  SELECT {columns},
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY {NEWEST_FIRST}) AS "_rank",
    max("_at") OVER (PARTITION BY "_pk", "_sk") AS "_latest"
  FROM {changes}
  WHERE "dt" >= {first_day}
)
SELECT {from_changes}
FROM ranked
WHERE "_rank" = 1 AND "_latest" >= {decide_from} AND "_op" <> 'REMOVE'
UNION ALL
SELECT {from_baseline}
FROM {snapshot} AS b
LEFT JOIN changed AS c ON c."_pk" = b."_pk" AND c."_sk" = coalesce(b."_sk", '')
WHERE b."export" = {label} AND c."_pk" IS NULL"#,
        columns = list("", 4),
        from_changes = list("", 2),
        from_baseline = list("b", 2),
    )
}

/// The query of `<table>_history`.
pub(super) fn history(entity: &Entity, dialect: Dialect<'_>) -> String {
    format!(
        r#"WITH ranked AS (
  SELECT {columns},
    row_number() OVER (PARTITION BY "_pk", "_sk", "_stream", "_seq" ORDER BY {LATEST_FIRST}) AS "_rank"
  FROM {changes}
)
SELECT {selected}
FROM ranked
WHERE "_rank" = 1"#,
        columns = column_list(entity, "", 4),
        changes = dialect.table(&changes_table(&entity.table)),
        selected = column_list(entity, "", 2),
    )
}
