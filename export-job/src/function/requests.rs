//! `requests`: what the workflow is to ask DynamoDB for.

use chrono::DateTime;
use dynalake_pipeline::baseline;
use dynalake_pipeline::time::format_iso8601;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Call;
use super::error::StepError;
use super::event::RequestType;
use crate::manifest::hex;
use crate::request::{ExportView, Recovery, Refusal, Stretch, Wanted, plan_full, plan_incremental};

pub(super) async fn requests(call: &Call<'_>) -> Result<Value, StepError> {
    let recovery = recovery(call.event.backups.as_ref())?;
    let wanted = match call.event.request_type {
        Some(RequestType::Full) => plan_full(recovery, None, call.now_ms),
        Some(RequestType::Incremental) => {
            let last = baseline::current(&call.context.store, None).await?;
            let stretch = Stretch {
                from_ms: last.map(|record| record.at_ms),
                to_ms: None,
            };
            plan_incremental(recovery, stretch, ExportView::NewAndOldImages, call.now_ms)
        }
        None => {
            return Err(StepError::Event(
                "give `type`: FULL or INCREMENTAL".to_owned(),
            ));
        }
    };
    let wanted = match wanted {
        Ok(wanted) => wanted,
        // The schedule came too early: nothing to do is no failure.
        Err(Refusal::TooEarly { .. }) => Vec::new(),
        Err(refusal) => {
            return Err(StepError::Refused(format!(
                "{refusal}; {}",
                remedy(refusal)
            )));
        }
    };
    let requests = wanted.iter().map(|wanted| request(call.run(), wanted));
    let requests: Vec<Value> = requests.collect();
    Ok(json!({"count": requests.len(), "requests": requests}))
}

/// One export as the workflow asks for it.
fn request(run: &str, wanted: &Wanted) -> Value {
    let text = |at_ms: i64| format_iso8601(at_ms).unwrap_or_default();
    match wanted {
        Wanted::Full { at_ms } => json!({
            "type": "FULL",
            "at": text(*at_ms),
            "token": token(run, &[*at_ms]),
        }),
        Wanted::Incremental { window, .. } => json!({
            "type": "INCREMENTAL",
            "from": text(window.from_ms),
            "to": text(window.to_ms),
            "token": token(run, &[window.from_ms, window.to_ms]),
        }),
    }
}

/// A client token: the same for the same request of the same execution, so that a retry of the workflow
/// asks for the same export, and another execution for another one.
fn token(run: &str, instants: &[i64]) -> String {
    let mut hash = Sha256::new();
    hash.update(run);
    for instant in instants {
        hash.update([0]);
        hash.update(instant.to_string());
    }
    let digest = hex(&hash.finalize());
    digest.get(..40).unwrap_or(&digest).to_owned()
}

/// Reads the answer of `DescribeContinuousBackups` as the workflow's SDK integration gives it: times are
/// ISO 8601 texts there, and seconds in the API's own JSON.
fn recovery(backups: Option<&Value>) -> Result<Recovery, StepError> {
    let described = backups.and_then(|backups| {
        backups.pointer("/ContinuousBackupsDescription/PointInTimeRecoveryDescription")
    });
    let status = described.and_then(|described| described["PointInTimeRecoveryStatus"].as_str());
    let (Some(described), Some(status)) = (described, status) else {
        return Err(StepError::Event(
            "`backups` is not an answer of DescribeContinuousBackups".to_owned(),
        ));
    };
    Ok(Recovery {
        enabled: status == "ENABLED",
        earliest_ms: instant(&described["EarliestRestorableDateTime"]),
        latest_ms: instant(&described["LatestRestorableDateTime"]),
    })
}

fn instant(value: &Value) -> Option<i64> {
    if let Some(text) = value.as_str() {
        let time = DateTime::parse_from_rfc3339(text).ok()?;
        return Some(time.timestamp_millis());
    }
    let text = value.as_number()?.to_string();
    // Seconds, perhaps with a fraction that does not matter.
    let seconds: i64 = text.split(['.', 'e', 'E']).next()?.parse().ok()?;
    seconds.checked_mul(1000)
}

fn remedy(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::RecoveryOff => {
            "turn it on with `aws dynamodb update-continuous-backups --table-name TABLE \
             --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true`, wait some five \
             minutes, and start the workflow again"
        }
        Refusal::NoBaseline => "start the workflow with {\"type\": \"FULL\"} first",
        Refusal::ChainBroken { .. } => {
            "start the workflow with {\"type\": \"FULL\"}: from there the chain begins anew"
        }
        _ => "start the workflow again later",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backups_are_read_in_both_spellings_of_time() {
        let of = |earliest: Value| {
            recovery(Some(&json!({"ContinuousBackupsDescription": {
                "ContinuousBackupsStatus": "ENABLED",
                "PointInTimeRecoveryDescription": {
                    "PointInTimeRecoveryStatus": "ENABLED",
                    "EarliestRestorableDateTime": earliest,
                    "LatestRestorableDateTime": "2026-05-01T00:00:01.500Z",
                },
            }})))
            .unwrap()
        };
        let expected = Recovery {
            enabled: true,
            earliest_ms: Some(1_777_593_600_000),
            latest_ms: Some(1_777_593_601_500),
        };
        for earliest in [
            json!("2026-05-01T00:00:00Z"),
            json!(1_777_593_600),
            json!(1_777_593_600.0),
            json!(1_777_593_600.999),
        ] {
            assert_eq!(of(earliest), expected);
        }
        assert_eq!(of(json!("soon")).earliest_ms, None);
        for other in [None, Some(json!({})), Some(json!("ENABLED"))] {
            assert!(recovery(other.as_ref()).is_err());
        }
    }

    #[test]
    fn a_token_is_of_its_run_and_request() {
        let window = |from_ms, to_ms| Wanted::Incremental {
            window: crate::request::Window { from_ms, to_ms },
            view: ExportView::NewAndOldImages,
        };
        let tokens = [
            request("a", &window(0, 3_600_000)),
            request("b", &window(0, 3_600_000)),
            request("a", &window(0, 7_200_000)),
            request("a", &Wanted::Full { at_ms: 0 }),
        ]
        .map(|request| request["token"].as_str().unwrap().to_owned());
        let distinct: std::collections::BTreeSet<&String> = tokens.iter().collect();
        assert_eq!(distinct.len(), 4);
        let again = request("a", &window(0, 3_600_000));
        assert_eq!(again["token"], tokens[0].as_str());
        assert_eq!(again["from"], "1970-01-01T00:00:00Z");
        assert_eq!(again["to"], "1970-01-01T01:00:00Z");
    }
}
