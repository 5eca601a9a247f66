//! The demo's folder: what is in it, and what may be replaced.

use std::fs;
use std::path::{Path, PathBuf};

use super::cannot_write;
use crate::exit::{Failure, Outcome};

/// Says that a folder is a demo, so that the next run may rebuild it.
const MARKER: &str = ".dynalake-demo";
/// What every run builds anew.
const BUILT: [&str; 3] = ["lake", "export", "events"];
/// Name of the schema folder below `schemas/`.
const DATABASE: &str = "ecommerce";

macro_rules! schema_files {
    ($($name:literal),* $(,)?) => {
        /// The example schemas, by file name.
        const SCHEMAS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../schemas/ecommerce/", $name)))),*];
    };
}

schema_files!(
    "lake.toml",
    "lake.lock",
    "idempotency_key.toml",
    "inventory.toml",
    "order.toml",
    "order_item.toml",
    "payment.toml",
    "product.toml",
    "product_category.toml",
    "user.toml",
);

/// A folder with the demo's schemas, and nothing of an earlier run but them.
pub(super) struct DemoFolder(PathBuf);

impl DemoFolder {
    /// Makes the folder ready. Schemas that are there stay: they may have been edited.
    pub(super) fn prepare(dir: &Path, force: bool) -> Outcome<Self> {
        let folder = Self(dir.to_owned());
        if dir.exists() && !dir.is_dir() {
            return Err(Failure::usage(format!(
                "`{}` is not a folder",
                dir.display()
            )));
        }
        if dir.join(MARKER).exists() {
            for name in BUILT {
                remove(&dir.join(name))?;
            }
        } else {
            check_foreign(dir, force)?;
        }
        fs::create_dir_all(dir).map_err(|error| cannot_write(dir, &error))?;
        write(
            &dir.join(MARKER),
            "Built by `dynalake demo`, which may replace lake/, export/ and events/.\n",
        )?;
        if !folder.schemas().exists() {
            fs::create_dir_all(folder.schemas())
                .map_err(|error| cannot_write(&folder.schemas(), &error))?;
            for (name, text) in SCHEMAS {
                write(&folder.schemas().join(name), text)?;
            }
        }
        Ok(folder)
    }

    /// The lake.
    pub(super) fn lake(&self) -> PathBuf {
        self.0.join("lake")
    }

    /// The schemas.
    pub(super) fn schemas(&self) -> PathBuf {
        self.0.join("schemas").join(DATABASE)
    }

    /// Root of the export.
    pub(super) fn export(&self) -> PathBuf {
        self.0.join("export")
    }

    /// The stream event.
    pub(super) fn event(&self) -> PathBuf {
        self.0.join("events").join("event.json")
    }
}

/// Refuses to build in a folder of somebody else's; never deletes anything there.
fn check_foreign(dir: &Path, force: bool) -> Outcome<()> {
    let Ok(mut entries) = fs::read_dir(dir) else {
        return Ok(());
    };
    if entries.next().is_none() {
        return Ok(());
    }
    let name = dir.display();
    if !force {
        return Err(
            Failure::usage(format!("`{name}` is not empty and not a demo"))
                .hint("give another folder, or `--force` to build in it all the same"),
        );
    }
    match BUILT.into_iter().find(|built| dir.join(built).exists()) {
        None => Ok(()),
        Some(built) => Err(Failure::usage(format!(
            "`{}` is there already and no demo made it",
            dir.join(built).display()
        ))
        .hint("give another folder: the demo deletes only what a demo made")),
    }
}

fn remove(path: &Path) -> Outcome<()> {
    if !path.exists() {
        return Ok(());
    }
    fs::remove_dir_all(path).map_err(|error| cannot_write(path, &error))
}

fn write(path: &Path, text: &str) -> Outcome<()> {
    fs::write(path, text).map_err(|error| cannot_write(path, &error))
}
