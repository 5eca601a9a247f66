"""Glue tables: types, projections, places."""

import re

PARQUET = [
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
]
JSON_LINES = [
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    "org.openx.data.jsonserde.JsonSerDe",
]
SIMPLE = {"boolean", "int", "bigint", "double", "string", "binary", "date", "timestamp"}
# "Supported types for partition projection" of Athena's user guide.
DATE = {"type", "format", "range", "interval", "interval.unit"}


def check(stack):
    database = stack.outputs["DatabaseName"]
    bucket = f"s3://{stack.ref('LakeBucket')}/"
    names = set()
    for name, one in stack.of_type("AWS::Glue::Table"):
        table = one["TableInput"]
        if one["DatabaseName"] != database:
            yield f"{name}: is in another database"
        if table["Name"] in names:
            yield f"{name}: there are two tables {table['Name']}"
        names.add(table["Name"])
        yield from described(name, table, bucket)


def described(name, table, bucket):
    storage, parameters = table["StorageDescriptor"], table["Parameters"]
    if table["TableType"] != "EXTERNAL_TABLE" or parameters.get("EXTERNAL") != "TRUE":
        yield f"{name}: is no external table"
    formats = [
        storage["InputFormat"],
        storage["OutputFormat"],
        storage["SerdeInfo"]["SerializationLibrary"],
    ]
    expected = JSON_LINES if table["Name"] == "quarantine" else PARQUET
    if formats != expected:
        yield f"{name}: the formats do not belong together"
    columns = storage["Columns"] + table["PartitionKeys"]
    seen = set()
    for column in columns:
        if column["Name"] in seen:
            yield f"{name}: two columns are named {column['Name']}"
        seen.add(column["Name"])
        if not re.fullmatch(r"[a-z0-9_]+", column["Name"]):
            yield f"{name}.{column['Name']}: is no name that Athena keeps"
        if not is_type(column["Type"]):
            yield f"{name}.{column['Name']}: {column['Type']} is no type"
        if len(column.get("Comment", "")) > 255:
            yield f"{name}.{column['Name']}: the comment is too long"
    place = storage["Location"]
    if not place.startswith(bucket) or not place.endswith("/") or "//" in place[5:]:
        yield f"{name}: {place} is no place in the lake"
    if [key["Name"] for key in table["PartitionKeys"]] not in (["dt"], ["export"]):
        yield f"{name}: is not partitioned by day or export"
        return
    key = table["PartitionKeys"][0]["Name"]
    yield from projected(name, parameters, key, place)


def projected(name, parameters, key, place):
    if parameters.get("projection.enabled") != "true":
        yield f"{name}: its partitions would have to be registered"
    prefix = f"projection.{key}."
    known = {prefix + member for member in (DATE if key == "dt" else {"type"})}
    given = {one for one in parameters if one.startswith("projection.")} - {"projection.enabled"}
    if given != known:
        yield f"{name}: properties of the projection are {sorted(given ^ known)} too few or too many"
    kind = parameters.get(prefix + "type")
    if kind != ("date" if key == "dt" else "injected"):
        yield f"{name}: {key} is projected as {kind}"
    if key == "dt":
        values = [parameters.get(prefix + member) for member in ("format", "interval", "interval.unit")]
        if values != ["yyyy-MM-dd", "1", "DAYS"]:
            yield f"{name}: days are projected as {values}"
        if not re.fullmatch(r"\d{4}-\d\d-\d\d,NOW", parameters.get(prefix + "range", "")):
            yield f"{name}: the days are {parameters.get(prefix + 'range')}"
    template = parameters.get("storage.location.template")
    if template != f"{place}{key}=${{{key}}}/":
        yield f"{name}: partitions are looked for at {template}"


def is_type(text):
    rest = parse(text)
    return rest == ""


def parse(text):
    """What is left after one type, or None."""
    match = re.match(r"[a-z]+", text)
    if not match:
        return None
    word, rest = match[0], text[match.end():]
    if word in SIMPLE:
        return rest
    if word == "decimal":
        numbers = re.match(r"\((\d+),(\d+)\)", rest)
        if not numbers or not 1 <= int(numbers[1]) <= 38 or int(numbers[2]) > int(numbers[1]):
            return None
        return rest[numbers.end():]
    if not rest.startswith("<"):
        return None
    rest = rest[1:]
    if word == "array":
        return closed(parse(rest))
    if word == "map":
        return closed(parse(rest[7:])) if rest.startswith("string,") else None
    if word == "struct":
        while True:
            field = re.match(r"[a-z0-9_]+:", rest)
            rest = parse(rest[field.end():]) if field else None
            if rest is None:
                return None
            if not rest.startswith(","):
                return closed(rest)
            rest = rest[1:]
    return None


def closed(rest):
    return rest[1:] if rest is not None and rest.startswith(">") else None
