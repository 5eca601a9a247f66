//! `dynalake backfill`, `status`, `publish`: the commands that speak to a deployed stack.

use clap::Args;

use super::{Format, S3Args};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake backfill --stack orders-lake\n  \
    dynalake backfill --stack orders-lake --incremental --no-wait\n  \
    dynalake backfill --stack orders-lake --resume\n\n\
    The export runs in AWS: interrupted, this command only stops to look, and `--follow` looks again. \
    Asking twice makes one export.")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct BackfillArgs {
    /// Name of the stack
    #[arg(long, value_name = "NAME")]
    pub(crate) stack: String,
    /// Export only what changed since the lake's last baseline
    #[arg(long, conflicts_with_all = ["follow", "resume"])]
    pub(crate) incremental: bool,
    /// Start nothing: follow the export that runs
    #[arg(long, conflicts_with = "no_wait")]
    pub(crate) follow: bool,
    /// Go on with the files of the last export, which failed: no second export is made, and what was
    /// converted is not converted again
    #[arg(long, conflicts_with = "follow")]
    pub(crate) resume: bool,
    /// Do not wait: `--follow` does, later
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Seconds between looks (else 5 at first, then growing to 30)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(0..=3600))]
    pub(crate) poll_seconds: Option<u16>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  dynalake status --stack orders-lake\n  \
    dynalake status --stack orders-lake --format json\n\n\
    Exit 1 when something needs attention. What these credentials may not see is shown as unknown, and \
    is no reason to fail.")]
pub(crate) struct StatusArgs {
    /// Name of the stack
    #[arg(long, value_name = "NAME")]
    pub(crate) stack: String,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) s3: S3Args,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dynalake publish --stack orders-lake\n\n\
    The views hold the newest baseline as literals. Each export publishes them by itself; by hand it is \
    needed where somebody removed one.")]
pub(crate) struct PublishArgs {
    /// Name of the stack
    #[arg(long, value_name = "NAME")]
    pub(crate) stack: String,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: Format,
}
