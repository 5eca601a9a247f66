//! Opens lakes and other places that hold objects: local folders and S3.

use std::path::Path;

use aws_config::BehaviorVersion;
use aws_sdk_s3::Client;
use dynalake_pipeline::store::{Encryption, LakeUri, S3Options, S3Settings, Store, s3};

use crate::args::S3Args;
use crate::exit::{Failure, Outcome};

/// Opens a lake for reading: a local folder must be there.
pub(crate) async fn existing(uri: &str, s3: &S3Args) -> Outcome<Store> {
    let parsed = parse(uri)?;
    if let LakeUri::Local(path) = &parsed {
        require_folder(path)?;
    }
    open(parsed, s3).await
}

/// Opens a lake for writing: a local folder is made with the first object.
pub(crate) async fn writable(uri: &str, s3: &S3Args) -> Outcome<Store> {
    let parsed = parse(uri)?;
    if let LakeUri::Local(path) = &parsed
        && path.exists()
    {
        require_folder(path)?;
    }
    open(parsed, s3).await
}

/// Reads what was typed as the place of a lake.
pub(crate) fn parse(uri: &str) -> Outcome<LakeUri> {
    LakeUri::parse(uri).map_err(|error| {
        Failure::usage(error)
            .hint("a lake is a folder (`./lake`) or an S3 location (`s3://bucket/prefix`)")
    })
}

fn require_folder(path: &Path) -> Outcome<()> {
    if path.is_dir() {
        return Ok(());
    }
    let what = if path.exists() {
        "is not a folder"
    } else {
        "does not exist"
    };
    Err(Failure::usage(format!("`{}` {what}", path.display()))
        .hint("give the folder of a lake; `dynalake demo` makes one to look at"))
}

async fn open(uri: LakeUri, s3: &S3Args) -> Outcome<Store> {
    match uri {
        LakeUri::Local(path) => Ok(Store::local(path)),
        LakeUri::S3 { bucket, prefix } => {
            let options = S3Options {
                encryption: encryption(s3.sse.as_deref())?,
                expected_bucket_owner: s3.expected_bucket_owner.clone(),
            };
            Ok(Store::s3(client(s3).await?, bucket, &prefix, options))
        }
    }
}

fn encryption(text: Option<&str>) -> Outcome<Encryption> {
    match text {
        None => Ok(Encryption::BucketDefault),
        Some("AES256") => Ok(Encryption::Aes256),
        Some("aws:kms") => Ok(Encryption::Kms { key_id: None }),
        Some(other) => match other.strip_prefix("aws:kms:") {
            Some(key) if !key.is_empty() => Ok(Encryption::Kms {
                key_id: Some(key.to_owned()),
            }),
            _ => Err(Failure::usage(format!("`--sse {other}` is not known"))
                .hint("use `AES256`, `aws:kms` or `aws:kms:KEY` (id, ARN or alias)")),
        },
    }
}

/// An S3 client with region and credentials from the usual AWS places: environment, profiles, SSO,
/// instance roles.
async fn client(s3: &S3Args) -> Outcome<Client> {
    let shared = aws_config::defaults(BehaviorVersion::latest())
        .http_client(s3::http_client())
        .load()
        .await;
    let endpoint = s3
        .endpoint
        .clone()
        .or_else(|| shared.endpoint_url().map(str::to_owned));
    let region = match (shared.region(), &endpoint) {
        (Some(region), _) => region.to_string(),
        // Servers other than AWS's take any region.
        (None, Some(_)) => "us-east-1".to_owned(),
        (None, None) => {
            return Err(Failure::usage("no AWS region is configured")
                .hint("set `AWS_REGION`, or a region in your AWS profile"));
        }
    };
    let Some(credentials) = shared.credentials_provider() else {
        return Err(Failure::usage("no AWS credentials are configured")
            .hint("set `AWS_PROFILE`, or `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"));
    };
    Ok(s3::client(&S3Settings {
        region,
        endpoint,
        path_style: s3.path_style,
        credentials,
    }))
}
