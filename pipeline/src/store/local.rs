//! A local folder as a store.
//!
//! A put writes a temporary file beside its target, fsyncs it, renames it over the target and fsyncs
//! the folder: after a crash the object is the old one, the new one, or absent, never a part.
//! Temporary names begin with a dot, so that neither listings nor query engines take the leftovers
//! of a crash for data. All file work runs on the blocking pool.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::ObjectMeta;
use super::error::StoreError;
use super::reader::ObjectReader;

#[derive(Debug, Clone)]
pub(super) struct LocalStore {
    root: Arc<PathBuf>,
}

impl LocalStore {
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root: Arc::new(root),
        }
    }

    pub(super) fn address(&self, key: &str) -> String {
        self.path(key).display().to_string()
    }

    pub(super) fn path(&self, key: &str) -> PathBuf {
        // `join` would let an absolute key replace the root; keys are checked, addresses are not.
        self.root.join(key.trim_start_matches('/'))
    }

    /// Runs file work off the async threads and gives its error an operation and an address.
    async fn run<T: Send + 'static>(
        &self,
        operation: &'static str,
        key: &str,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let path = self.path(key);
        tokio::task::spawn_blocking(move || work(&path))
            .await
            .map_err(io::Error::other)
            .flatten()
            .map_err(|error| StoreError::io(operation, self.address(key), error))
    }

    pub(super) async fn put(&self, key: &str, body: Bytes) -> Result<(), StoreError> {
        self.run("put", key, move |path| {
            write_beside(path, |file| file.write_all(&body))?.persist(path)?;
            sync_folder_of(path)
        })
        .await
    }

    pub(super) async fn put_file(&self, key: &str, from: &Path) -> Result<(), StoreError> {
        let from = from.to_owned();
        self.run("put", key, move |path| {
            let mut source = File::open(&from)
                .map_err(|e| io::Error::new(e.kind(), format!("`{}`: {e}", from.display())))?;
            write_beside(path, |file| io::copy(&mut source, file).map(|_| ()))?.persist(path)?;
            sync_folder_of(path)
        })
        .await
    }

    pub(super) async fn put_if_absent(&self, key: &str, body: Bytes) -> Result<bool, StoreError> {
        self.run("put", key, move |path| {
            match write_beside(path, |file| file.write_all(&body))?.persist_noclobber(path) {
                Ok(_) => sync_folder_of(path).map(|()| true),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error.error),
            }
        })
        .await
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        self.run("get", key, |path| {
            absent_is_none(fs::read(path).map(Bytes::from))
        })
        .await
    }

    pub(super) async fn get_range(
        &self,
        key: &str,
        range: Range<u64>,
    ) -> Result<Bytes, StoreError> {
        let wanted = range.end.saturating_sub(range.start);
        let bytes = self
            .run("get", key, move |path| {
                let mut file = File::open(path)?;
                file.seek(SeekFrom::Start(range.start))?;
                let mut bytes = Vec::new();
                file.take(wanted).read_to_end(&mut bytes)?;
                Ok(Bytes::from(bytes))
            })
            .await?;
        super::reader::exact(bytes, wanted)
            .map_err(|problem| StoreError::changed("get", self.address(key), problem))
    }

    pub(super) async fn head(&self, key: &str) -> Result<Option<ObjectMeta>, StoreError> {
        let name = key.to_owned();
        self.run("head", key, |path| {
            let Some(metadata) = absent_is_none(fs::metadata(path))? else {
                return Ok(None);
            };
            if metadata.is_file() {
                meta(name, &metadata).map(Some)
            } else {
                Ok(None)
            }
        })
        .await
    }

    pub(super) async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>, StoreError> {
        let prefix = prefix.to_owned();
        let key = prefix.clone();
        let root = Arc::clone(&self.root);
        self.run("list", &key, move |_| {
            let mut found = Vec::new();
            // The folder part of the prefix is walked; a prefix that leaves the root finds nothing.
            let folder = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
            if folder.is_empty() || super::check_key(folder).is_ok() {
                walk(&root, folder, &prefix, &mut found)?;
            }
            found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
            Ok(found)
        })
        .await
    }

    pub(super) async fn open_read(&self, key: &str) -> Result<ObjectReader, StoreError> {
        let (file, size) = self
            .run("get", key, |path| {
                let file = File::open(path)?;
                let metadata = file.metadata()?;
                if metadata.is_dir() {
                    return Err(io::Error::from(io::ErrorKind::IsADirectory));
                }
                Ok((file, metadata.len()))
            })
            .await?;
        Ok(ObjectReader::new(size, tokio::fs::File::from_std(file)))
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.run("delete", key, |path| match fs::remove_file(path) {
            Ok(()) => sync_folder_of(path),
            Err(error) if is_absent(&error) => Ok(()),
            Err(error) => Err(error),
        })
        .await
    }
}

/// A fsynced temporary file in the target's folder, which is made (durably) where it is missing.
fn write_beside(
    target: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<tempfile::NamedTempFile> {
    let folder = folder_of(target);
    make_folder(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Like any created file: the umask decides. The default would be readable by nobody else.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(folder)?;
    fill(temporary.as_file_mut())?;
    temporary.as_file().sync_all()?;
    Ok(temporary)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a folder and those above it, and makes their names durable.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|path| !path.as_os_str().is_empty() && !path.is_dir())
        .collect();
    fs::create_dir_all(folder)?;
    for made in missing.iter().rev() {
        sync_folder_of(made)?;
    }
    Ok(())
}

/// Makes names in the folder of this path durable.
fn sync_folder_of(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder_of(path))?.sync_all()
    } else {
        Ok(())
    }
}

fn is_absent(error: &io::Error) -> bool {
    // A file in the place of a folder of the key: there is no such object either.
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn absent_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Collects the files below `folder` (relative to the root) whose key begins with `prefix`.
fn walk(root: &Path, folder: &str, prefix: &str, found: &mut Vec<ObjectMeta>) -> io::Result<()> {
    let path = if folder.is_empty() {
        root.to_owned()
    } else {
        root.join(folder)
    };
    let Some(entries) = absent_is_none(fs::read_dir(&path))? else {
        return Ok(());
    };
    for entry in entries {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else {
            let problem = format!(
                "`{}` has a name that is not UTF-8",
                path.join(&name).display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        };
        if name.starts_with('.') {
            continue;
        }
        let key = if folder.is_empty() {
            name.to_owned()
        } else {
            format!("{folder}/{name}")
        };
        // Still on the way to the prefix, or under it.
        if !(key.starts_with(prefix) || prefix.starts_with(&key)) {
            continue;
        }
        // Follows links; a file that went away meanwhile is not there.
        let Some(metadata) = absent_is_none(fs::metadata(path.join(name)))? else {
            continue;
        };
        if metadata.is_dir() {
            walk(root, &key, prefix, found)?;
        } else if metadata.is_file() && key.starts_with(prefix) {
            found.push(meta(key, &metadata)?);
        }
    }
    Ok(())
}

fn meta(key: String, metadata: &fs::Metadata) -> io::Result<ObjectMeta> {
    let modified = metadata.modified()?;
    let modified_ms = match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_millis()).map_or(i64::MIN, std::ops::Neg::neg)
        }
    };
    Ok(ObjectMeta {
        key,
        size: metadata.len(),
        modified_ms,
    })
}

#[cfg(test)]
mod tests;
