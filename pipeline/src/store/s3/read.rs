//! Reading from S3. The SDK retries a call until its answer begins; a body that breaks off after
//! that is ours to take up again.

use std::io;
use std::ops::Range;

use bytes::Bytes;
use futures::{StreamExt, stream};

use super::{MAX_ATTEMPTS, S3Store};
use crate::store::error::{StoreError, StoreErrorKind};
use crate::store::reader::{ChunkReader, ObjectReader, exact};

/// Bytes per call of a streaming read.
pub const CHUNK_SIZE: u64 = 8 << 20;
/// Calls under way at once in a streaming read; with [`CHUNK_SIZE`] this bounds its memory.
pub const READ_AHEAD: usize = 2;

impl S3Store {
    pub(in crate::store) async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        match self.read(key, None, None).await {
            Ok(bytes) => Ok(Some(bytes)),
            // A missing bucket is a mistake in the configuration, not a missing object.
            Err(error) if error.code() == Some("NoSuchKey") => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(in crate::store) async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Bytes, StoreError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        self.read(key, Some(range), None).await
    }

    pub(in crate::store) async fn open_read(&self, key: &str) -> Result<ObjectReader, StoreError> {
        let (meta, etag) = match self.head_object(key).await {
            Ok(found) => found,
            Err(error) if error.kind() == StoreErrorKind::NotFound => {
                return Err(StoreError::not_found("get", self.address(key)));
            }
            Err(error) => return Err(error),
        };
        let size = meta.size;
        let (store, key) = (self.clone(), key.to_owned());
        let chunks = stream::iter(0..size.div_ceil(CHUNK_SIZE))
            .map(move |n| {
                let range = n * CHUNK_SIZE..size.min((n + 1) * CHUNK_SIZE);
                let (store, key, etag) = (store.clone(), key.clone(), etag.clone());
                async move {
                    store
                        .read(&key, Some(range), etag)
                        .await
                        .map_err(io::Error::other)
                }
            })
            .buffered(READ_AHEAD)
            .boxed();
        Ok(ObjectReader::new(size, ChunkReader::new(chunks)))
    }

    /// Reads the object or a range of it; again from the start when the body breaks off.
    async fn read(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        etag: Option<String>,
    ) -> Result<Bytes, StoreError> {
        let mut attempt = 1;
        loop {
            match Box::pin(self.read_once(key, range.clone(), etag.clone())).await {
                Err(error) if error.broken_body() && attempt < MAX_ATTEMPTS => attempt += 1,
                result => return result,
            }
        }
    }

    async fn read_once(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        etag: Option<String>,
    ) -> Result<Bytes, StoreError> {
        let request = self
            .0
            .client
            .get_object()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner())
            .set_if_match(etag)
            .set_range(
                range
                    .as_ref()
                    .map(|r| format!("bytes={}-{}", r.start, r.end - 1)),
            );
        let answer = request
            .send()
            .await
            .map_err(|error| StoreError::sdk("get", self.address(key), error))?;
        let length = answer.content_length().and_then(|n| u64::try_from(n).ok());
        let bytes = answer
            .body
            .collect()
            .await
            .map_err(|error| StoreError::body("get", self.address(key), error))?
            .into_bytes();
        if length.is_some_and(|length| exact(bytes.clone(), length).is_err()) {
            let problem = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(StoreError::body("get", self.address(key), problem));
        }
        match range {
            None => Ok(bytes),
            Some(range) => exact(bytes, range.end - range.start)
                .map_err(|problem| StoreError::changed("get", self.address(key), problem)),
        }
    }
}
