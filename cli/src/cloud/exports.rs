//! DynamoDB's calls about exports, in our terms.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{
    ExportDescription, ExportFormat, ExportStatus as AwsStatus, ExportType, ExportViewType,
    IncrementalExportSpecification, PointInTimeRecoveryStatus, S3SseAlgorithm,
};
use dynalake_export_job::format::DataFormat;
use dynalake_export_job::request::{
    ExportRecord, ExportStatus, ExportView, Failed, Recovery, Seen, TableArn, Target, Wanted,
    Window,
};

use super::millis;
use super::refused::{Refused, refused};
use crate::exit::Outcome;

/// Clocks of two machines differ by less than this.
const CLOCKS_MS: i64 = 10 * 60_000;

/// DynamoDB in one region.
#[derive(Debug)]
pub(crate) struct Exports {
    client: Client,
}

/// An export as `ListExports` and `DescribeExport` tell of it.
#[derive(Debug)]
pub(crate) struct Listed {
    /// State and figures.
    pub(crate) seen: Seen,
    /// What it is of; none where DynamoDB does not say.
    pub(crate) wanted: Option<Wanted>,
    /// `s3://bucket/prefix`.
    pub(crate) place: String,
    /// It holds only part of the items (an export with a filter).
    pub(crate) filtered: bool,
}

impl Exports {
    /// A client for a table's region. `AWS_ENDPOINT_URL_DYNAMODB` and `AWS_ENDPOINT_URL` name
    /// another endpoint than AWS's.
    pub(crate) async fn open(table: &TableArn) -> Outcome<Self> {
        let config = super::config(Some(table.region())).await?;
        Ok(Self {
            client: Client::new(&config),
        })
    }

    /// The range of a table's point-in-time recovery.
    pub(crate) async fn recovery(&self, table: &TableArn) -> Result<Recovery, Refused> {
        let doing = "asking for the table's point-in-time recovery";
        // An ARN is taken for a name.
        let call = self.client.describe_continuous_backups();
        let answer = Box::pin(call.table_name(table.as_str()).send())
            .await
            .map_err(|error| refused(doing, &error))?;
        let recovery = answer
            .continuous_backups_description
            .and_then(|backups| backups.point_in_time_recovery_description);
        Ok(Recovery {
            enabled: recovery.as_ref().is_some_and(|recovery| {
                recovery.point_in_time_recovery_status == Some(PointInTimeRecoveryStatus::Enabled)
            }),
            earliest_ms: millis(
                recovery
                    .as_ref()
                    .and_then(|recovery| recovery.earliest_restorable_date_time.as_ref()),
            ),
            latest_ms: millis(
                recovery
                    .as_ref()
                    .and_then(|recovery| recovery.latest_restorable_date_time.as_ref()),
            ),
        })
    }

    /// Asks for an export. Under a token that is known it is the one that was made before.
    pub(crate) async fn send(
        &self,
        target: &Target,
        export: &ExportRecord,
    ) -> Result<Seen, Refused> {
        let doing = "asking for the export";
        let format = match target.format {
            DataFormat::Json => ExportFormat::DynamodbJson,
            DataFormat::Ion => ExportFormat::Ion,
        };
        let call = self
            .client
            .export_table_to_point_in_time()
            .table_arn(&target.table_arn)
            .client_token(&export.client_token)
            .s3_bucket(&target.bucket)
            .set_s3_prefix(target.prefix.clone())
            .set_s3_bucket_owner(target.bucket_owner.clone())
            .set_s3_sse_algorithm(target.kms_key.as_ref().map(|_| S3SseAlgorithm::Kms))
            .set_s3_sse_kms_key_id(target.kms_key.clone())
            .export_format(format);
        let call = match export.wanted {
            Wanted::Full { at_ms } => call
                .export_type(ExportType::FullExport)
                .export_time(DateTime::from_millis(at_ms)),
            Wanted::Incremental { window, view } => call
                .export_type(ExportType::IncrementalExport)
                .incremental_export_specification(
                    IncrementalExportSpecification::builder()
                        .export_from_time(DateTime::from_millis(window.from_ms))
                        .export_to_time(DateTime::from_millis(window.to_ms))
                        .export_view_type(ExportViewType::from(view.as_str()))
                        .build(),
                ),
        };
        let answer = Box::pin(call.send())
            .await
            .map_err(|error| refused(doing, &error))?;
        let description = answer.export_description;
        let seen = description.as_ref().and_then(seen);
        seen.ok_or_else(|| nothing(doing))
    }

    /// How far an export is.
    pub(crate) async fn look(&self, export_arn: &str) -> Result<Seen, Refused> {
        let doing = "asking how far the export is";
        let description = self.describe(export_arn, doing).await?;
        seen(&description).ok_or_else(|| nothing(doing))
    }

    /// The export that was made under a token at this time or later (milliseconds since 1970-01-01
    /// UTC), if there is one.
    pub(crate) async fn find(
        &self,
        target: &Target,
        export: &ExportRecord,
    ) -> Result<Option<Seen>, Refused> {
        let doing = "looking for the export";
        for arn in self.arns(&target.table_arn).await? {
            // An id begins with the milliseconds at which it was made.
            let made = made_ms(&arn);
            if made.is_some_and(|made| made < export.asked_at_ms - CLOCKS_MS) {
                continue;
            }
            let description = self.describe(&arn, doing).await?;
            if description.client_token.as_deref() == Some(&export.client_token) {
                return Ok(seen(&description));
            }
        }
        Ok(None)
    }

    /// The table's newest exports, so many, newest first, and whether there are more.
    pub(crate) async fn list(
        &self,
        table_arn: &str,
        limit: usize,
    ) -> Result<(Vec<Listed>, bool), Refused> {
        let arns = self.arns(table_arn).await?;
        let mut listed = Vec::new();
        for arn in arns.iter().take(limit) {
            let description = self.describe(arn, "asking about an export").await?;
            let Some(seen) = seen(&description) else {
                continue;
            };
            let bucket = description.s3_bucket.as_deref().unwrap_or("?");
            listed.push(Listed {
                seen,
                wanted: wanted(&description),
                place: match description.s3_prefix.as_deref() {
                    Some(prefix) if !prefix.is_empty() => format!("s3://{bucket}/{prefix}"),
                    _ => format!("s3://{bucket}"),
                },
                filtered: description.filter_specification.is_some(),
            });
        }
        Ok((listed, arns.len() > limit))
    }

    /// ARNs of all exports that DynamoDB remembers of a table, newest first.
    async fn arns(&self, table_arn: &str) -> Result<Vec<String>, Refused> {
        let mut arns = Vec::new();
        let mut next = None;
        loop {
            let call = self.client.list_exports().table_arn(table_arn);
            let page = Box::pin(call.set_next_token(next).send())
                .await
                .map_err(|error| refused("listing the table's exports", &error))?;
            let summaries = page.export_summaries.unwrap_or_default();
            arns.extend(summaries.into_iter().filter_map(|one| one.export_arn));
            next = page.next_token.filter(|token| !token.is_empty());
            if next.is_none() {
                break;
            }
        }
        // Unknown forms last, in an order of their own.
        arns.sort_by(|a, b| (made_ms(b), b).cmp(&(made_ms(a), a)));
        Ok(arns)
    }

    async fn describe(
        &self,
        export_arn: &str,
        doing: &'static str,
    ) -> Result<ExportDescription, Refused> {
        let call = self.client.describe_export().export_arn(export_arn);
        let answer = Box::pin(call.send())
            .await
            .map_err(|error| refused(doing, &error))?;
        answer.export_description.ok_or_else(|| nothing(doing))
    }
}

fn seen(description: &ExportDescription) -> Option<Seen> {
    let status = match description.export_status.as_ref()? {
        AwsStatus::Completed => ExportStatus::Completed,
        AwsStatus::Failed => ExportStatus::Failed,
        // And whatever may come: it is not done.
        _ => ExportStatus::InProgress,
    };
    let count = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
    let failure = (status == ExportStatus::Failed).then(|| {
        let text = |value: &Option<String>, absent: &str| {
            value.clone().unwrap_or_else(|| absent.to_owned())
        };
        Failed {
            code: text(&description.failure_code, "no code"),
            message: text(&description.failure_message, "DynamoDB gives no reason"),
        }
    });
    Some(Seen {
        export_arn: description.export_arn.clone()?,
        status,
        start_ms: millis(description.start_time.as_ref()),
        end_ms: millis(description.end_time.as_ref()),
        items: count(description.item_count),
        billed_bytes: count(description.billed_size_bytes),
        failure,
    })
}

fn wanted(description: &ExportDescription) -> Option<Wanted> {
    if description.export_type == Some(ExportType::IncrementalExport) {
        let specification = description.incremental_export_specification.as_ref()?;
        return Some(Wanted::Incremental {
            window: Window {
                from_ms: millis(specification.export_from_time.as_ref())?,
                to_ms: millis(specification.export_to_time.as_ref())?,
            },
            view: match specification.export_view_type {
                Some(ExportViewType::NewImage) => ExportView::NewImage,
                _ => ExportView::NewAndOldImages,
            },
        });
    }
    let at_ms = millis(description.export_time.as_ref())?;
    Some(Wanted::Full { at_ms })
}

/// When an export was made, by its id: 14 digits of milliseconds, `-`, 8 hex digits.
fn made_ms(export_arn: &str) -> Option<i64> {
    let (_, id) = export_arn.rsplit_once("/export/")?;
    id.split('-').next()?.parse().ok()
}

fn nothing(doing: &'static str) -> Refused {
    Refused {
        doing,
        code: None,
        message: "DynamoDB's answer says nothing of an export".to_owned(),
        transient: true,
    }
}
