//! What AWS's services say of a stack.

use dynalake_pipeline::stream::NAMESPACE;
use serde_json::{Value, json};

use super::DAYS;
use super::check::{Check, age, span, whole};
use crate::cloud::{Deployment, Execution, ExecutionState, Metrics, Query, Refused, Statistic};
use crate::commands::stack::failed;
use crate::exit::Outcome;
use crate::output::number;

/// The lag's limit: that of the alarm `stream-lag`.
const LAG_LIMIT_MS: u64 = 900_000;
const HALF_HOUR_MS: i64 = 30 * 60_000;
const DAY_MS: i64 = 24 * 60 * 60_000;

/// The state of the stack itself.
pub(super) fn stack(deployment: &Deployment) -> Check {
    let status = &deployment.status;
    // CloudFormation user guide, "Stack status codes".
    let attention = status.contains("FAILED") || status.contains("ROLLBACK");
    Check::new("stack", attention, status.clone(), json!(status))
        .next("the stack is not as its template says: deploy it again with `infra/deploy.sh`")
}

/// Stream, exports and what became of values.
pub(super) async fn checks(deployment: &Deployment, now: i64) -> Outcome<Vec<Check>> {
    let metrics = deployment.metrics();
    Ok(vec![
        lag(deployment, &metrics, now).await?,
        mapping(deployment).await?,
        export(deployment, now).await?,
        values(deployment, &metrics, now, &UNMATCHED).await?,
        values(deployment, &metrics, now, &MISMATCHES).await?,
    ])
}

/// How far the lake is behind.
async fn lag(deployment: &Deployment, metrics: &Metrics, now: i64) -> Outcome<Check> {
    let function = deployment.output("StreamFunctionName")?;
    let database = deployment.output("DatabaseName")?;
    let queries = [
        Query {
            metric: ("AWS/Lambda", "IteratorAge"),
            dimension: ("FunctionName", function),
            statistic: Statistic::Maximum,
        },
        Query {
            metric: (NAMESPACE, "lag_ms"),
            dimension: ("database", database),
            statistic: Statistic::Maximum,
        },
    ];
    let read = metrics.read(&queries, (now - HALF_HOUR_MS, now), 300).await;
    let values = match read {
        Ok(values) => values,
        Err(refused) => return Ok(unread("lag", &refused)),
    };
    let value = |index: usize| values.get(index).copied().flatten().map(whole);
    let (handed_over, written) = (value(0), value(1));
    let says = match (handed_over, written) {
        (None, None) => "no changes in the last 30 min".to_owned(),
        (handed_over, written) => {
            let part = |what: &str, ms: Option<u64>| Some(format!("{what} {}", span(ms?)));
            let parts = [
                part("handed over after", handed_over),
                part("written after", written),
            ];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!("{} at most (last 30 min)", parts.join(", "))
        }
    };
    let late = handed_over.max(written).is_some_and(|ms| ms > LAG_LIMIT_MS);
    let facts = json!({"iterator_age_ms": handed_over, "lag_ms": written});
    Ok(Check::new("lag", late, says, facts).next(
        "the stream forgets changes after 24 h: see the function's errors on the dashboard, and raise \
         `ParallelizationFactor` where there are none",
    ))
}

/// The mapping from the stream to the function.
async fn mapping(deployment: &Deployment) -> Outcome<Check> {
    let id = deployment.output("EventSourceMappingId")?;
    let mapping = match deployment.functions().mapping(id).await {
        Ok(mapping) => mapping,
        Err(refused) => {
            let reason = refused.reason("lambda:GetEventSourceMapping");
            return Ok(Check::unknown("mapping", reason));
        }
    };
    // Lambda API reference, GetEventSourceMapping: a disabled mapping reads nothing; the result of a
    // mapping that does well is `OK` or `No records processed`.
    let result = mapping.last_result.as_deref().unwrap_or("nothing yet");
    let well = ["OK", "No records processed", "nothing yet"];
    let failing = !well.iter().any(|well| result.starts_with(well));
    let broken = !matches!(
        mapping.state.as_str(),
        "Enabled" | "Creating" | "Enabling" | "Updating"
    ) || failing;
    let says = format!("{}, last result: {result}", mapping.state);
    let facts = json!({
        "state": mapping.state, "why": mapping.why, "last_result": mapping.last_result,
    });
    let next = if failing {
        format!(
            "see why: `aws logs tail /dynalake/{}/stream --since 1h`",
            deployment.name
        )
    } else {
        format!(
            "the stream is not read: `aws lambda update-event-source-mapping --uuid {id} --enabled`"
        )
    };
    Ok(Check::new("mapping", broken, says, facts).next(next))
}

/// The newest execution of the export workflow.
async fn export(deployment: &Deployment, now: i64) -> Outcome<Check> {
    let workflow = deployment.workflow()?;
    let unknown = |refused: &Refused, right| Ok(Check::unknown("export", refused.reason(right)));
    let newest = match workflow.newest().await {
        Ok(Some(newest)) => newest,
        Ok(None) => return Ok(Check::new("export", false, "none yet", json!(null))),
        Err(refused) => return unknown(&refused, "states:ListExecutions"),
    };
    // The list does not say why one failed.
    let newest = match newest.state {
        ExecutionState::Running | ExecutionState::Succeeded => newest,
        _ => match workflow.look(&newest.arn).await {
            Ok(looked) => looked,
            Err(_) => newest,
        },
    };
    let attention = !matches!(
        newest.state,
        ExecutionState::Running | ExecutionState::Succeeded
    );
    let says = export_sentence(&newest, now);
    let stack = &deployment.name;
    Ok(
        Check::new("export", attention, says, json!(newest)).next(format!(
            "when that is mended: `dynalake backfill --stack {stack} --resume`"
        )),
    )
}

fn export_sentence(newest: &Execution, now: i64) -> String {
    let when = newest.stopped_ms.or(newest.started_ms);
    let when = when.map(|ms| match newest.state {
        ExecutionState::Running => format!(" for {}", age(now - ms)),
        _ => format!(" {} ago", age(now - ms)),
    });
    format!(
        "{} {}{}{}",
        newest.name,
        newest.state.word(),
        when.unwrap_or_default(),
        failed::because(newest)
    )
}

/// A count of values that somebody should look at.
struct Values {
    name: &'static str,
    metric: &'static str,
    next: &'static str,
}

const UNMATCHED: Values = Values {
    name: "unmatched",
    metric: "unmatched",
    next: "items match no entity: `dynalake current LAKE unmatched` shows them; add an entity and deploy",
};
const MISMATCHES: Values = Values {
    name: "mismatches",
    metric: "mismatches",
    next: "values do not fit their columns (NULL there, whole in `_rest`): the function's log says which \
           columns",
};

async fn values(
    deployment: &Deployment,
    metrics: &Metrics,
    now: i64,
    values: &Values,
) -> Outcome<Check> {
    let queries = [Query {
        metric: (NAMESPACE, values.metric),
        dimension: ("database", deployment.output("DatabaseName")?),
        statistic: Statistic::Sum,
    }];
    let from = now - i64::from(DAYS) * DAY_MS;
    let read = metrics.read(&queries, (from, now), 86_400).await;
    let count = match read {
        Ok(read) => read.first().copied().flatten().map_or(0, whole),
        Err(refused) => return Ok(unread(values.name, &refused)),
    };
    let says = format!("{} in the last {DAYS} days", number(count));
    Ok(Check::new(
        values.name,
        count > 0,
        says,
        json!({"count": count, "days": DAYS}),
    )
    .next(values.next.replace("LAKE", deployment.lake()?)))
}

/// The alarms that ring.
pub(super) async fn alarms(deployment: &Deployment) -> Check {
    let prefix = format!("{}-", deployment.name);
    let ringing = match deployment.metrics().ringing(&prefix).await {
        Ok(ringing) => ringing,
        Err(refused) => {
            return Check::unknown("alarms", refused.reason("cloudwatch:DescribeAlarms"));
        }
    };
    let facts: Vec<Value> = ringing
        .iter()
        .map(|alarm| json!({"name": alarm.name, "description": alarm.description}))
        .collect();
    let names: Vec<&str> = ringing.iter().map(|alarm| alarm.name.as_str()).collect();
    let says = if names.is_empty() {
        "none rings".to_owned()
    } else {
        names.join(", ")
    };
    Check::new("alarms", !ringing.is_empty(), says, Value::from(facts)).next(
        ringing
            .iter()
            .filter_map(|alarm| alarm.description.as_deref())
            .collect::<Vec<_>>()
            .join(" "),
    )
}

fn unread(name: &'static str, refused: &Refused) -> Check {
    Check::unknown(name, refused.reason("cloudwatch:GetMetricData"))
}
