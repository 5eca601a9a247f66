//! `dynalake export run`, `status`, `resume`, `list`: the commands that speak to DynamoDB.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Format, S3Args};

/// Form of an export's data files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFileFormat {
    /// DynamoDB JSON
    Json,
    /// Amazon Ion; the rows are the same
    Ion,
}

/// What an incremental export tells of each changed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewArg {
    /// As it is at the window's end; all that a lake needs
    New,
    /// And as it was at the window's beginning
    NewAndOld,
}

/// How finished exports are converted; the same as of `export convert`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Conversion")]
pub(crate) struct ConversionArgs {
    /// Data files converted at the same time (else one per processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
    /// Memory for decoded rows, in MiB; the process needs about three times as much
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) memory_mb: Option<u32>,
    /// Folder for objects under construction (else the system's temporary folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    /// Leave the tables unpublished: readers do not take them until `export resume` is run without
    /// this
    #[arg(long)]
    pub(crate) no_commit: bool,
    /// Output format of the report
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) report: Format,
}

/// How DynamoDB is asked how far it is.
#[derive(Debug, Clone, Args)]
pub(crate) struct WaitArgs {
    /// Do not wait: `export resume` goes on later
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Seconds between looks at the exports (else 10 at first, then growing to 60)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(0..=3600))]
    pub(crate) poll_seconds: Option<u16>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    dynalake export run --table-arn arn:aws:dynamodb:eu-west-1:123456789012:table/app \\\n    \
    --bucket exports --lake s3://bucket/lake --schemas schemas/ecommerce\n  \
    dynalake export run --table-arn ARN --bucket exports --incremental \\\n    \
    --lake s3://bucket/lake --schemas schemas/ecommerce\n\n\
    Interrupted at any point, `dynalake export resume` goes on: no second export is made.")]
pub(crate) struct ExportRunArgs {
    /// ARN of the table; its region is the one that is asked
    #[arg(long, value_name = "ARN")]
    pub(crate) table_arn: String,
    /// Bucket to export to
    #[arg(long)]
    pub(crate) bucket: String,
    /// What keys in the bucket begin with
    #[arg(long)]
    pub(crate) prefix: Option<String>,
    /// Export only what changed since the lake's last baseline, in as many windows as it takes
    #[arg(long)]
    pub(crate) incremental: bool,
    /// Of each changed item: as it is at the end, or also as it was before
    #[arg(long, value_enum, default_value = "new", requires = "incremental")]
    pub(crate) view: ViewArg,
    /// Begin of the changes (else the last baseline's time), to fill a gap: a time as of
    /// `--export-time`
    #[arg(long, value_name = "TIME", requires = "incremental")]
    pub(crate) from: Option<String>,
    /// End of the changes (else some 5 minutes ago)
    #[arg(long, value_name = "TIME", requires = "incremental")]
    pub(crate) to: Option<String>,
    /// The table as it was then (else the latest possible, some 5 minutes ago):
    /// `2026-05-01T00:00:00Z`, or seconds or milliseconds since 1970
    #[arg(long, value_name = "TIME", conflicts_with = "incremental")]
    pub(crate) export_time: Option<String>,
    /// Form of the data files
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) format: DataFileFormat,
    /// KMS key that encrypts the export: id, ARN or alias (else the bucket's default encryption)
    #[arg(long, value_name = "KEY")]
    pub(crate) kms_key: Option<String>,
    /// Account that owns the bucket, where it is not the table's
    #[arg(long, value_name = "ACCOUNT_ID")]
    pub(crate) bucket_owner: Option<String>,
    /// Lake to write to: a folder or `s3://bucket/prefix`
    #[arg(long, value_name = "URI")]
    pub(crate) lake: String,
    /// Schema folder
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: PathBuf,
    /// Ask for another export although an earlier request is not finished
    #[arg(long)]
    pub(crate) anew: bool,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    dynalake export resume s3://bucket/lake --schemas schemas/ecommerce\n  \
    dynalake export resume ./lake 20260501T000000Z-0a1b2c3d --schemas schemas/ecommerce")]
pub(crate) struct ExportResumeArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Request, as `dynalake export status` shows it (else the only unfinished one)
    pub(crate) request: Option<String>,
    /// Schema folder
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: PathBuf,
    #[command(flatten)]
    pub(crate) wait: WaitArgs,
    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake export status ./lake\n  \
    dynalake export status s3://bucket/lake 20260501T000000Z-0a1b2c3d --format json")]
pub(crate) struct ExportStatusArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Request (else all)
    pub(crate) request: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    dynalake export list --table-arn arn:aws:dynamodb:eu-west-1:123456789012:table/app\n  \
    dynalake export list --table-arn ARN --lake s3://bucket/lake --format json")]
pub(crate) struct ExportListArgs {
    /// ARN of the table
    #[arg(long, value_name = "ARN")]
    pub(crate) table_arn: String,
    /// Lake in which to look which of them it has
    #[arg(long, value_name = "URI")]
    pub(crate) lake: Option<String>,
    /// Newest exports to show; 0 shows all that DynamoDB remembers (90 days)
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}
