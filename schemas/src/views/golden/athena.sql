-- order: the table as it is now
CREATE OR REPLACE VIEW "shop"."orders" AS
WITH changed AS (
  SELECT "_pk", coalesce("_sk", '') AS "_sk"
  FROM "shop"."orders_changes"
  WHERE "dt" >= '2026-10-30'
  GROUP BY 1, 2
  HAVING max("_at") >= TIMESTAMP '2026-10-31 23:59:00.000'
),
ranked AS (
  SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
    "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY "_stream" DESC NULLS LAST, "_seq" DESC NULLS LAST, "_at" DESC, "_schema" DESC) AS "_rank",
    max("_at") OVER (PARTITION BY "_pk", "_sk") AS "_latest"
  FROM "shop"."orders_changes"
  WHERE "dt" >= '2026-10-30'
)
SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
  "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old"
FROM ranked
WHERE "_rank" = 1 AND "_latest" >= TIMESTAMP '2026-10-31 23:59:00.000' AND "_op" <> 'REMOVE'
UNION ALL
SELECT b."user_id", b."order_id", b."total", b."placed_at", b."address", b."lines", b."thumbnail",
  b."_pk", b."_sk", b."_op", b."_reason", b."_at", b."_stream", b."_seq", b."_event_id",
  b."_source", b."_schema", b."_rest", b."_old"
FROM "shop"."orders_snapshot" AS b
LEFT JOIN changed AS c ON c."_pk" = b."_pk" AND c."_sk" = coalesce(b."_sk", '')
WHERE b."export" = '20261101T000400Z' AND c."_pk" IS NULL;

-- order: one row per change
CREATE OR REPLACE VIEW "shop"."orders_history" AS
WITH ranked AS (
  SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
    "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk", "_stream", "_seq" ORDER BY "_at" DESC, "_schema" DESC) AS "_rank"
  FROM "shop"."orders_changes"
)
SELECT "user_id", "order_id", "total", "placed_at", "address", "lines", "thumbnail", "_pk", "_sk",
  "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema", "_rest", "_old"
FROM ranked
WHERE "_rank" = 1;

-- order: the table as it is now, without nested columns
CREATE OR REPLACE VIEW "shop"."orders_flat" AS
SELECT
  t."user_id",
  t."order_id",
  t."total",
  t."placed_at",
  t."address"."city" AS "address_city",
  t."address"."geo"."lat" AS "address_geo_lat",
  t."address"."geo"."lon" AS "address_geo_lon",
  json_format(CAST(t."lines" AS JSON)) AS "lines",
  to_base64(t."thumbnail") AS "thumbnail",
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
FROM "shop"."orders" AS t;

-- items that no entity takes, whole in _rest: the table as it is now
CREATE OR REPLACE VIEW "shop"."unmatched" AS
WITH changed AS (
  SELECT "_pk", coalesce("_sk", '') AS "_sk"
  FROM "shop"."unmatched_changes"
  WHERE "dt" >= '2026-10-30'
  GROUP BY 1, 2
  HAVING max("_at") >= TIMESTAMP '2026-10-31 23:59:00.000'
),
ranked AS (
  SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
    "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY "_stream" DESC NULLS LAST, "_seq" DESC NULLS LAST, "_at" DESC, "_schema" DESC) AS "_rank",
    max("_at") OVER (PARTITION BY "_pk", "_sk") AS "_latest"
  FROM "shop"."unmatched_changes"
  WHERE "dt" >= '2026-10-30'
)
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old"
FROM ranked
WHERE "_rank" = 1 AND "_latest" >= TIMESTAMP '2026-10-31 23:59:00.000' AND "_op" <> 'REMOVE'
UNION ALL
SELECT b."_pk", b."_sk", b."_op", b."_reason", b."_at", b."_stream", b."_seq", b."_event_id",
  b."_source", b."_schema", b."_rest", b."_old"
FROM "shop"."unmatched_snapshot" AS b
LEFT JOIN changed AS c ON c."_pk" = b."_pk" AND c."_sk" = coalesce(b."_sk", '')
WHERE b."export" = '20261101T000400Z' AND c."_pk" IS NULL;

-- items that no entity takes, whole in _rest: one row per change
CREATE OR REPLACE VIEW "shop"."unmatched_history" AS
WITH ranked AS (
  SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
    "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk", "_stream", "_seq" ORDER BY "_at" DESC, "_schema" DESC) AS "_rank"
  FROM "shop"."unmatched_changes"
)
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old"
FROM ranked
WHERE "_rank" = 1;

-- items that no entity takes, whole in _rest: the table as it is now, without nested columns
CREATE OR REPLACE VIEW "shop"."unmatched_flat" AS
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
FROM "shop"."unmatched" AS t;
