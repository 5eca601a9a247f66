-- order: the table as it is now
CREATE OR REPLACE VIEW "shop"."orders" AS
WITH ranked AS (
  SELECT "user_id", "order_id", "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id",
    "_source", "_schema", "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY "_stream" DESC NULLS LAST, "_seq" DESC NULLS LAST, "_at" DESC, "_schema" DESC) AS "_rank"
  FROM "shop"."orders_changes"
)
SELECT "user_id", "order_id", "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id",
  "_source", "_schema", "_rest", "_old"
FROM ranked
WHERE "_rank" = 1 AND "_op" <> 'REMOVE';

-- order: one row per change
CREATE OR REPLACE VIEW "shop"."orders_history" AS
WITH ranked AS (
  SELECT "user_id", "order_id", "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id",
    "_source", "_schema", "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk", "_stream", "_seq" ORDER BY "_at" DESC, "_schema" DESC) AS "_rank"
  FROM "shop"."orders_changes"
)
SELECT "user_id", "order_id", "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id",
  "_source", "_schema", "_rest", "_old"
FROM ranked
WHERE "_rank" = 1;

-- order: the table as it is now, without nested columns
CREATE OR REPLACE VIEW "shop"."orders_flat" AS
SELECT
  t."user_id",
  t."order_id",
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
WITH ranked AS (
  SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
    "_rest", "_old",
    row_number() OVER (PARTITION BY "_pk", "_sk" ORDER BY "_stream" DESC NULLS LAST, "_seq" DESC NULLS LAST, "_at" DESC, "_schema" DESC) AS "_rank"
  FROM "shop"."unmatched_changes"
)
SELECT "_pk", "_sk", "_op", "_reason", "_at", "_stream", "_seq", "_event_id", "_source", "_schema",
  "_rest", "_old"
FROM ranked
WHERE "_rank" = 1 AND "_op" <> 'REMOVE';

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
