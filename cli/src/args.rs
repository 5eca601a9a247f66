//! What can be typed. Only definitions and help texts; meaning is given to them in `commands`.

#[cfg(feature = "cloud")]
mod export;
#[cfg(feature = "cloud")]
mod stack;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

#[cfg(feature = "cloud")]
pub(crate) use self::export::{
    ConversionArgs, DataFileFormat, ExportListArgs, ExportResumeArgs, ExportRunArgs,
    ExportStatusArgs, ViewArg, WaitArgs,
};
#[cfg(feature = "cloud")]
pub(crate) use self::stack::{BackfillArgs, PublishArgs, StatusArgs};

/// Typed lake tables, one per entity, next to a DynamoDB single table.
#[derive(Debug, Parser)]
#[command(
    name = "dynalake",
    version,
    about = "Typed lake tables, one per entity, next to a DynamoDB single table",
    long_about = "Typed lake tables, one per entity, next to a DynamoDB single table.\n\n\
        A lake is a folder (./lake) or an S3 location (s3://bucket/prefix); every command takes \
        either. Data goes to stdout, everything else to stderr.",
    propagate_version = true,
    after_help = "Exit codes: 0 ok, 1 findings (problems in schemas or data), 2 usage or \
        configuration, 3 remote failure, 130 interrupted.\n\n\
        Begin with `dynalake demo`: it needs no account and no network."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Build a small lake from made-up data, through the real code
    Demo(DemoArgs),
    /// Propose schemas from a table's items: entity types, key templates, column types
    Infer(InferArgs),
    /// Check, lock and show schema folders
    #[command(subcommand)]
    Schemas(SchemasCommand),
    /// Table exports (point-in-time exports to S3)
    #[command(subcommand)]
    Export(ExportCommand),
    /// Complete states that a lake's tables are read from
    #[command(
        subcommand,
        after_help = "A baseline is the complete state of the source table at one instant: an export \
            that was converted and committed. Readers take the newest one and what changed since; \
            older ones serve `current --as-of` and queries of `<table>_snapshot`."
    )]
    Baselines(BaselinesCommand),
    /// Merge the small change objects of closed days into few large ones
    Compact(CompactArgs),
    /// Run stream events through the same code as the stream Lambda
    Replay(ReplayArgs),
    /// What is in a lake: tables, days, exports, objects, rows, bytes, last change
    Tables(TablesArgs),
    /// The rows of a table as it is now, or was at an instant
    Current(CurrentArgs),
    /// Compare what the lake says with what an export says (exit 1 when they differ)
    Audit(AuditArgs),
    /// Rows of a table's snapshots and changes, as they were written
    Show(ShowArgs),
    /// Print the views that give a lake's tables as they are now: for Athena or DuckDB
    Sql(SqlArgs),
    /// Write lake.sql, with which DuckDB opens the lake
    Duckdb(DuckdbArgs),
    /// What is in one Parquet object: schema, row groups, encodings, footer
    Inspect(InspectArgs),
    /// Records that could not become rows
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
    /// Print the CloudFormation template of a deployment: functions, workflow, alarms, tables
    Template(TemplateArgs),
    /// Make the zips of a deployment: the schemas as a layer, and the functions
    Bundle(BundleArgs),
    /// What a deployment costs a month, by service, with the arithmetic
    Estimate(EstimateArgs),
    /// How a deployed stack does: lag, exports, audit, quarantine, alarms (exit 1 when something needs
    /// attention)
    #[cfg(feature = "cloud")]
    Status(StatusArgs),
    /// Have a deployed stack export its table and take it into the lake, and follow that
    #[cfg(feature = "cloud")]
    Backfill(BackfillArgs),
    /// Have a deployed stack publish its views again
    #[cfg(feature = "cloud")]
    Publish(PublishArgs),
}

/// Output of commands that report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs
    Json,
}

/// Output of commands that print rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// For people
    Table,
    /// An array of objects, one per line; decimals and other exact values as strings
    Json,
    /// RFC 4180, with a header line
    Csv,
}

/// How S3 is reached. Credentials and region come from the usual AWS places.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "S3 options")]
pub(crate) struct S3Args {
    /// Endpoint to use instead of AWS's own (else `AWS_ENDPOINT_URL`)
    #[arg(long, value_name = "URL", env = "AWS_ENDPOINT_URL_S3")]
    pub(crate) endpoint: Option<String>,
    /// Put the bucket into the path instead of the host name, as most S3-compatible servers need
    #[arg(long)]
    pub(crate) path_style: bool,
    /// Refuse a bucket that another account owns
    #[arg(long, value_name = "ACCOUNT_ID")]
    pub(crate) expected_bucket_owner: Option<String>,
    /// Server-side encryption of what is written: `AES256`, `aws:kms` or `aws:kms:KEY`
    /// (else the bucket's default)
    #[arg(long, value_name = "SSE")]
    pub(crate) sse: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake demo\n  dynalake demo /tmp/shop --force")]
pub(crate) struct DemoArgs {
    /// Folder to build; an earlier demo in it is replaced
    #[arg(default_value = "demo-lake")]
    pub(crate) dir: PathBuf,
    /// Build in a folder that is not empty and not a demo
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  dynalake infer s3://bucket/AWSDynamoDB/<id>/ --out schemas/orders\n  \
        dynalake infer items.jsonl --out schemas/orders --explain"
)]
pub(crate) struct InferArgs {
    /// An export's folder, or a file or folder of items: lines in DynamoDB JSON or Ion, plain or
    /// gzipped, or stream events
    pub(crate) source: String,
    /// Schema folder to write; its name becomes the database's
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Partition key attribute (else guessed from the items)
    #[arg(long, value_name = "NAME")]
    pub(crate) partition_key: Option<String>,
    /// Sort key attribute; leave out for a table without one
    #[arg(long, value_name = "NAME", requires = "partition_key")]
    pub(crate) sort_key: Option<String>,
    /// Write into a folder that holds schema files; those of the same names are replaced
    #[arg(long)]
    pub(crate) force: bool,
    /// Print how it was decided, and the alternatives that were turned down
    #[arg(long)]
    pub(crate) explain: bool,
    /// Output format of the report
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SchemasCommand {
    /// Find all problems of a schema folder at once (exit 1), and compare it with its lock
    #[command(after_help = "Example:\n  dynalake schemas check schemas/ecommerce")]
    Check(SchemasCheckArgs),
    /// Write lake.lock: field ids and the versions that later changes are compared with
    #[command(after_help = "Example:\n  dynalake schemas lock schemas/ecommerce")]
    Lock(SchemasLockArgs),
    /// Show entities and columns with their Arrow and Athena types
    #[command(
        after_help = "Examples:\n  dynalake schemas show schemas/ecommerce\n  \
        dynalake schemas show schemas/ecommerce --format json"
    )]
    Show(SchemasShowArgs),
    /// Print Athena's CREATE EXTERNAL TABLE for the changes and snapshot tables
    #[command(after_help = "Example:\n  dynalake schemas ddl schemas/ecommerce \
        --location s3://bucket/lake")]
    Ddl(SchemasDdlArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SchemasCheckArgs {
    /// Schema folder (the one that holds lake.toml)
    pub(crate) dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SchemasLockArgs {
    /// Schema folder (the one that holds lake.toml)
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct SchemasShowArgs {
    /// Schema folder (the one that holds lake.toml)
    pub(crate) dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct SchemasDdlArgs {
    /// Schema folder (the one that holds lake.toml)
    pub(crate) dir: PathBuf,
    /// Lake location the tables point at
    #[arg(long, value_name = "s3://BUCKET/PREFIX")]
    pub(crate) location: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Turn a full export into snapshot tables and commit them as a baseline, or roll the last baseline
    /// forward by incremental ones; interrupted, it continues where it was
    #[command(after_help = "Examples:\n  \
        dynalake export convert s3://bucket/AWSDynamoDB/01234567890123-abcdef01/ \
        --lake s3://bucket/lake --schemas schemas/ecommerce\n  \
        dynalake export convert ./export --lake ./lake --schemas schemas/ecommerce --format json\n  \
        dynalake export convert ./AWSDynamoDB/0179*-* --lake ./lake --schemas schemas/ecommerce")]
    Convert(ConvertArgs),
    /// Ask DynamoDB for an export, wait for it, convert and commit it
    #[cfg(feature = "cloud")]
    Run(ExportRunArgs),
    /// Requests made from a lake, and how far DynamoDB is with them
    #[cfg(feature = "cloud")]
    Status(ExportStatusArgs),
    /// Go on with a request that was interrupted; no second export is made
    #[cfg(feature = "cloud")]
    Resume(ExportResumeArgs),
    /// Exports of a table that DynamoDB remembers
    #[cfg(feature = "cloud")]
    List(ExportListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// One full export, or one or several incremental ones in any order: a folder or
    /// `s3://…/AWSDynamoDB/<id>/`, or its manifest-summary.json
    #[arg(required = true, value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Lake to write to: a folder or `s3://bucket/prefix`
    #[arg(long, value_name = "URI")]
    pub(crate) lake: String,
    /// Schema folder
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: PathBuf,
    /// Data files converted at the same time (else one per processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
    /// Memory for decoded rows, in MiB; the process needs about three times as much
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) memory_mb: Option<u32>,
    /// Size that objects aim at, in MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) target_mb: Option<u32>,
    /// Folder for objects under construction (else the system's temporary folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    /// Start over where the lake holds this export converted with other schemas, or the baseline that
    /// these exports were rolled into: until that is done readers take the baseline before it
    #[arg(long)]
    pub(crate) replace: bool,
    /// Leave the tables unpublished: readers do not take them until the same command is run without
    /// this
    #[arg(long)]
    pub(crate) no_commit: bool,
    /// Output format of the report
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BaselinesCommand {
    /// List the committed baselines, newest first, and who holds the lock
    #[command(after_help = "Example:\n  dynalake baselines list ./lake")]
    List(BaselinesListArgs),
    /// Remove one baseline with its rows, or what a conversion left that was never committed
    #[command(after_help = "Example:\n  dynalake baselines drop ./lake 20260501T000000Z")]
    Drop(BaselinesDropArgs),
    /// Remove old baselines; the current one and those a running query may read stay
    #[command(
        after_help = "Examples:\n  dynalake baselines retain ./lake --newest 3\n  \
        dynalake baselines retain ./lake --days 30 --dry-run"
    )]
    Retain(BaselinesRetainArgs),
    /// Remove the lock that a dead process left
    #[command(after_help = "Example:\n  dynalake baselines unlock ./lake")]
    Unlock(BaselinesUnlockArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BaselinesListArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct BaselinesDropArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Baseline (YYYYMMDDTHHMMSSZ), as `dynalake baselines list` shows it
    pub(crate) label: String,
    /// Remove even the current baseline: readers fall back to the one before it, or to changes alone
    #[arg(long)]
    pub(crate) force: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct BaselinesRetainArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Keep the newest baselines, so many
    #[arg(long, value_name = "N", conflicts_with = "days", required_unless_present = "days",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) newest: Option<u16>,
    /// Keep those of the last so many days, and the one that was current at their beginning
    #[arg(long, value_name = "DAYS")]
    pub(crate) days: Option<u32>,
    /// Say what would be removed and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct BaselinesUnlockArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake compact ./lake\n  \
    dynalake compact s3://bucket/lake --before 2026-05-01 --dry-run\n  \
    dynalake compact s3://bucket/lake --schemas schemas/ecommerce\n\n\
    Give the schemas where they have changed since the baseline: days with columns that the schemas \
    do not know are left as they are, and said.\n\n\
    Readers find the same rows before, during and after. What was merged is deleted by a later run, \
    after the grace time: run it once a day.")]
pub(crate) struct CompactArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Schema folder (else the schemas of the lake's current baseline)
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: Option<PathBuf>,
    /// Only days before this one (else before today, UTC)
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) before: Option<String>,
    /// Size that objects aim at, in MiB; objects of half of it and more are left as they are
    #[arg(long, value_name = "MIB", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) target_mb: u32,
    /// Hours for which merged objects stay; longer than any query runs
    #[arg(long, value_name = "HOURS", default_value_t = 24,
          value_parser = clap::value_parser!(u32).range(0..=8760))]
    pub(crate) grace_hours: u32,
    /// Memory for open objects, in MiB; the process needs some 300 more
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) memory_mb: Option<u32>,
    /// Folder for temporary files, with room for eight times the target (else the system's)
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    /// Say what would be merged and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format of the report
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  dynalake replay event.json --lake ./lake --schemas schemas/ecommerce\n  \
    dynalake replay --failed --stack orders-lake --schemas schemas/ecommerce\n  \
    dynalake replay --failed s3://bucket/aws/lambda --lake s3://bucket/lake \
    --schemas schemas/ecommerce\n\n\
    Batches that the event source mapping gave up lie in its on-failure bucket. One that was replayed \
    moves to `replayed/` beside the others; broken off anywhere, the next run writes the same objects \
    again and goes on."
)]
pub(crate) struct ReplayArgs {
    /// Files with one DynamoDB stream event each, as Lambda gets it (`-` is stdin)
    #[arg(required_unless_present = "failed", value_name = "EVENT.json")]
    pub(crate) events: Vec<PathBuf>,
    /// Batches that were given up, in place of files: a folder or `s3://bucket/prefix` (else the
    /// stack's)
    #[arg(long, value_name = "URI", num_args = 0..=1, conflicts_with = "events")]
    #[expect(
        clippy::option_option,
        reason = "not given, given alone, given with a place"
    )]
    pub(crate) failed: Option<Option<String>>,
    /// Name of the stack whose batches, lake and table these are
    #[cfg(feature = "cloud")]
    #[arg(
        long,
        value_name = "NAME",
        requires = "failed",
        conflicts_with = "lake"
    )]
    pub(crate) stack: Option<String>,
    /// Lake to write to: a folder or `s3://bucket/prefix`
    #[arg(long, value_name = "URI")]
    #[cfg_attr(feature = "cloud", arg(required_unless_present = "stack"))]
    #[cfg_attr(not(feature = "cloud"), arg(required = true))]
    pub(crate) lake: Option<String>,
    /// Schema folder
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: PathBuf,
    /// Output format of the summary
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake tables ./lake\n  \
    dynalake tables s3://bucket/lake --format json")]
pub(crate) struct TablesArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake audit ./lake\n  \
    dynalake audit ./lake --against 20260501T000000Z --format json\n\n\
    What is compared, item by item: the baseline before that export and the changes up to its time, \
    with the export. Missing are items of the export that the lake does not have, extra those that \
    it has and the export does not; too near to say are those that were changed within five minutes \
    of the export's time.\n\n\
    `export convert` does it by itself at each new baseline. The report is kept in the lake, under \
    state/audits/.")]
pub(crate) struct AuditArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Label of a converted export, committed or not (else the current baseline)
    #[arg(long, value_name = "LABEL")]
    pub(crate) against: Option<String>,
    /// Schema folder (else the schemas that the export was converted with)
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: Option<PathBuf>,
    /// Items that are not equal to keep in the report per table, by the hash of their key
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) samples: usize,
    /// Folder for temporary files (else the system's temporary folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

/// Output of `current`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CurrentFormat {
    /// For people
    Table,
    /// An array of objects, one per line; decimals and other exact values as strings
    Json,
    /// RFC 4180, with a header line
    Csv,
    /// One Parquet file, sorted by key (with `--output`)
    Parquet,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake current ./lake orders\n  \
    dynalake current ./lake orders --as-of 2026-05-01T00:00:00Z --format csv > orders.csv\n  \
    dynalake current s3://bucket/lake orders --format parquet --output orders.parquet")]
pub(crate) struct CurrentArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Table name, as `dynalake tables` lists it
    pub(crate) table: String,
    /// The table as it was then: `2026-05-01T00:00:00Z`, or seconds or milliseconds since 1970
    #[arg(long, value_name = "TIME")]
    pub(crate) as_of: Option<String>,
    /// Schema folder, for the columns and their types (else what the current baseline's schemas and
    /// the table's files have together)
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: Option<PathBuf>,
    /// Rows that a table for people shows; 0 shows all. Other formats always have all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: CurrentFormat,
    /// File to write with `--format parquet`
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Memory for merging, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(16..=1_048_576))]
    pub(crate) memory_mb: u32,
    /// Folder for temporary files (else the system's temporary folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) spool: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake show ./lake orders\n  \
    dynalake show ./lake orders --where status=paid --columns order_id,total\n  \
    dynalake show ./lake orders --changes --limit 5\n  \
    dynalake show ./lake orders --limit 0 --format csv > orders.csv")]
pub(crate) struct ShowArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Table name, as `dynalake tables` lists it
    pub(crate) table: String,
    /// Rows to print; 0 prints all. Of changes, the newest ones
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Only rows whose column equals this value (repeat: all must hold)
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(crate) conditions: Vec<String>,
    /// Show changes (one row per change, oldest first) instead of the current baseline
    #[arg(long)]
    pub(crate) changes: bool,
    /// Show the snapshot of this export (YYYYMMDDTHHMMSSZ), committed or not
    #[arg(long, value_name = "LABEL", conflicts_with = "changes")]
    pub(crate) export: Option<String>,
    /// Columns to print, in this order
    #[arg(long, value_name = "A,B,…", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: RowFormat,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

/// Whose SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Amazon Athena, engine version 3, over the tables of `schemas ddl`
    Athena,
    /// DuckDB, over the lake's files
    Duckdb,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    dynalake sql s3://bucket/lake --engine athena\n  \
    dynalake sql ./lake --engine duckdb\n  \
    dynalake sql --schemas schemas/ecommerce --engine athena\n\n\
    Per table `x`: `x` (as it is now), `x_history` (one row per change), `x_flat` (as it is now, \
    without nested columns); for DuckDB also `x_changes`, `x_snapshot` and `quarantine`, which are \
    tables in Athena.")]
pub(crate) struct SqlArgs {
    /// Lake whose current baseline the views read: a folder or `s3://bucket/prefix`. Without it
    /// (Athena only) they read changes alone
    pub(crate) lake: Option<String>,
    /// Schema folder (else the schemas of the lake's current baseline)
    #[arg(long, value_name = "DIR", required_unless_present = "lake")]
    pub(crate) schemas: Option<PathBuf>,
    /// Database of the views in Athena, where a stage has one of its own (else that of the schemas)
    #[arg(long, value_name = "NAME", env = "DYNALAKE_DATABASE")]
    pub(crate) database: Option<String>,
    /// Engine to write for
    #[arg(long, value_enum)]
    pub(crate) engine: Engine,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    dynalake duckdb ./lake && duckdb -init ./lake/lake.sql\n  \
    dynalake duckdb s3://bucket/lake --output lake.sql\n\n\
    `export convert` and `baselines` keep a lake.sql in the lake up to date. After a change of the \
    schemas write it anew, with `--schemas DIR`.")]
pub(crate) struct DuckdbArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Schema folder (else the schemas of the lake's current baseline)
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: Option<PathBuf>,
    /// Write this file instead of lake.sql in the lake
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    dynalake inspect ./lake/changes/orders/dt=2026-05-01/<object>.parquet\n  \
    dynalake inspect s3://bucket/lake/snapshot/orders/export=20260501T000000Z/<object>.parquet\n  \
    dynalake inspect changes/orders/dt=2026-05-01/<object>.parquet --lake ./lake")]
pub(crate) struct InspectArgs {
    /// Parquet object: a file, `s3://bucket/key`, or with --lake a key of that lake
    pub(crate) object: String,
    /// Lake the object's key belongs to
    #[arg(long, value_name = "URI")]
    pub(crate) lake: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// Count quarantined records per object and reason, newest first
    #[command(after_help = "Example:\n  dynalake quarantine list ./lake")]
    List(QuarantineListArgs),
    /// Show quarantined records: why, where in the record, from where
    #[command(after_help = "Examples:\n  dynalake quarantine show ./lake\n  \
        dynalake quarantine show ./lake --reason mismatch --payload --format json")]
    Show(QuarantineShowArgs),
    /// Try quarantined records again, after the schemas were repaired
    #[command(after_help = "Examples:\n  \
        dynalake quarantine replay ./lake --schemas schemas/ecommerce --dry-run\n  \
        dynalake quarantine replay ./lake --schemas schemas/ecommerce")]
    Replay(QuarantineReplayArgs),
}

#[derive(Debug, Args)]
pub(crate) struct QuarantineListArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct QuarantineShowArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Only these quarantine objects, or those whose key begins so (`quarantine/dt=2026-05-01/`)
    pub(crate) objects: Vec<String>,
    /// Only records with this reason code
    #[arg(long, value_name = "CODE")]
    pub(crate) reason: Option<String>,
    /// Records to print; 0 prints all
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print the records themselves, too: they hold customers' data in clear
    #[arg(long)]
    pub(crate) payload: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
pub(crate) struct QuarantineReplayArgs {
    /// Lake: a folder or `s3://bucket/prefix`
    pub(crate) lake: String,
    /// Only these quarantine objects, or those whose key begins so (`quarantine/dt=2026-05-01/`)
    pub(crate) objects: Vec<String>,
    /// Schema folder
    #[arg(long, value_name = "DIR")]
    pub(crate) schemas: PathBuf,
    /// Say what would happen and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  dynalake template schemas/ecommerce --out template.yaml\n  \
    dynalake template schemas/ecommerce | less\n\n\
    infra/deploy.sh deploys it; docs/deploy.md tells how other tools can."
)]
pub(crate) struct TemplateArgs {
    /// Schema folder (the one that holds lake.toml)
    pub(crate) dir: PathBuf,
    /// File to write (else stdout)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  dynalake bundle schemas/ecommerce --artifacts target/release \
    --out bundle\n\n\
    Names hold a digest of the contents: the same schemas and binaries give the same names and bytes."
)]
pub(crate) struct BundleArgs {
    /// Schema folder (the one that holds lake.toml)
    pub(crate) dir: PathBuf,
    /// Folder with the binaries `stream` and `export-job`, or with folders of these names that hold a
    /// `bootstrap`
    #[arg(long, value_name = "DIR")]
    pub(crate) artifacts: PathBuf,
    /// Folder to write the zips to; made where it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    dynalake estimate --changes-per-second 4 --item-bytes 1000 --table-gb 50 --entities 8\n  \
    dynalake estimate --changes-per-second 500 --item-bytes 2000 --table-gb 2000 --entities 20 \\\n    \
    --exports-per-month 1 --incremental-per-month 30 --prices my-prices.toml --format json\n\n\
    The price list is infra/prices.toml, dated; copy and edit it for another region, discounts or \
    parameters of the stack. Check prices before you decide anything by them.")]
pub(crate) struct EstimateArgs {
    /// Changes of items a second, on average
    #[arg(long, value_name = "N", value_parser = amount)]
    pub(crate) changes_per_second: f64,
    /// Average size of an item
    #[arg(long, value_name = "BYTES", value_parser = amount)]
    pub(crate) item_bytes: f64,
    /// Size of the table
    #[arg(long, value_name = "GB", value_parser = amount)]
    pub(crate) table_gb: f64,
    /// Entities in the schemas
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) entities: u32,
    /// Full exports a month
    #[arg(long, value_name = "N", default_value = "1", value_parser = amount)]
    pub(crate) exports_per_month: f64,
    /// Incremental exports a month (30 where they are scheduled)
    #[arg(long, value_name = "N", default_value = "0", value_parser = amount)]
    pub(crate) incremental_per_month: f64,
    /// GB that queries read a month
    #[arg(long, value_name = "GB", default_value = "0", value_parser = amount)]
    pub(crate) queried_gb: f64,
    /// Price list (else the one that comes with the command)
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}

/// A number that is zero or greater.
fn amount(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if amount.is_finite() && amount >= 0.0 {
        Ok(amount)
    } else {
        Err("must be 0 or greater".to_owned())
    }
}
