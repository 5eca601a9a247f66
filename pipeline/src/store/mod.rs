//! Where objects go: a local folder or an S3 bucket, behind one type.
//!
//! Input: keys relative to the lake's root (`changes/orders/dt=2026-05-01/….parquet`) and bytes.
//! Output: objects that are whole or absent, never half written, and durable when a put returns.
//!
//! A put replaces what was there, so that a retry that writes the same bytes to the same key changes
//! nothing. Keys are checked before anything is touched ([`check_key`]); a listing never shows names
//! that begin with a dot, which are this module's temporary files.

mod error;
mod fuse;
mod local;
mod reader;
pub mod s3;
mod uri;

use std::ops::Range;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use fuse::Fuse;

pub use error::{StoreError, StoreErrorKind};
pub use reader::ObjectReader;
pub use s3::{Encryption, S3Options, S3Settings};
pub use uri::{LakeUri, UriError, check_key};

/// An object as a listing shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectMeta {
    /// Key relative to the store's root.
    pub key: String,
    /// Size in bytes.
    pub size: u64,
    /// Last change: milliseconds since 1970-01-01 UTC; S3 knows whole seconds.
    pub modified_ms: i64,
}

/// A place for objects. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Inner,
    /// Test hook.
    fuse: Option<Fuse>,
}

#[derive(Debug, Clone)]
enum Inner {
    Local(local::LocalStore),
    S3(s3::S3Store),
}

impl Store {
    /// A local folder; it need not exist yet.
    pub fn local(root: impl Into<PathBuf>) -> Self {
        Self::new(Inner::Local(local::LocalStore::new(root.into())))
    }

    /// A bucket, or the part of it under `prefix` (without slashes at its ends; may be empty).
    pub fn s3(
        client: aws_sdk_s3::Client,
        bucket: impl Into<String>,
        prefix: &str,
        options: S3Options,
    ) -> Self {
        Self::new(Inner::S3(s3::S3Store::new(
            client,
            bucket.into(),
            prefix,
            options,
        )))
    }

    fn new(inner: Inner) -> Self {
        Self { inner, fuse: None }
    }

    /// Test hook: this store, of which only so many more operations succeed (clones count together).
    /// All later ones fail without effect, as if the process had died there.
    #[doc(hidden)]
    #[must_use]
    pub fn stopping_after(&self, operations: u64) -> Self {
        Self {
            inner: self.inner.clone(),
            fuse: Some(Fuse::new(operations)),
        }
    }

    /// Path or `s3://` address of a key, for messages.
    pub fn address(&self, key: &str) -> String {
        match &self.inner {
            Inner::Local(store) => store.address(key),
            Inner::S3(store) => store.address(key),
        }
    }

    /// The file of a key in a local store; `None` for a store that is not local.
    pub fn local_path(&self, key: &str) -> Option<PathBuf> {
        match &self.inner {
            Inner::Local(store) => Some(store.path(key)),
            Inner::S3(_) => None,
        }
    }

    /// Writes an object whole, replacing one that is there. Durable on return.
    pub async fn put(&self, key: &str, body: Bytes) -> Result<(), StoreError> {
        self.check("put", key)?;
        match &self.inner {
            Inner::Local(store) => store.put(key, body).await,
            Inner::S3(store) => store.put(key, body).await,
        }
    }

    /// Like [`Store::put`], from a file, which must not change meanwhile; memory stays bounded.
    pub async fn put_file(&self, key: &str, path: &Path) -> Result<(), StoreError> {
        self.check("put", key)?;
        match &self.inner {
            Inner::Local(store) => store.put_file(key, path).await,
            Inner::S3(store) => store.put_file(key, path).await,
        }
    }

    /// Writes an object unless one is there; of several that try at once exactly one gets `true`.
    ///
    /// `false` does not prove that another writer was first: a put whose answer was lost on the way
    /// is tried again and meets its own object. Where it matters, read the object and compare.
    pub async fn put_if_absent(&self, key: &str, body: Bytes) -> Result<bool, StoreError> {
        self.check("put", key)?;
        match &self.inner {
            Inner::Local(store) => store.put_if_absent(key, body).await,
            Inner::S3(store) => store.put_if_absent(key, body).await,
        }
    }

    /// Reads an object whole; `None` when there is none.
    pub async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.check("get", key)?;
        match &self.inner {
            Inner::Local(store) => store.get(key).await,
            Inner::S3(store) => store.get(key).await,
        }
    }

    /// Reads exactly these bytes; an object that ends before them is an error.
    pub async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, StoreError> {
        self.check("get", key)?;
        match &self.inner {
            Inner::Local(store) => store.get_range(key, range).await,
            Inner::S3(store) => store.get_range(key, range).await,
        }
    }

    /// Size and time of an object; `None` when there is none. S3 answers the same for a missing
    /// bucket.
    pub async fn head(&self, key: &str) -> Result<Option<ObjectMeta>, StoreError> {
        self.check("head", key)?;
        match &self.inner {
            Inner::Local(store) => store.head(key).await,
            Inner::S3(store) => store.head(key).await,
        }
    }

    /// All objects whose key begins with this text (`""` for all), sorted bytewise by key.
    ///
    /// As in S3 the prefix is text, not a folder: `changes/ord` finds `changes/orders/…`. Names that
    /// begin with a dot are left out. A folder that is not there holds no objects.
    pub async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>, StoreError> {
        self.admit("list", prefix)?;
        match &self.inner {
            Inner::Local(store) => store.list(prefix).await,
            Inner::S3(store) => store.list(prefix).await,
        }
    }

    /// Opens an object for reading from its beginning, with bounded memory.
    ///
    /// On S3 a broken connection is taken up again where it broke, and the reader fails if the
    /// object is replaced meanwhile.
    pub async fn open_read(&self, key: &str) -> Result<ObjectReader, StoreError> {
        self.check("get", key)?;
        match &self.inner {
            Inner::Local(store) => store.open_read(key).await,
            Inner::S3(store) => store.open_read(key).await,
        }
    }

    /// Removes an object; one that is not there is no error.
    pub async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.check("delete", key)?;
        match &self.inner {
            Inner::Local(store) => store.delete(key).await,
            Inner::S3(store) => store.delete(key).await,
        }
    }

    fn check(&self, operation: &'static str, key: &str) -> Result<(), StoreError> {
        check_key(key)
            .map_err(|problem| StoreError::bad_key(operation, self.address(key), problem))?;
        self.admit(operation, key)
    }

    fn admit(&self, operation: &'static str, key: &str) -> Result<(), StoreError> {
        match &self.fuse {
            Some(fuse) if !fuse.holds() => Err(StoreError::stopped(operation, self.address(key))),
            _ => Ok(()),
        }
    }
}
