//! Progress of exports that run: a line that moves on a terminal, a line now and then elsewhere.

use dynalake_export_job::request::{ExportStatus, RequestRecord};

use crate::waiting::{Teller, minutes};

/// Tells how far a request is.
pub(super) struct Watch {
    teller: Teller,
    usual_ms: Option<i64>,
    told: Option<usize>,
}

impl Watch {
    /// `usual_ms`: how long such an export takes.
    pub(super) fn new(watched: bool, usual_ms: Option<i64>) -> Self {
        Self {
            teller: Teller::new(watched, "asking DynamoDB"),
            usual_ms,
            told: None,
        }
    }

    /// Says how far it is.
    pub(super) fn tell(&mut self, record: &RequestRecord, now_ms: i64) {
        let done = done(record);
        let changed = self.told.replace(done) != Some(done);
        let text = sentence(record, self.usual_ms, now_ms);
        self.teller.tell(&text, changed, now_ms);
    }
}

fn done(record: &RequestRecord) -> usize {
    let is = |status| status == ExportStatus::Completed;
    record.exports.iter().filter(|one| is(one.status)).count()
}

/// How far a request is, in words.
pub(super) fn sentence(record: &RequestRecord, usual_ms: Option<i64>, now_ms: i64) -> String {
    let began = record.exports.iter().filter_map(|one| one.start_ms).min();
    let passed = now_ms.saturating_sub(began.unwrap_or(record.requested_at_ms));
    let estimate = match usual_ms {
        Some(usual) if passed < usual => {
            format!("about {} min left", minutes(usual - passed).max(1))
        }
        Some(usual) => format!("longer than the last one, {} min", minutes(usual)),
        None => "DynamoDB takes 5 min at least".to_owned(),
    };
    format!(
        "{} of {} exports done after {} min, {estimate}",
        done(record),
        record.exports.len(),
        minutes(passed)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waiting::MINUTE_MS;
    use dynalake_export_job::format::DataFormat;
    use dynalake_export_job::request::{Target, Wanted};

    #[test]
    fn the_estimate_is_what_the_last_export_took() {
        let target = Target {
            table_arn: "arn".to_owned(),
            bucket: "b".to_owned(),
            prefix: None,
            bucket_owner: None,
            kms_key: None,
            format: DataFormat::Json,
        };
        let record = RequestRecord::new(target, &[Wanted::Full { at_ms: 0 }], 0);
        let at = |minutes: i64, usual: Option<i64>| {
            sentence(
                &record,
                usual.map(|usual| usual * MINUTE_MS),
                minutes * MINUTE_MS,
            )
        };
        assert_eq!(
            at(2, Some(10)),
            "0 of 1 exports done after 2 min, about 8 min left"
        );
        assert_eq!(
            at(12, Some(10)),
            "0 of 1 exports done after 12 min, longer than the last one, 10 min"
        );
        assert!(at(1, None).ends_with("DynamoDB takes 5 min at least"));
    }
}
