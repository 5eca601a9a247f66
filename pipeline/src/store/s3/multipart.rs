//! Uploads in parts: a few at a time, all or nothing.
//!
//! A failed upload is aborted, so that its parts are not kept (and paid). A process that dies leaves
//! them: give the bucket a lifecycle rule that aborts incomplete uploads after some days.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;

use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{ChecksumAlgorithm, CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use super::S3Store;
use crate::store::error::StoreError;

/// Objects larger than this many bytes go up in parts.
pub const MULTIPART_ABOVE: usize = 16 * MIB;
/// Bytes per part. Larger only where S3's limit of 10,000 parts demands it.
pub const PART_SIZE: u64 = 8 << 20;
/// Parts of one object under way at once; with [`PART_SIZE`] this bounds the memory of an upload.
pub const PART_CONCURRENCY: usize = 4;

const MIB: usize = 1 << 20;
/// "Amazon S3 multipart upload limits".
const MAX_PARTS: u64 = 10_000;

/// What is uploaded.
#[derive(Debug)]
pub(super) enum Source {
    Bytes(Bytes),
    File { path: PathBuf, size: u64 },
}

impl Source {
    fn size(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            Self::File { size, .. } => *size,
        }
    }

    async fn part(&self, range: Range<u64>) -> io::Result<Bytes> {
        match self {
            Self::Bytes(bytes) => usize::try_from(range.start)
                .ok()
                .zip(usize::try_from(range.end).ok())
                .filter(|(start, end)| start <= end && *end <= bytes.len())
                .map(|(start, end)| bytes.slice(start..end))
                .ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof)),
            Self::File { path, .. } => {
                let path = path.clone();
                let read = move || {
                    let length = usize::try_from(range.end.saturating_sub(range.start))
                        .map_err(io::Error::other)?;
                    let mut file = File::open(path)?;
                    file.seek(SeekFrom::Start(range.start))?;
                    let mut bytes = vec![0; length];
                    file.read_exact(&mut bytes)?;
                    Ok(Bytes::from(bytes))
                };
                tokio::task::spawn_blocking(read)
                    .await
                    .map_err(io::Error::other)
                    .flatten()
            }
        }
    }
}

/// The byte ranges of the parts of an object of this size.
fn parts(size: u64) -> impl Iterator<Item = Range<u64>> {
    let length = PART_SIZE.max(size.div_ceil(MAX_PARTS));
    (0..size.div_ceil(length)).map(move |n| n * length..size.min((n + 1) * length))
}

impl S3Store {
    pub(super) async fn put_parts(&self, key: &str, source: Source) -> Result<(), StoreError> {
        let (encryption, key_id, bucket_key) = self.encryption();
        let request = self
            .0
            .client
            .create_multipart_upload()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner())
            .set_server_side_encryption(encryption)
            .set_ssekms_key_id(key_id)
            .set_bucket_key_enabled(bucket_key)
            .checksum_algorithm(ChecksumAlgorithm::Crc32);
        let upload = Box::pin(request.send())
            .await
            .map_err(|error| StoreError::sdk("put", self.address(key), error))?;
        let Some(upload_id) = upload.upload_id else {
            let problem = io::Error::other("the service started an upload without an id");
            return Err(StoreError::io("put", self.address(key), problem));
        };
        let result = self.put_all_parts(key, &source, &upload_id).await;
        if result.is_err() {
            self.abort(key, &upload_id).await;
        }
        result
    }

    async fn put_all_parts(
        &self,
        key: &str,
        source: &Source,
        upload_id: &str,
    ) -> Result<(), StoreError> {
        let mut done: Vec<CompletedPart> = stream::iter((1..).zip(parts(source.size())))
            .map(|(number, range)| Box::pin(self.put_part(key, source, upload_id, number, range)))
            .buffer_unordered(PART_CONCURRENCY)
            .try_collect()
            .await?;
        done.sort_unstable_by_key(|part| part.part_number);
        let request = self
            .0
            .client
            .complete_multipart_upload()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner())
            .upload_id(upload_id)
            .multipart_upload(
                CompletedMultipartUpload::builder()
                    .set_parts(Some(done))
                    .build(),
            );
        match Box::pin(request.send()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(StoreError::sdk("put", self.address(key), error)),
        }
    }

    async fn put_part(
        &self,
        key: &str,
        source: &Source,
        upload_id: &str,
        number: i32,
        range: Range<u64>,
    ) -> Result<CompletedPart, StoreError> {
        let body = source
            .part(range)
            .await
            .map_err(|error| StoreError::io("put", self.address(key), error))?;
        let request = self
            .0
            .client
            .upload_part()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner())
            .upload_id(upload_id)
            .part_number(number)
            .checksum_algorithm(ChecksumAlgorithm::Crc32)
            .body(ByteStream::from(body));
        let part = Box::pin(request.send())
            .await
            .map_err(|error| StoreError::sdk("put", self.address(key), error))?;
        Ok(CompletedPart::builder()
            .part_number(number)
            .set_e_tag(part.e_tag)
            .set_checksum_crc32(part.checksum_crc32)
            .build())
    }

    /// Best effort: the error that led here is what the caller must hear of.
    async fn abort(&self, key: &str, upload_id: &str) {
        let request = self
            .0
            .client
            .abort_multipart_upload()
            .bucket(self.bucket())
            .key(self.full_key(key))
            .set_expected_bucket_owner(self.owner())
            .upload_id(upload_id);
        drop(Box::pin(request.send()).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_object_without_gap_or_overlap_within_the_limits_of_s3() {
        for size in [
            1,
            PART_SIZE - 1,
            PART_SIZE,
            PART_SIZE + 1,
            3 * PART_SIZE,
            5 << 40,
        ] {
            let mut end = 0;
            let mut count = 0;
            for part in parts(size) {
                assert_eq!(part.start, end);
                assert!(part.end > part.start);
                // At least 5 MiB, the last one excepted; at most 5 GiB.
                assert!(part.end - part.start >= 5 << 20 || part.end == size);
                assert!(part.end - part.start <= 5 << 30);
                end = part.end;
                count += 1;
            }
            assert_eq!(end, size);
            assert!(count <= MAX_PARTS);
        }
    }

    #[tokio::test]
    async fn a_part_of_a_file_that_shrank_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, b"12345").unwrap();
        let source = Source::File { path, size: 10 };
        assert_eq!(source.part(1..4).await.unwrap(), "234");
        assert_eq!(
            source.part(3..10).await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        let source = Source::Bytes(Bytes::from_static(b"12345"));
        assert_eq!(source.part(1..4).await.unwrap(), "234");
        source.part(3..10).await.unwrap_err();
    }
}
