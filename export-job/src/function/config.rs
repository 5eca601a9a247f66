//! Variables that this function takes besides those of all our functions.

use dynalake_pipeline::lambda::{Config, ConfigError, Place, Variables};

/// Where work lists are written, `s3://bucket/prefix` or a folder. `plan` needs it.
pub const WORK: &str = "DYNALAKE_WORK";
/// Decompressed megabytes of a data file per part, 1 to 65536. The disk holds the objects of one part.
/// Default 1024.
pub const PART_MB: &str = "DYNALAKE_PART_MB";
/// Megabytes at which an object is closed, 1 to 4096. Default 256.
pub const OBJECT_MB: &str = "DYNALAKE_OBJECT_MB";
/// Parts of a data file that one invocation converts at most. Default: as many as its time allows.
pub const PARTS_PER_CALL: &str = "DYNALAKE_PARTS_PER_CALL";

/// The variables of this function alone.
pub const VARIABLES: [&str; 4] = [WORK, PART_MB, OBJECT_MB, PARTS_PER_CALL];

/// Everything that is configured.
pub(super) struct WorkerConfig {
    pub(super) config: Config,
    pub(super) work: Option<Place>,
    pub(super) part_bytes: u64,
    pub(super) object_mb: usize,
    pub(super) parts_per_call: usize,
}

impl WorkerConfig {
    pub(super) fn from_vars(
        vars: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut read = Variables::new(vars, &VARIABLES);
        let config = read.config();
        let work = read.place(WORK);
        let part_mb = read.number(PART_MB, 1..=65_536, 1024);
        let object_mb = read.number(OBJECT_MB, 1..=4096, 256);
        let parts_per_call = read.number(PARTS_PER_CALL, 1..=usize::MAX, usize::MAX);
        read.finish()?;
        let config = config.ok_or(ConfigError(Vec::new()))?;
        Ok(Self {
            config,
            work,
            part_bytes: u64::try_from(part_mb).unwrap_or(u64::MAX) << 20,
            object_mb,
            parts_per_call,
        })
    }
}
