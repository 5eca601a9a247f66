"""Runs the SQL statement on stdin in DuckDB; prints its rows as a JSON array of objects."""

import datetime
import decimal
import json
import sys
import uuid

import duckdb


def plain(value):
    """A value as JSON can hold it exactly; see tests/src/duck.rs for the forms."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 2**53 else str(value)
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return value.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta, uuid.UUID)):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (list, tuple)):
        return [plain(element) for element in value]
    raise TypeError(f"no JSON form for {type(value).__name__}")


def typed(value, kind):
    """Like plain, but tells maps from structs, which Python sees both as dict."""
    if value is None:
        return None
    if kind.id == "list":
        return [typed(element, kind.children[0][1]) for element in value]
    if kind.id == "map":
        key, element = kind.children[0][1], kind.children[1][1]
        if isinstance(value, dict) and set(value) == {"key", "value"} and isinstance(value["key"], list):
            pairs = list(zip(value["key"], value["value"]))
        else:
            pairs = list(value.items())
        return [[typed(k, key), typed(v, element)] for k, v in pairs]
    if kind.id == "struct":
        return {name: typed(value[name], child) for name, child in kind.children}
    return plain(value)


def rows(connection, sql):
    """The rows of the last statement as JSON objects."""
    result = connection.sql(sql)
    if result is None:
        return []
    names, kinds = result.columns, result.types
    return [{n: typed(v, k) for n, k, v in zip(names, kinds, row)} for row in result.fetchall()]


def main():
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    json.dump(rows(connection, sys.stdin.read()), sys.stdout)


if __name__ == "__main__":
    main()
