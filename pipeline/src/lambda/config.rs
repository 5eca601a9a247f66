//! Configuration of our functions, from their environment.
//!
//! In: the environment's names and values, as the binary hands them over. Out: a [`Config`], or all
//! problems at once. Nothing else reads the environment; secrets are never shown by `Debug`. A function
//! with variables of its own reads them from the same [`Variables`].

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;

use crate::pipeline::Secrets;
use crate::store::s3;
use crate::store::{Encryption, LakeUri, S3Options, S3Settings, Store};

/// Prefix of all our variables; one that is not listed here is a mistake.
pub const PREFIX: &str = "DYNALAKE_";

/// Where the lake is: `s3://bucket/prefix`, or a folder. Required.
pub const LAKE: &str = "DYNALAKE_LAKE";
/// Folder of the schemas (the one with `lake.toml`). Default: `schemas` in the deployed package,
/// else `/opt/schemas` of a layer.
pub const SCHEMAS: &str = "DYNALAKE_SCHEMAS";
/// Name of the source table, where it differs from `lake.toml` (one name per stage). Records of
/// another table fail the invocation.
pub const SOURCE_TABLE: &str = "DYNALAKE_SOURCE_TABLE";
/// Name of the lake's database, where it differs from `lake.toml` (one name per stage): the dimension
/// of metrics, and where views are published.
pub const DATABASE: &str = "DYNALAKE_DATABASE";
/// Key of `hmac_sha256` columns, at least [`HMAC_KEY_BYTES`] bytes of text. Required when the
/// schemas have such a column. Changing it changes all digests.
pub const HMAC_KEY: &str = "DYNALAKE_HMAC_KEY";
/// Another S3 endpoint than AWS's, `http://host:port` or `https://…`.
pub const S3_ENDPOINT: &str = "DYNALAKE_S3_ENDPOINT";
/// `true`: bucket in the path instead of the host name. Default `false`.
pub const S3_PATH_STYLE: &str = "DYNALAKE_S3_PATH_STYLE";
/// Encryption of what is written: `AES256`, `aws:kms`, or `aws:kms:<key id, ARN or alias>`.
/// Default: what the bucket says.
pub const SSE: &str = "DYNALAKE_SSE";
/// Account id (12 digits) that must own the bucket.
pub const EXPECTED_BUCKET_OWNER: &str = "DYNALAKE_EXPECTED_BUCKET_OWNER";
/// Objects stored at the same time, 1 to [`MAX_PUT_CONCURRENCY`]. Default
/// [`DEFAULT_PUT_CONCURRENCY`].
pub const PUT_CONCURRENCY: &str = "DYNALAKE_PUT_CONCURRENCY";

/// The variables that all our functions take.
pub const VARIABLES: [&str; 10] = [
    LAKE,
    SCHEMAS,
    SOURCE_TABLE,
    DATABASE,
    HMAC_KEY,
    S3_ENDPOINT,
    S3_PATH_STYLE,
    SSE,
    EXPECTED_BUCKET_OWNER,
    PUT_CONCURRENCY,
];

/// A batch rarely makes more objects than it has tables: eight hide the latency of S3 (20 to 60 ms)
/// and stay far below the 1,024 file descriptors of a Lambda.
pub const DEFAULT_PUT_CONCURRENCY: usize = 8;
/// More would only be refused by S3 as too fast.
pub const MAX_PUT_CONCURRENCY: usize = 64;
/// Shortest HMAC key: 128 bits, if it is random.
pub const HMAC_KEY_BYTES: usize = 16;

/// Where a layer is unpacked.
const LAYER_SCHEMAS: &str = "/opt/schemas";

/// A place for objects, the lake for one, with what it takes to reach it.
#[derive(Clone)]
pub enum Place {
    /// A local folder.
    Local(PathBuf),
    /// A bucket, or the part of it under a prefix.
    S3 {
        /// Bucket name.
        bucket: String,
        /// Key prefix without slashes at its ends.
        prefix: String,
        /// Client settings.
        settings: S3Settings,
        /// Options of the bucket.
        options: S3Options,
    },
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(folder) => f.debug_tuple("Local").field(folder).finish(),
            Self::S3 {
                bucket,
                prefix,
                settings,
                options,
            } => f
                .debug_struct("S3")
                .field("bucket", bucket)
                .field("prefix", prefix)
                .field("region", &settings.region)
                .field("endpoint", &settings.endpoint)
                .field("path_style", &settings.path_style)
                .field("options", options)
                .finish_non_exhaustive(),
        }
    }
}

impl Place {
    /// The store.
    pub fn store(&self) -> Store {
        match self {
            Self::Local(folder) => Store::local(folder),
            Self::S3 {
                bucket,
                prefix,
                settings,
                options,
            } => Store::s3(s3::client(settings), bucket, prefix, options.clone()),
        }
    }

    /// How S3 is reached; `None` of a local folder.
    pub fn s3_settings(&self) -> Option<&S3Settings> {
        match self {
            Self::Local(_) => None,
            Self::S3 { settings, .. } => Some(settings),
        }
    }
}

/// What all our functions are configured with.
#[derive(Clone)]
pub struct Config {
    /// Where the lake is.
    pub lake: Place,
    /// Source table that overrides the one of `lake.toml`.
    pub source_table: Option<String>,
    /// Database that overrides the one of `lake.toml`.
    pub database: Option<String>,
    /// Secrets of the deployment.
    pub secrets: Secrets,
    /// Objects stored at the same time.
    pub put_concurrency: usize,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("lake", &self.lake)
            .field("source_table", &self.source_table)
            .field("database", &self.database)
            .field(
                "hmac_key",
                &self.secrets.hmac_key.as_ref().map(|_| "(secret)"),
            )
            .field("put_concurrency", &self.put_concurrency)
            .finish()
    }
}

/// All that is wrong with the configuration, one problem per line, each with its variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub Vec<String>);

impl Config {
    /// Reads the configuration from the environment's names and values.
    ///
    /// # Errors
    /// All problems at once: missing or malformed values, unknown `DYNALAKE_` names.
    pub fn from_vars(
        vars: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut variables = Variables::new(vars, &[]);
        let config = variables.config();
        variables.finish()?;
        config.ok_or(ConfigError(Vec::new()))
    }
}

/// The folders that may hold the schemas; the first one that exists counts.
pub fn schema_folders(vars: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let text = |name: &str| vars.get(name).filter(|value| !value.is_empty());
    if let Some(folder) = text(SCHEMAS) {
        return vec![PathBuf::from(folder)];
    }
    let package = text("LAMBDA_TASK_ROOT").map(|root| PathBuf::from(root).join("schemas"));
    package
        .into_iter()
        .chain([PathBuf::from(LAYER_SCHEMAS)])
        .collect()
}

/// Checks the key of `hmac_sha256` columns and gives its bytes.
///
/// # Errors
/// A sentence without the key.
pub fn parse_hmac_key(text: &str) -> Result<Vec<u8>, String> {
    if text.len() < HMAC_KEY_BYTES {
        return Err(format!(
            "the key has {} bytes; give at least {HMAC_KEY_BYTES} bytes of random text, as from \
             `openssl rand -hex 32`",
            text.len()
        ));
    }
    if text.trim() != text {
        return Err("the key begins or ends with white space; remove it".to_owned());
    }
    Ok(text.as_bytes().to_vec())
}

/// The environment while it is read.
pub struct Variables {
    vars: BTreeMap<String, String>,
    problems: Vec<String>,
}

impl Variables {
    /// The environment of a function that takes [`VARIABLES`] and its `own`; other names that begin like
    /// ours are a problem.
    pub fn new(vars: impl IntoIterator<Item = (String, String)>, own: &[&str]) -> Self {
        let mut variables = Self {
            vars: vars.into_iter().collect(),
            problems: Vec::new(),
        };
        variables.unknown_names(own);
        variables
    }

    /// What all our functions are configured with; `None` after problems.
    pub fn config(&mut self) -> Option<Config> {
        let lake = self.lake();
        let source_table = self.text(SOURCE_TABLE);
        let database = self.database();
        let secrets = Secrets {
            hmac_key: self.hmac_key(),
        };
        let put_concurrency = self.number(
            PUT_CONCURRENCY,
            1..=MAX_PUT_CONCURRENCY,
            DEFAULT_PUT_CONCURRENCY,
        );
        Some(Config {
            lake: lake?,
            source_table,
            database,
            secrets,
            put_concurrency,
        })
    }

    /// Fails if there were problems.
    ///
    /// # Errors
    /// All of them.
    pub fn finish(self) -> Result<(), ConfigError> {
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(ConfigError(self.problems))
        }
    }

    /// Notes a problem of a variable.
    pub fn problem(&mut self, name: &str, problem: impl fmt::Display) {
        self.problems.push(format!("{name}: {problem}"));
    }

    /// A value; one that is set but empty counts as not set, as templates leave it.
    pub fn text(&self, name: &str) -> Option<String> {
        self.vars
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    }

    /// A whole number.
    pub fn number(&mut self, name: &str, range: RangeInclusive<usize>, default: usize) -> usize {
        let Some(text) = self.text(name) else {
            return default;
        };
        if let Ok(number) = text.parse()
            && range.contains(&number)
        {
            return number;
        }
        let (from, to) = range.into_inner();
        self.problem(name, format!("expected a number from {from} to {to}"));
        default
    }

    /// A place that is reached as the lake is; `None` where the variable is not set, or after problems.
    pub fn place(&mut self, name: &str) -> Option<Place> {
        let text = self.text(name)?;
        let (endpoint, path_style) = (self.endpoint(), self.path_style());
        self.place_of(name, &text, endpoint, path_style, S3Options::default())
    }

    fn unknown_names(&mut self, own: &[&str]) {
        let known = [&VARIABLES[..], own].concat();
        let unknown: Vec<String> = self
            .vars
            .keys()
            .filter(|name| name.starts_with(PREFIX) && !known.contains(&name.as_str()))
            .cloned()
            .collect();
        for name in unknown {
            self.problem(
                &name,
                format!("unknown variable; known are {}", known.join(", ")),
            );
        }
    }

    fn lake(&mut self) -> Option<Place> {
        // All of them are read, so that all problems are found.
        let (endpoint, path_style) = (self.endpoint(), self.path_style());
        let options = S3Options {
            encryption: self.encryption(),
            expected_bucket_owner: self.bucket_owner(),
        };
        let Some(text) = self.text(LAKE) else {
            self.problem(LAKE, "not set; give s3://bucket/prefix or a folder");
            return None;
        };
        self.place_of(LAKE, &text, endpoint, path_style, options)
    }

    fn place_of(
        &mut self,
        name: &str,
        text: &str,
        endpoint: Option<String>,
        path_style: bool,
        options: S3Options,
    ) -> Option<Place> {
        match LakeUri::parse(text) {
            Ok(LakeUri::Local(folder)) => Some(Place::Local(folder)),
            Ok(LakeUri::S3 { bucket, prefix }) => {
                let settings = self.s3_settings(endpoint, path_style)?;
                Some(Place::S3 {
                    bucket,
                    prefix,
                    settings,
                    options,
                })
            }
            Err(error) => {
                self.problem(name, error);
                None
            }
        }
    }

    fn database(&mut self) -> Option<String> {
        let text = self.text(DATABASE)?;
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !text.bytes().all(plain) {
            self.problem(DATABASE, "expected letters a to z, digits and `_` only");
        }
        Some(text)
    }

    fn hmac_key(&mut self) -> Option<Vec<u8>> {
        let text = self.text(HMAC_KEY)?;
        parse_hmac_key(&text)
            .map_err(|problem| self.problem(HMAC_KEY, problem))
            .ok()
    }

    fn path_style(&mut self) -> bool {
        match self.text(S3_PATH_STYLE).as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => {
                self.problem(S3_PATH_STYLE, "expected `true` or `false`");
                false
            }
        }
    }

    fn endpoint(&mut self) -> Option<String> {
        let text = self.text(S3_ENDPOINT)?;
        let host = text
            .strip_prefix("http://")
            .or_else(|| text.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.contains(char::is_whitespace)) {
            self.problem(S3_ENDPOINT, "expected http://host:port or https://host");
        }
        Some(text)
    }

    fn s3_settings(&mut self, endpoint: Option<String>, path_style: bool) -> Option<S3Settings> {
        let region = self
            .text("AWS_REGION")
            .or_else(|| self.text("AWS_DEFAULT_REGION"));
        let key = self.text("AWS_ACCESS_KEY_ID");
        let secret = self.text("AWS_SECRET_ACCESS_KEY");
        for (name, missing) in [
            ("AWS_REGION", region.is_none()),
            ("AWS_ACCESS_KEY_ID", key.is_none()),
            ("AWS_SECRET_ACCESS_KEY", secret.is_none()),
        ] {
            if missing {
                self.problem(name, "not set; Lambda sets it for a function with a role");
            }
        }
        let token = self.text("AWS_SESSION_TOKEN");
        let credentials = Credentials::new(key?, secret?, token, None, "environment");
        Some(S3Settings {
            region: region?,
            endpoint,
            path_style,
            credentials: SharedCredentialsProvider::new(credentials),
        })
    }

    fn encryption(&mut self) -> Encryption {
        let Some(text) = self.text(SSE) else {
            return Encryption::BucketDefault;
        };
        match (text.as_str(), text.strip_prefix("aws:kms:")) {
            ("AES256", _) => Encryption::Aes256,
            ("aws:kms", _) => Encryption::Kms { key_id: None },
            (_, Some(key)) if !key.is_empty() => Encryption::Kms {
                key_id: Some(key.to_owned()),
            },
            _ => {
                self.problem(
                    SSE,
                    "expected `AES256`, `aws:kms` or `aws:kms:<key id, ARN or alias>`",
                );
                Encryption::BucketDefault
            }
        }
    }

    fn bucket_owner(&mut self) -> Option<String> {
        let owner = self.text(EXPECTED_BUCKET_OWNER)?;
        if owner.len() != 12 || !owner.bytes().all(|byte| byte.is_ascii_digit()) {
            self.problem(
                EXPECTED_BUCKET_OWNER,
                "expected the 12 digits of an account id",
            );
        }
        Some(owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let owned = vars
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::from_vars(owned).map_err(|ConfigError(problems)| problems)
    }

    const AWS: [(&str, &str); 4] = [
        ("AWS_REGION", "ap-northeast-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "TOPSECRET"),
        ("AWS_SESSION_TOKEN", "TOPTOKEN"),
    ];

    fn with_aws<'a>(vars: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        AWS.into_iter().chain(vars.iter().copied()).collect()
    }

    #[test]
    fn a_local_lake_needs_nothing_else() {
        let config = read(&[(LAKE, "./lake"), ("LAMBDA_TASK_ROOT", "/var/task")]).unwrap();
        assert!(matches!(&config.lake, Place::Local(folder) if folder.as_os_str() == "./lake"));
        assert_eq!(config.put_concurrency, DEFAULT_PUT_CONCURRENCY);
        assert!(config.source_table.is_none() && config.secrets.hmac_key.is_none());
    }

    #[test]
    fn everything_can_be_set() {
        let config = read(&with_aws(&[
            (LAKE, "s3://bucket/lake/"),
            (SCHEMAS, "/schemas/shop"),
            (SOURCE_TABLE, "shop-prod"),
            (HMAC_KEY, "0123456789abcdef"),
            (S3_ENDPOINT, "http://127.0.0.1:8333"),
            (S3_PATH_STYLE, "true"),
            (SSE, "aws:kms:alias/lake"),
            (EXPECTED_BUCKET_OWNER, "123456789012"),
            (PUT_CONCURRENCY, "3"),
        ]))
        .unwrap();
        assert_eq!(config.source_table.as_deref(), Some("shop-prod"));
        assert_eq!(
            config.secrets.hmac_key.as_deref(),
            Some(&b"0123456789abcdef"[..])
        );
        assert_eq!(config.put_concurrency, 3);
        let Place::S3 {
            settings, options, ..
        } = &config.lake
        else {
            panic!("{config:?}")
        };
        assert_eq!(
            options,
            &S3Options {
                encryption: Encryption::Kms {
                    key_id: Some("alias/lake".to_owned())
                },
                expected_bucket_owner: Some("123456789012".to_owned()),
            }
        );
        assert_eq!(settings.region, "ap-northeast-1");
        assert_eq!(settings.endpoint.as_deref(), Some("http://127.0.0.1:8333"));
        assert!(settings.path_style);
        assert_eq!(config.lake.store().address("a/b"), "s3://bucket/lake/a/b");
    }

    #[test]
    fn schemas_are_in_the_package_or_a_layer_unless_said() {
        let folders = |vars: &[(&str, &str)]| {
            let owned = vars
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            schema_folders(&owned.collect())
        };
        let package = ("LAMBDA_TASK_ROOT", "/var/task");
        let default = [
            PathBuf::from("/var/task/schemas"),
            PathBuf::from("/opt/schemas"),
        ];
        assert_eq!(folders(&[package]), default);
        assert_eq!(folders(&[package, (SCHEMAS, "")]), default);
        assert_eq!(
            folders(&[package, (SCHEMAS, "/shop")]),
            [PathBuf::from("/shop")]
        );
    }

    #[test]
    fn encryption_has_three_forms() {
        for (text, expected) in [
            ("", Encryption::BucketDefault),
            ("AES256", Encryption::Aes256),
            ("aws:kms", Encryption::Kms { key_id: None }),
        ] {
            let config = read(&with_aws(&[(LAKE, "s3://bucket"), (SSE, text)])).unwrap();
            let Place::S3 { options, .. } = &config.lake else {
                panic!("{config:?}")
            };
            assert_eq!(options.encryption, expected);
        }
    }

    #[test]
    fn all_problems_come_at_once_each_with_its_variable() {
        let problems = read(&[
            (LAKE, "s3://B"),
            (HMAC_KEY, "short"),
            (S3_ENDPOINT, "127.0.0.1:8333"),
            (S3_PATH_STYLE, "yes"),
            (SSE, "kms"),
            (EXPECTED_BUCKET_OWNER, "me"),
            (PUT_CONCURRENCY, "0"),
            ("DYNALAKE_LAKES", "s3://bucket"),
            ("OTHER", "ignored"),
        ])
        .unwrap_err();
        for name in [
            LAKE,
            HMAC_KEY,
            S3_ENDPOINT,
            S3_PATH_STYLE,
            SSE,
            EXPECTED_BUCKET_OWNER,
            PUT_CONCURRENCY,
            "DYNALAKE_LAKES",
        ] {
            let own = format!("{name}: ");
            assert!(
                problems.iter().any(|problem| problem.starts_with(&own)),
                "{name}"
            );
        }
        assert_eq!(problems.len(), 8, "{problems:?}");
        assert!(!problems.iter().any(|problem| problem.contains("short")));
    }

    #[test]
    fn a_lake_is_required_and_in_s3_so_are_region_and_credentials() {
        assert_eq!(read(&[]).unwrap_err().len(), 1);
        let problems = read(&[(LAKE, "s3://bucket"), ("AWS_REGION", "")]).unwrap_err();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(read(&with_aws(&[(LAKE, "s3://bucket")])).is_ok());
    }

    #[test]
    fn debug_shows_no_secret() {
        let vars = with_aws(&[(LAKE, "s3://bucket"), (HMAC_KEY, "TOPSECRETHMACKEY")]);
        let text = format!("{:?}", read(&vars).unwrap());
        assert!(
            !text.contains("TOP") && !text.contains("84, 79, 80"),
            "{text}"
        );
        assert!(text.contains("ap-northeast-1"), "{text}");
    }
}
