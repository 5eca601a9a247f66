"""Runs Athena's tables and views on DuckDB; see athena_on_duckdb in tests/src/duck.rs."""

import glob
import json
import sys

import duckdb
import sqlglot
from sqlglot import exp
from trino_query_parser import parse_statement

from duck import rows


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def create_table(connection, statement, lake):
    """A view over the files of an external table, with the declared columns and types.

    As in Athena, columns are found by name, and a column that a file lacks is NULL.
    """
    table = statement.this.this
    columns = {column.name: column.kind for column in statement.this.expressions}
    properties = statement.args["properties"]
    location = properties.find(exp.LocationProperty).this.name.replace("s3://lake", lake, 1)
    partition = properties.find(exp.PartitionedByProperty).find(exp.ColumnDef).name
    parquet = "parquet" in properties.sql().lower()
    name = f'"{table.db}"."{table.name}"'
    casts, types = [], []
    for column, kind in columns.items():
        ty = kind.sql("duckdb")
        types.append(f'NULL::{ty} AS "{column}"')
        casts.append(f'CAST("{column}" AS {ty}) AS "{column}"')
    types.append(f'NULL::VARCHAR AS "{partition}"')
    source = f"SELECT {', '.join(types)} WHERE false"
    suffix = "parquet" if parquet else "jsonl"
    files = glob.glob(f"{glob.escape(location)}{partition}=*/*.{suffix}")
    if files and parquet:
        listed = ", ".join(quoted(file) for file in files)
        source += (
            f" UNION ALL BY NAME SELECT *, parse_path(\"file#\")[-2][{len(partition) + 2}:] AS"
            f' "{partition}" FROM read_parquet([{listed}], union_by_name = true,'
            f" hive_partitioning = false, filename = 'file#')"
        )
    connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{table.db}"')
    connection.execute(
        f'CREATE VIEW {name} AS SELECT {", ".join(casts)}, "{partition}" FROM ({source})'
    )


def check_exports(tree):
    """Wherever a snapshot table is read, its export is given as a literal."""
    for table in tree.find_all(exp.Table):
        if table.name.endswith("_snapshot"):
            where = table.find_ancestor(exp.Select).args["where"]
            literal = any(
                isinstance(equal.left, exp.Column)
                and equal.left.name == "export"
                and isinstance(equal.right, exp.Literal)
                for equal in where.find_all(exp.EQ)
            )
            assert literal, f"{table.name} is read without a literal export"


def main():
    job = json.load(sys.stdin)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for statement in sqlglot.parse(job["ddl"], read="athena"):
        if statement is not None and statement.kind == "TABLE":
            create_table(connection, statement, job["lake"])
    for view in job["views"]:
        parse_statement(view)
        tree = sqlglot.parse_one(view, read="athena")
        check_exports(tree)
        connection.execute(tree.sql("duckdb"))
    json.dump({name: rows(connection, sql) for name, sql in job["queries"].items()}, sys.stdout)


main()
