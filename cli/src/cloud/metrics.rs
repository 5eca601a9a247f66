//! CloudWatch: metrics and alarms.

use aws_config::SdkConfig;
use aws_sdk_cloudwatch::Client;
use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{
    AlarmType, Dimension, Metric, MetricDataQuery, MetricStat, StateValue,
};

use super::refused::{Refused, refused};

/// CloudWatch in the stack's region.
#[derive(Debug)]
pub(crate) struct Metrics {
    client: Client,
}

/// A metric to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a> {
    /// Namespace and name.
    pub(crate) metric: (&'a str, &'a str),
    /// Its dimension, name and value.
    pub(crate) dimension: (&'a str, &'a str),
    /// What is made of its points.
    pub(crate) statistic: Statistic,
}

/// What is made of the points of a metric, within a period and over all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// The greatest.
    Maximum,
    /// All together.
    Sum,
}

/// An alarm that rings.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// Its name.
    pub(crate) name: String,
    /// What it means.
    pub(crate) description: Option<String>,
}

impl Metrics {
    pub(super) fn new(config: &SdkConfig) -> Self {
        Self {
            client: Client::new(config),
        }
    }

    /// Reads metrics over a time (milliseconds since 1970-01-01 UTC), in periods of so many seconds;
    /// none where there is no point.
    pub(crate) async fn read(
        &self,
        queries: &[Query<'_>],
        (from_ms, to_ms): (i64, i64),
        period: i32,
    ) -> Result<Vec<Option<f64>>, Refused> {
        let mut call = self
            .client
            .get_metric_data()
            .start_time(DateTime::from_millis(from_ms))
            .end_time(DateTime::from_millis(to_ms));
        for (index, query) in queries.iter().enumerate() {
            let (namespace, name) = query.metric;
            let dimension = Dimension::builder()
                .name(query.dimension.0)
                .value(query.dimension.1)
                .build();
            let metric = Metric::builder()
                .namespace(namespace)
                .metric_name(name)
                .dimensions(dimension)
                .build();
            let statistic = match query.statistic {
                Statistic::Maximum => "Maximum",
                Statistic::Sum => "Sum",
            };
            call = call.metric_data_queries(
                MetricDataQuery::builder()
                    .id(format!("m{index}"))
                    .metric_stat(
                        MetricStat::builder()
                            .metric(metric)
                            .period(period)
                            .stat(statistic)
                            .build(),
                    )
                    .build(),
            );
        }
        let mut values: Vec<Option<f64>> = vec![None; queries.len()];
        let mut next = None;
        loop {
            let page = Box::pin(call.clone().set_next_token(next).send())
                .await
                .map_err(|error| refused("reading metrics", &error))?;
            for result in page.metric_data_results.unwrap_or_default() {
                let id = result.id.unwrap_or_default();
                let index = id.strip_prefix('m').and_then(|index| index.parse().ok());
                let index: usize = index.unwrap_or(usize::MAX);
                let (Some(query), Some(value)) = (queries.get(index), values.get_mut(index)) else {
                    continue;
                };
                for point in result.values.unwrap_or_default() {
                    *value = Some(match (query.statistic, *value) {
                        (_, None) => point,
                        (Statistic::Maximum, Some(so_far)) => so_far.max(point),
                        (Statistic::Sum, Some(so_far)) => so_far + point,
                    });
                }
            }
            next = page.next_token.filter(|token| !token.is_empty());
            if next.is_none() {
                return Ok(values);
            }
        }
    }

    /// The alarms whose names begin so and that ring.
    pub(crate) async fn ringing(&self, prefix: &str) -> Result<Vec<Alarm>, Refused> {
        let mut alarms = Vec::new();
        let mut next = None;
        loop {
            let call = self
                .client
                .describe_alarms()
                .alarm_name_prefix(prefix)
                .alarm_types(AlarmType::MetricAlarm)
                .state_value(StateValue::Alarm);
            let page = Box::pin(call.set_next_token(next).send())
                .await
                .map_err(|error| refused("looking at the alarms", &error))?;
            let found = page.metric_alarms.unwrap_or_default().into_iter();
            alarms.extend(found.map(|alarm| Alarm {
                name: alarm.alarm_name.unwrap_or_default(),
                description: alarm.alarm_description.filter(|text| !text.is_empty()),
            }));
            next = page.next_token.filter(|token| !token.is_empty());
            if next.is_none() {
                return Ok(alarms);
            }
        }
    }
}
