//! From a load to quantities, and from quantities to money. Each line of the bill is a product, so that
//! the arithmetic that is shown is the arithmetic that was done.

use serde::Serialize;

use super::PriceList;

/// Seconds of a month of 730 hours.
const MONTH: f64 = 730.0 * 3600.0;
const GB: f64 = 1e9;

/// A load, taken as steady.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Load {
    /// Changes of items a second, on average.
    pub(crate) changes_per_second: f64,
    /// Size of an item.
    pub(crate) item_bytes: f64,
    /// Size of the table.
    pub(crate) table_gb: f64,
    /// Kinds of items, each of which has its tables.
    pub(crate) entities: f64,
    /// Full exports a month.
    pub(crate) exports_per_month: f64,
    /// Incremental exports a month.
    pub(crate) incremental_per_month: f64,
    /// GB that queries read a month.
    pub(crate) queried_gb: f64,
}

/// A quantity on the way to the bill.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Quantity {
    /// What it is.
    pub(crate) what: &'static str,
    /// How much.
    pub(crate) value: f64,
    /// How it comes about.
    pub(crate) because: String,
}

/// A factor of a line.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Factor {
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
}

/// A line of the bill.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    /// AWS service.
    pub(crate) service: &'static str,
    /// What is paid for.
    pub(crate) what: &'static str,
    /// Their product is the cost.
    pub(crate) factors: Vec<Factor>,
    /// Cost of a month.
    pub(crate) cost: f64,
}

/// What a month costs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Estimate {
    pub(crate) load: Load,
    pub(crate) quantities: Vec<Quantity>,
    pub(crate) lines: Vec<Line>,
    pub(crate) total: f64,
}

/// Estimates a month.
pub(crate) fn estimate(load: Load, list: &PriceList) -> Estimate {
    let (p, a) = (&list.prices, &list.assumptions);
    let mut quantities = Vec::new();
    let mut quantity = |what, value: f64, because: String| {
        quantities.push(Quantity {
            what,
            value,
            because,
        });
        value
    };

    let changes = quantity(
        "changes a month",
        load.changes_per_second * MONTH,
        format!(
            "{} a second × {} s",
            figure(load.changes_per_second),
            figure(MONTH)
        ),
    );
    let by_size = (load.table_gb / a.shard_gb).ceil();
    let by_rate = (load.changes_per_second / a.shard_changes_per_second).ceil();
    let shards = quantity(
        "shards of the stream",
        by_size.max(by_rate).max(1.0),
        format!(
            "one per {} GB of the table or {} changes a second",
            figure(a.shard_gb),
            figure(a.shard_changes_per_second)
        ),
    );
    // A record has both images.
    let record = a.event_bytes_per_record + 2.0 * load.item_bytes * a.event_bytes_per_item_byte;
    let fits = (a.batch_megabytes * 1e6 / record).floor().max(1.0);
    let rate = load.changes_per_second / shards;
    let in_window = rate * a.batch_window_seconds;
    let batch = quantity(
        "changes a batch",
        in_window.min(a.batch_records).min(fits).max(1.0),
        format!(
            "what a shard gets in {} s, at most {} and {} MB ({} changes)",
            figure(a.batch_window_seconds),
            figure(a.batch_records),
            figure(a.batch_megabytes),
            figure(fits)
        ),
    );
    let batches = quantity(
        "batches a month",
        changes / batch,
        "changes / changes a batch".to_owned(),
    );
    let tables = load.entities.min(batch);
    let objects = quantity(
        "objects a month",
        batches * tables,
        format!("batches × {} tables in a batch at most", figure(tables)),
    );
    let seconds = quantity(
        "seconds of the stream function",
        batches * a.stream_seconds_per_batch + changes / 1e6 * a.stream_seconds_per_million_records,
        format!(
            "batches × {} s + millions of changes × {} s",
            figure(a.stream_seconds_per_batch),
            figure(a.stream_seconds_per_million_records)
        ),
    );
    let changed = quantity(
        "GB of changed items",
        changes * load.item_bytes / GB,
        format!("changes × {} bytes", figure(load.item_bytes)),
    );
    let exports = load.exports_per_month + load.incremental_per_month;
    let incremental_gb = if load.incremental_per_month > 0.0 {
        changed
    } else {
        0.0
    };
    let read = load.exports_per_month * load.table_gb + incremental_gb;
    // Rolling a baseline forward reads and writes all of it.
    let rolled = load.incremental_per_month * load.table_gb;
    let converted = quantity(
        "GB converted",
        read + rolled,
        "full exports × table + changes of incremental ones + baselines rolled forward".to_owned(),
    );
    let transitions = quantity(
        "state transitions",
        exports * a.transitions_per_export + read / a.part_gb * a.transitions_per_part,
        format!(
            "exports × {} + GB exported × {}",
            figure(a.transitions_per_export),
            figure(a.transitions_per_part / a.part_gb)
        ),
    );

    let lines = [
        line(
            "Lambda",
            "stream function, time",
            [
                (seconds, "s"),
                (a.stream_memory_gb, "GB"),
                (p.lambda_gb_second_arm64, "a GB-second"),
            ],
        ),
        line(
            "Lambda",
            "stream function, invocations",
            [
                (batches / 1e6, "million"),
                (p.lambda_million_requests, "a million"),
            ],
        ),
        line(
            "Lambda",
            "conversion",
            [
                (converted, "GB"),
                (a.conversion_seconds_per_gb, "s a GB"),
                (a.worker_memory_gb, "GB"),
                (p.lambda_gb_second_arm64, "a GB-second"),
            ],
        ),
        line(
            "S3",
            "objects written",
            [
                (objects / 1e3, "thousand"),
                (p.s3_thousand_puts, "a thousand"),
            ],
        ),
        line(
            "S3",
            "objects read by compaction",
            [
                (objects / 1e3, "thousand"),
                (p.s3_thousand_gets, "a thousand"),
            ],
        ),
        line(
            "S3",
            "changes, of each month that is kept",
            [
                (changed, "GB"),
                (a.parquet_share, "as Parquet"),
                (p.s3_gb_month, "a GB"),
            ],
        ),
        line(
            "S3",
            "baselines",
            [
                (a.baselines_kept, "kept"),
                (load.table_gb, "GB"),
                (a.parquet_share, "as Parquet"),
                (p.s3_gb_month, "a GB"),
            ],
        ),
        line(
            "S3",
            "files of exports",
            [
                (read, "GB exported"),
                (a.export_share, "gzipped"),
                (a.export_days / 30.0, "of a month"),
                (p.s3_gb_month, "a GB"),
            ],
        ),
        line(
            "DynamoDB",
            "full exports",
            [
                (load.exports_per_month, "exports"),
                (load.table_gb, "GB"),
                (p.dynamodb_full_export_gb, "a GB"),
            ],
        ),
        line(
            "DynamoDB",
            "incremental exports",
            [
                (incremental_gb, "GB of changes"),
                (p.dynamodb_incremental_export_gb, "a GB"),
            ],
        ),
        line(
            "DynamoDB",
            "point-in-time recovery, if it is off now",
            [
                (if exports > 0.0 { load.table_gb } else { 0.0 }, "GB"),
                (p.dynamodb_recovery_gb_month, "a GB"),
            ],
        ),
        line(
            "Step Functions",
            "workflow of exports",
            [
                (transitions / 1e3, "thousand"),
                (p.step_functions_thousand_transitions, "a thousand"),
            ],
        ),
        line("KMS", "key", [(1.0, "key"), (p.kms_key_month, "each")]),
        line(
            "Secrets Manager",
            "key of digests, where schemas have them",
            [(1.0, "secret"), (p.secret_month, "each")],
        ),
        line(
            "CloudWatch",
            "metrics",
            [
                (a.custom_metrics, "metrics"),
                (p.cloudwatch_metric_month, "each"),
            ],
        ),
        line(
            "CloudWatch",
            "alarms",
            [
                (a.alarm_metrics, "metrics"),
                (p.cloudwatch_alarm_metric_month, "each"),
            ],
        ),
        line(
            "CloudWatch",
            "dashboard",
            [(1.0, "dashboard"), (p.cloudwatch_dashboard_month, "each")],
        ),
        line(
            "CloudWatch",
            "log",
            [
                (batches * a.log_bytes_per_batch / GB, "GB"),
                (p.cloudwatch_log_gb, "a GB"),
            ],
        ),
        line(
            "Athena",
            "queries",
            [(load.queried_gb / 1e3, "TB"), (p.athena_tb_scanned, "a TB")],
        ),
    ];
    let lines: Vec<Line> = lines.into_iter().collect();
    Estimate {
        load,
        total: lines.iter().map(|line| line.cost).sum(),
        quantities,
        lines,
    }
}

fn line<const N: usize>(
    service: &'static str,
    what: &'static str,
    factors: [(f64, &'static str); N],
) -> Line {
    Line {
        service,
        what,
        cost: factors.iter().map(|(value, _)| value).product(),
        factors: factors.map(|(value, unit)| Factor { value, unit }).into(),
    }
}

impl Line {
    /// The product in words; the last factor is the price, in this currency.
    pub(crate) fn arithmetic(&self, currency: &str) -> String {
        let last = self.factors.len().saturating_sub(1);
        let words = self.factors.iter().enumerate().map(|(index, factor)| {
            let (value, unit) = (factor.value, factor.unit);
            if index == last {
                format!("{value} {currency} {unit}")
            } else {
                format!("{} {unit}", figure(value))
            }
        });
        words.collect::<Vec<_>>().join(" × ")
    }
}

/// A quantity for people: whole numbers with thousands separated from 100 on, else four digits.
pub(crate) fn figure(value: f64) -> String {
    if value >= 100.0 {
        let whole = format!("{value:.0}");
        return whole.parse().map_or(whole, crate::output::number);
    }
    let digits = match value {
        10.0.. => 2,
        1.0.. => 3,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "0" if value > 0.0 => "under 0.0001".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Load {
        Load {
            changes_per_second: 4.0,
            item_bytes: 1000.0,
            table_gb: 8.0,
            entities: 8.0,
            exports_per_month: 1.0,
            incremental_per_month: 0.0,
            queried_gb: 0.0,
        }
    }

    fn quantity(estimate: &Estimate, what: &str) -> f64 {
        let found = estimate.quantities.iter().find(|one| one.what == what);
        found.unwrap().value
    }

    fn cost(estimate: &Estimate, what: &str) -> f64 {
        estimate
            .lines
            .iter()
            .find(|one| one.what == what)
            .unwrap()
            .cost
    }

    #[track_caller]
    fn near(left: f64, right: f64) {
        assert!(
            (left - right).abs() < 1e-6 * right.abs().max(1.0),
            "{left} {right}"
        );
    }

    /// The same by hand.
    #[test]
    fn a_small_table_costs_what_it_costs_by_hand() {
        let list = PriceList::load(None).unwrap();
        let estimate = estimate(load(), &list);
        near(quantity(&estimate, "changes a month"), 10_512_000.0);
        near(quantity(&estimate, "shards of the stream"), 1.0);
        // 4 a second for a minute.
        near(quantity(&estimate, "changes a batch"), 240.0);
        near(quantity(&estimate, "batches a month"), 43_800.0);
        near(cost(&estimate, "objects written"), 43.8 * 8.0 * 0.005);
        near(cost(&estimate, "full exports"), 0.80);
        near(
            cost(&estimate, "point-in-time recovery, if it is off now"),
            1.60,
        );
        near(
            cost(&estimate, "stream function, time"),
            (4380.0 + 52.56) * 0.000_013_333_4,
        );
        let sum: f64 = estimate.lines.iter().map(|line| line.cost).sum();
        near(estimate.total, sum);
    }

    #[test]
    fn a_large_load_meets_the_limits_of_a_batch() {
        let list = PriceList::load(None).unwrap();
        let mut busy = load();
        (busy.changes_per_second, busy.table_gb) = (20_000.0, 300.0);
        let estimate = estimate(busy, &list);
        near(quantity(&estimate, "shards of the stream"), 30.0);
        // 6 MB / (700 + 2 × 1000 × 1.4) bytes.
        near(quantity(&estimate, "changes a batch"), 1714.0);
    }

    #[test]
    fn without_exports_nothing_is_paid_for_them() {
        let list = PriceList::load(None).unwrap();
        let mut none = load();
        none.exports_per_month = 0.0;
        let estimate = estimate(none, &list);
        for what in [
            "full exports",
            "workflow of exports",
            "conversion",
            "files of exports",
        ] {
            near(cost(&estimate, what), 0.0);
        }
        near(
            cost(&estimate, "point-in-time recovery, if it is off now"),
            0.0,
        );
    }

    #[test]
    fn figures_are_readable() {
        for (value, text) in [
            (43_800.4, "43,800"),
            (99.5, "99.5"),
            (2.0, "2"),
            (0.15, "0.15"),
            (0.0, "0"),
            (0.000_001, "under 0.0001"),
        ] {
            assert_eq!(figure(value), text);
        }
    }
}
