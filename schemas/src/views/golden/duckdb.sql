-- The lake `shop` for DuckDB 1.4 or newer: `duckdb -init lake.sql`.
-- Baseline: 20261101T000400Z.
-- Written by `dynalake duckdb`, which writes it anew; do not edit.

SET TimeZone = 'UTC';

SET VARIABLE dynalake_baseline = (
  SELECT CASE WHEN coalesce(max(parse_filename(file, true)), '') = '20261101T000400Z' THEN '20261101T000400Z'
    ELSE error('the lake has another baseline than this script: write it anew with `dynalake duckdb`') END
  FROM glob('/data/it''s a lake/state/baselines/*.json')
);

SET VARIABLE orders_changes = (
  SELECT CASE count(*) WHEN 0 THEN 'SELECT NULL::VARCHAR AS "dt" WHERE false'
    ELSE 'SELECT *, regexp_extract("filename", ''.*/dt=([^/]*)/'', 1) AS "dt" FROM read_parquet(''/data/it''''s a lake/changes/orders/dt=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')' END
  FROM glob('/data/it''s a lake/changes/orders/dt=*/*.parquet')
);
-- orders: changes, as in the files
CREATE OR REPLACE VIEW "orders_changes" AS
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old", "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail",
  "dt"
FROM (
  SELECT NULL::VARCHAR AS "_pk", NULL::VARCHAR AS "_sk", NULL::VARCHAR AS "_op",
    NULL::VARCHAR AS "_reason", NULL::TIMESTAMPTZ AS "_at", NULL::VARCHAR AS "_stream",
    NULL::VARCHAR AS "_seq", NULL::VARCHAR AS "_event_id", NULL::VARCHAR AS "_source",
    NULL::INTEGER AS "_schema", NULL::VARCHAR AS "_rest", NULL::VARCHAR AS "_old",
    NULL::VARCHAR AS "user_id", NULL::VARCHAR AS "order_id", NULL::DECIMAL(12,2) AS "total",
    NULL::TIMESTAMPTZ AS "placed_at",
    NULL::STRUCT("city" VARCHAR, "geo" STRUCT("lat" DOUBLE, "lon" DOUBLE)) AS "address",
    NULL::STRUCT("sku" VARCHAR, "qty" INTEGER)[] AS "lines", NULL::BLOB AS "thumbnail",
    NULL::VARCHAR AS "dt"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM query(coalesce(getvariable('orders_changes'),
    'SELECT *, regexp_extract("filename", ''.*/dt=([^/]*)/'', 1) AS "dt" FROM read_parquet(''/data/it''''s a lake/changes/orders/dt=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')'))
);

SET VARIABLE orders_snapshot = (
  SELECT CASE count(*) WHEN 0 THEN 'SELECT NULL::VARCHAR AS "export" WHERE false'
    ELSE 'SELECT *, regexp_extract("filename", ''.*/export=([^/]*)/'', 1) AS "export" FROM read_parquet(''/data/it''''s a lake/snapshot/orders/export=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')' END
  FROM glob('/data/it''s a lake/snapshot/orders/export=*/*.parquet')
);
-- orders: the whole table per export, as in the files
CREATE OR REPLACE VIEW "orders_snapshot" AS
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old", "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail",
  "export"
FROM (
  SELECT NULL::VARCHAR AS "_pk", NULL::VARCHAR AS "_sk", NULL::VARCHAR AS "_op",
    NULL::VARCHAR AS "_reason", NULL::TIMESTAMPTZ AS "_at", NULL::VARCHAR AS "_stream",
    NULL::VARCHAR AS "_seq", NULL::VARCHAR AS "_event_id", NULL::VARCHAR AS "_source",
    NULL::INTEGER AS "_schema", NULL::VARCHAR AS "_rest", NULL::VARCHAR AS "_old",
    NULL::VARCHAR AS "user_id", NULL::VARCHAR AS "order_id", NULL::DECIMAL(12,2) AS "total",
    NULL::TIMESTAMPTZ AS "placed_at",
    NULL::STRUCT("city" VARCHAR, "geo" STRUCT("lat" DOUBLE, "lon" DOUBLE)) AS "address",
    NULL::STRUCT("sku" VARCHAR, "qty" INTEGER)[] AS "lines", NULL::BLOB AS "thumbnail",
    NULL::VARCHAR AS "export"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM query(coalesce(getvariable('orders_snapshot'),
    'SELECT *, regexp_extract("filename", ''.*/export=([^/]*)/'', 1) AS "export" FROM read_parquet(''/data/it''''s a lake/snapshot/orders/export=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')'))
);

-- order: the table as it is now
CREATE OR REPLACE VIEW "orders" AS
WITH changed AS (
  SELECT "_pk", coalesce("_sk", '') AS "_sk"
  FROM "orders_changes"
  WHERE "dt" >= '2026-10-30'
  GROUP BY 1, 2
  HAVING max("_at") >= TIMESTAMPTZ '2026-10-31 23:59:00.000+00'
),
ranked AS (
  SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
    "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY "_stream" DESC NULLS LAST, "_seq" DESC NULLS LAST, "_at" DESC, "_schema" DESC) AS "_rank",
    max("_at") OVER (PARTITION BY "_pk", "_sk") AS "_latest"
  FROM "orders_changes"
  WHERE "dt" >= '2026-10-30'
)
SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
  "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old"
FROM ranked
WHERE "_rank" = 1 AND "_latest" >= TIMESTAMPTZ '2026-10-31 23:59:00.000+00' AND "_op" <> 'REMOVE'
UNION ALL
SELECT b."user_id", b."order_id", b."total", b."placed_at", b."address", b."lines", b."thumbnail",
  b."_pk", b."_sk", b."_op", b."_reason", b."_at", b."_stream", b."_seq", b."_event_id",
  b."_source", b."_schema", b."_rest", b."_old"
FROM "orders_snapshot" AS b
LEFT JOIN changed AS c ON c."_pk" = b."_pk" AND c."_sk" = coalesce(b."_sk", '')
WHERE b."export" = '20261101T000400Z' AND c."_pk" IS NULL;

-- order: one row per change
CREATE OR REPLACE VIEW "orders_history" AS
WITH ranked AS (
  SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
    "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk", "_stream", "_seq" ORDER BY "_at" DESC, "_schema" DESC) AS "_rank"
  FROM "orders_changes"
)
SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
  "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old"
FROM ranked
WHERE "_rank" = 1;

-- order: the table as it is now, without nested columns
CREATE OR REPLACE VIEW "orders_flat" AS
SELECT
  t."user_id",
  t."order_id",
  t."total",
  t."placed_at",
  t."address"."city" AS "address_city",
  t."address"."geo"."lat" AS "address_geo_lat",
  t."address"."geo"."lon" AS "address_geo_lon",
  CAST(to_json(t."lines") AS VARCHAR) AS "lines",
  base64(t."thumbnail") AS "thumbnail",
  t."_pk",
  t."_sk",
  t."_op",
  t."_reason",
  t."_at",
  t."_stream",
  t."_seq",
  t."_event_id",
  t."_source",
  t."_schema",
  t."_rest",
  t."_old"
FROM "orders" AS t;

SET VARIABLE unmatched_changes = (
  SELECT CASE count(*) WHEN 0 THEN 'SELECT NULL::VARCHAR AS "dt" WHERE false'
    ELSE 'SELECT *, regexp_extract("filename", ''.*/dt=([^/]*)/'', 1) AS "dt" FROM read_parquet(''/data/it''''s a lake/changes/unmatched/dt=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')' END
  FROM glob('/data/it''s a lake/changes/unmatched/dt=*/*.parquet')
);
-- unmatched: changes, as in the files
CREATE OR REPLACE VIEW "unmatched_changes" AS
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old", "dt"
FROM (
  SELECT NULL::VARCHAR AS "_pk", NULL::VARCHAR AS "_sk", NULL::VARCHAR AS "_op",
    NULL::VARCHAR AS "_reason", NULL::TIMESTAMPTZ AS "_at", NULL::VARCHAR AS "_stream",
    NULL::VARCHAR AS "_seq", NULL::VARCHAR AS "_event_id", NULL::VARCHAR AS "_source",
    NULL::INTEGER AS "_schema", NULL::VARCHAR AS "_rest", NULL::VARCHAR AS "_old",
    NULL::VARCHAR AS "dt"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM query(coalesce(getvariable('unmatched_changes'),
    'SELECT *, regexp_extract("filename", ''.*/dt=([^/]*)/'', 1) AS "dt" FROM read_parquet(''/data/it''''s a lake/changes/unmatched/dt=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')'))
);

SET VARIABLE unmatched_snapshot = (
  SELECT CASE count(*) WHEN 0 THEN 'SELECT NULL::VARCHAR AS "export" WHERE false'
    ELSE 'SELECT *, regexp_extract("filename", ''.*/export=([^/]*)/'', 1) AS "export" FROM read_parquet(''/data/it''''s a lake/snapshot/unmatched/export=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')' END
  FROM glob('/data/it''s a lake/snapshot/unmatched/export=*/*.parquet')
);
-- unmatched: the whole table per export, as in the files
CREATE OR REPLACE VIEW "unmatched_snapshot" AS
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old", "export"
FROM (
  SELECT NULL::VARCHAR AS "_pk", NULL::VARCHAR AS "_sk", NULL::VARCHAR AS "_op",
    NULL::VARCHAR AS "_reason", NULL::TIMESTAMPTZ AS "_at", NULL::VARCHAR AS "_stream",
    NULL::VARCHAR AS "_seq", NULL::VARCHAR AS "_event_id", NULL::VARCHAR AS "_source",
    NULL::INTEGER AS "_schema", NULL::VARCHAR AS "_rest", NULL::VARCHAR AS "_old",
    NULL::VARCHAR AS "export"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM query(coalesce(getvariable('unmatched_snapshot'),
    'SELECT *, regexp_extract("filename", ''.*/export=([^/]*)/'', 1) AS "export" FROM read_parquet(''/data/it''''s a lake/snapshot/unmatched/export=*/*.parquet'', union_by_name = true, hive_partitioning = false, filename = ''filename'')'))
);

-- items that no entity takes, whole in _rest: the table as it is now
CREATE OR REPLACE VIEW "unmatched" AS
WITH changed AS (
  SELECT "_pk", coalesce("_sk", '') AS "_sk"
  FROM "unmatched_changes"
  WHERE "dt" >= '2026-10-30'
  GROUP BY 1, 2
  HAVING max("_at") >= TIMESTAMPTZ '2026-10-31 23:59:00.000+00'
),
ranked AS (
  SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
    "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY "_stream" DESC NULLS LAST, "_seq" DESC NULLS LAST, "_at" DESC, "_schema" DESC) AS "_rank",
    max("_at") OVER (PARTITION BY "_pk", "_sk") AS "_latest"
  FROM "unmatched_changes"
  WHERE "dt" >= '2026-10-30'
)
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old"
FROM ranked
WHERE "_rank" = 1 AND "_latest" >= TIMESTAMPTZ '2026-10-31 23:59:00.000+00' AND "_op" <> 'REMOVE'
UNION ALL
SELECT b."_pk", b."_sk", b."_op", b."_reason", b."_at", b."_stream", b."_seq", b."_event_id",
  b."_source", b."_schema", b."_rest", b."_old"
FROM "unmatched_snapshot" AS b
LEFT JOIN changed AS c ON c."_pk" = b."_pk" AND c."_sk" = coalesce(b."_sk", '')
WHERE b."export" = '20261101T000400Z' AND c."_pk" IS NULL;

-- items that no entity takes, whole in _rest: one row per change
CREATE OR REPLACE VIEW "unmatched_history" AS
WITH ranked AS (
  SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
    "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk", "_stream", "_seq" ORDER BY "_at" DESC, "_schema" DESC) AS "_rank"
  FROM "unmatched_changes"
)
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old"
FROM ranked
WHERE "_rank" = 1;

-- items that no entity takes, whole in _rest: the table as it is now, without nested columns
CREATE OR REPLACE VIEW "unmatched_flat" AS
SELECT
  t."_pk",
  t."_sk",
  t."_op",
  t."_reason",
  t."_at",
  t."_stream",
  t."_seq",
  t."_event_id",
  t."_source",
  t."_schema",
  t."_rest",
  t."_old"
FROM "unmatched" AS t;

SET VARIABLE quarantine = (
  SELECT CASE count(*) WHEN 0 THEN 'SELECT NULL::VARCHAR AS "dt" WHERE false'
    ELSE 'SELECT *, regexp_extract("filename", ''.*/dt=([^/]*)/'', 1) AS "dt" FROM read_json(''/data/it''''s a lake/quarantine/dt=*/*.jsonl'', format = ''newline_delimited'', columns = {"reason": ''VARCHAR'', "entity": ''VARCHAR'', "path": ''VARCHAR'', "message": ''VARCHAR'', "source": ''VARCHAR'', "origin": ''JSON'', "at": ''BIGINT'', "event_id": ''VARCHAR'', "sequence_number": ''VARCHAR'', "payload": ''VARCHAR'', "payload_base64": ''VARCHAR''}, hive_partitioning = false, filename = ''filename'')' END
  FROM glob('/data/it''s a lake/quarantine/dt=*/*.jsonl')
);
-- records that could not become rows, whole
CREATE OR REPLACE VIEW "quarantine" AS
SELECT "reason", "entity", "path", "message", "source", "origin", "at", "event_id", "sequence_number",
  "payload", "payload_base64", "dt"
FROM (
  SELECT NULL::VARCHAR AS "reason", NULL::VARCHAR AS "entity", NULL::VARCHAR AS "path",
    NULL::VARCHAR AS "message", NULL::VARCHAR AS "source", NULL::JSON AS "origin",
    NULL::BIGINT AS "at", NULL::VARCHAR AS "event_id", NULL::VARCHAR AS "sequence_number",
    NULL::VARCHAR AS "payload", NULL::VARCHAR AS "payload_base64", NULL::VARCHAR AS "dt"
  WHERE false
  UNION ALL BY NAME
  SELECT * FROM query(coalesce(getvariable('quarantine'),
    'SELECT *, regexp_extract("filename", ''.*/dt=([^/]*)/'', 1) AS "dt" FROM read_json(''/data/it''''s a lake/quarantine/dt=*/*.jsonl'', format = ''newline_delimited'', columns = {"reason": ''VARCHAR'', "entity": ''VARCHAR'', "path": ''VARCHAR'', "message": ''VARCHAR'', "source": ''VARCHAR'', "origin": ''JSON'', "at": ''BIGINT'', "event_id": ''VARCHAR'', "sequence_number": ''VARCHAR'', "payload": ''VARCHAR'', "payload_base64": ''VARCHAR''}, hive_partitioning = false, filename = ''filename'')'))
);
