//! An S3 bucket (or a part of it) as a store.
//!
//! Every call carries the options of the bucket (encryption, expected owner), is tried up to
//! [`MAX_ATTEMPTS`] times by the SDK and is bounded in time ([`client`]). Bodies are held in memory
//! and signed with their SHA-256 and a CRC-32, so a body that was damaged on its way is refused by
//! the service. What is larger than [`MULTIPART_ABOVE`] goes up in parts.

mod client;
mod multipart;
mod read;

use std::path::Path;
use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::ServerSideEncryption;
use bytes::Bytes;

use super::ObjectMeta;
use super::error::{StoreError, StoreErrorKind};

pub use client::{MAX_ATTEMPTS, S3Settings, client, http_client, http_client_to};
pub use multipart::{MULTIPART_ABOVE, PART_CONCURRENCY, PART_SIZE};
pub use read::{CHUNK_SIZE, READ_AHEAD};

/// Encryption asked for with each put.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Encryption {
    /// What the bucket says.
    #[default]
    BucketDefault,
    /// SSE-S3 (`AES256`).
    Aes256,
    /// SSE-KMS (`aws:kms`) with a bucket key, so that not each object costs a call of KMS.
    Kms {
        /// Key id, ARN or alias; `None` is the AWS managed key of the account.
        key_id: Option<String>,
    },
}

/// What every call to the bucket carries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Options {
    /// Encryption of what is written.
    pub encryption: Encryption,
    /// Account id that must own the bucket; S3 refuses calls when another one does.
    pub expected_bucket_owner: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct S3Store(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    bucket: String,
    prefix: String,
    options: S3Options,
}

impl S3Store {
    pub(super) fn new(client: Client, bucket: String, prefix: &str, options: S3Options) -> Self {
        let prefix = prefix.trim_matches('/').to_owned();
        Self(Arc::new(Inner {
            client,
            bucket,
            prefix,
            options,
        }))
    }

    pub(super) fn address(&self, key: &str) -> String {
        format!("s3://{}/{}", self.0.bucket, self.full_key(key))
    }

    fn full_key(&self, key: &str) -> String {
        if self.0.prefix.is_empty() {
            key.to_owned()
        } else {
            format!("{}/{key}", self.0.prefix)
        }
    }

    fn bucket(&self) -> &str {
        &self.0.bucket
    }

    fn owner(&self) -> Option<String> {
        self.0.options.expected_bucket_owner.clone()
    }

    /// Encryption, KMS key id and whether to use a bucket key, as the SDK's setters take them.
    fn encryption(&self) -> (Option<ServerSideEncryption>, Option<String>, Option<bool>) {
        match &self.0.options.encryption {
            Encryption::BucketDefault => (None, None, None),
            Encryption::Aes256 => (Some(ServerSideEncryption::Aes256), None, None),
            Encryption::Kms { key_id } => (
                Some(ServerSideEncryption::AwsKms),
                key_id.clone(),
                Some(true),
            ),
        }
    }

    pub(super) async fn put(&self, key: &str, body: Bytes) -> Result<(), StoreError> {
        if body.len() > MULTIPART_ABOVE {
            return self.put_parts(key, multipart::Source::Bytes(body)).await;
        }
        self.put_object(key, body, None).await
    }

    pub(super) async fn put_file(&self, key: &str, path: &Path) -> Result<(), StoreError> {
        let fail = |error| StoreError::io("read", path.display().to_string(), error);
        let size = tokio::fs::metadata(path).await.map_err(fail)?.len();
        if usize::try_from(size).is_ok_and(|size| size <= MULTIPART_ABOVE) {
            let body = tokio::fs::read(path).await.map_err(fail)?;
            return self.put_object(key, body.into(), None).await;
        }
        self.put_parts(
            key,
            multipart::Source::File {
                path: path.to_owned(),
                size,
            },
        )
        .await
    }

    pub(super) async fn put_if_absent(&self, key: &str, body: Bytes) -> Result<bool, StoreError> {
        // Another write or delete of this key was under way: S3 asks for another attempt.
        let conflict = |error: &StoreError| error.code() == Some("ConditionalRequestConflict");
        let mut attempt = 1;
        loop {
            match self.put_object(key, body.clone(), Some("*")).await {
                Ok(()) => return Ok(true),
                Err(error) if error.http_status() == Some(412) => return Ok(false),
                Err(error) if conflict(&error) && attempt < MAX_ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn put_object(
        &self,
        key: &str,
        body: Bytes,
        if_none_match: Option<&str>,
    ) -> Result<(), StoreError> {
        let (encryption, key_id, bucket_key) = self.encryption();
        let request = self
            .0
            .client
            .put_object()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner())
            .set_server_side_encryption(encryption)
            .set_ssekms_key_id(key_id)
            .set_bucket_key_enabled(bucket_key)
            .set_if_none_match(if_none_match.map(str::to_owned))
            .body(ByteStream::from(body));
        match Box::pin(request.send()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::sdk("put", self.address(key), error)),
        }
    }

    pub(super) async fn head(&self, key: &str) -> Result<Option<ObjectMeta>, StoreError> {
        match self.head_object(key).await {
            Ok((meta, _)) => Ok(Some(meta)),
            Err(error) if error.kind() == StoreErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Size, time and `ETag`.
    async fn head_object(&self, key: &str) -> Result<(ObjectMeta, Option<String>), StoreError> {
        let request = self
            .0
            .client
            .head_object()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner());
        let answer = Box::pin(request.send())
            .await
            .map_err(|error| StoreError::sdk("head", self.address(key), error))?;
        let meta = ObjectMeta {
            key: key.to_owned(),
            size: answer
                .content_length()
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(0),
            modified_ms: milliseconds(answer.last_modified()),
        };
        Ok((meta, answer.e_tag))
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>, StoreError> {
        let root = if self.0.prefix.is_empty() {
            String::new()
        } else {
            format!("{}/", self.0.prefix)
        };
        let mut found = Vec::new();
        let mut continuation = None;
        loop {
            let request = self
                .0
                .client
                .list_objects_v2()
                .bucket(self.bucket())
                .prefix(format!("{root}{prefix}"))
                .set_continuation_token(continuation)
                .set_expected_bucket_owner(self.owner());
            let page = Box::pin(request.send())
                .await
                .map_err(|error| StoreError::sdk("list", self.address(prefix), error))?;
            for object in page.contents() {
                let Some(key) = object.key().and_then(|key| key.strip_prefix(&root)) else {
                    continue;
                };
                // `folder/` is what consoles make to show a folder, not an object of ours.
                if key.ends_with('/') || key.split('/').any(|segment| segment.starts_with('.')) {
                    continue;
                }
                found.push(ObjectMeta {
                    key: key.to_owned(),
                    size: object
                        .size()
                        .and_then(|n| u64::try_from(n).ok())
                        .unwrap_or(0),
                    modified_ms: milliseconds(object.last_modified()),
                });
            }
            continuation = page.next_continuation_token;
            if continuation.is_none() {
                break;
            }
        }
        found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), StoreError> {
        let request = self
            .0
            .client
            .delete_object()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner());
        match Box::pin(request.send()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::sdk("delete", self.address(key), error)),
        }
    }
}

fn milliseconds(time: Option<&aws_sdk_s3::primitives::DateTime>) -> i64 {
    time.and_then(|time| time.to_millis().ok()).unwrap_or(0)
}
