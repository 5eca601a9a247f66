//! What `export convert` says of exports that are not as AWS wrote them: which file, what is wrong with
//! it, and what to do.

use std::path::{Path, PathBuf};

use dynalake_export_job::export_writer::{
    ExportSpec, gzip, manifest_line, write_full_export, write_manifest,
};
use dynalake_export_job::format::DataFormat;

use crate::world::{MAY_1, Run, World, shop_schemas};

const SUMMARY: &str = "manifest-summary.json";
const FILES: &str = "manifest-files.json";
const ITEM: &str = r#"{"PK":{"S":"USER#1"},"SK":{"S":"PROFILE"}}"#;

/// A world with schemas and an export of two items in two data files.
struct Damaged {
    world: World,
    export: PathBuf,
}

impl Damaged {
    fn new(format: DataFormat) -> Self {
        let world = World::new();
        shop_schemas(&world);
        let lake = std::fs::read_to_string(world.path("schemas/lake.toml")).unwrap();
        let source = "[source]\ntable = \"shop\"";
        world.write("schemas/lake.toml", lake.replace("[source]", source));
        let spec = ExportSpec {
            format,
            data_files: 2,
            ..ExportSpec::new("shop", MAY_1)
        };
        let items = [ITEM.to_owned(), ITEM.replace("#1", "#2")];
        let export = write_full_export(&world.path("bucket"), &spec, items).unwrap();
        Self { world, export }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.export.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// The first data file.
    fn data_file(&self) -> PathBuf {
        let text = std::fs::read_to_string(self.path(FILES)).unwrap();
        let mut keys: Vec<String> = text
            .lines()
            .map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line["dataFileS3Key"].as_str().unwrap().to_owned()
            })
            .collect();
        keys.sort();
        self.world.path("bucket").join(keys.remove(0))
    }

    /// Changes a manifest, with a checksum that fits.
    fn rewrite(&self, manifest: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(manifest)).unwrap();
        assert!(text.contains(from), "{text}");
        write_manifest(&self.export, manifest, text.replace(from, to).as_bytes()).unwrap();
    }

    /// Puts other bytes in the place of the first data file, and has the manifest know them.
    fn replace(&self, bytes: &[u8], items: u64) {
        let path = self.data_file();
        std::fs::write(&path, bytes).unwrap();
        let key = path.strip_prefix(self.world.path("bucket")).unwrap();
        let key = key.to_str().unwrap();
        let text = std::fs::read_to_string(self.path(FILES)).unwrap();
        let old = text.lines().find(|line| line.contains(key)).unwrap();
        self.rewrite(FILES, old, &manifest_line(bytes, items, key).unwrap());
    }

    fn convert(&self, source: &Path) -> Run {
        let source = source.to_str().unwrap();
        let args = ["--lake", "lake", "--schemas", "schemas"];
        self.world
            .run(&[&["export", "convert", source], &args[..]].concat())
    }

    /// The error and the hint, with what is long or arbitrary replaced.
    fn says(&self) -> (i32, String, String) {
        let data_file = self.data_file();
        let run = self.convert(&self.export);
        assert_eq!(run.out, "");
        assert!(!self.world.path("lake/state/baselines").exists());
        let line = |begin: &str| {
            let line = run.err.lines().find_map(|line| line.strip_prefix(begin));
            let line = line.unwrap_or_else(|| panic!("{run:#?}"));
            let line = line
                .replace(data_file.to_str().unwrap(), "DATA")
                .replace(self.export.to_str().unwrap(), "EXPORT")
                .replace(data_file.file_name().unwrap().to_str().unwrap(), "NAME");
            let is_md5 = |word: &&str| word.len() == 24 && word.ends_with("==");
            let words = line.split(' ');
            words
                .map(|word| if is_md5(&word) { "MD5" } else { word })
                .collect::<Vec<_>>()
                .join(" ")
        };
        (run.code, line("error: "), line("  hint: "))
    }
}

/// What was done to an export, the exit code, and what is said.
type Case<'a> = (&'a dyn Fn(&Damaged), i32, &'a str, &'a str);

const OTHER_MD5: &[u8] = b"FjvgqIxwymKf1RbbqtrZag==";
const COPY_AGAIN: &str = "copy the file again from where AWS wrote it";
const CHANGED: &str = "the manifest was changed or damaged; copy the export again";
const NOT_OF_ONE: &str = "the manifests are not of one export; copy the export again";
const AS_WRITTEN: &str = "give an export as AWS wrote it; if it is a copy, copy it again";
const WHOLE_FOLDER: &str = "copy the whole folder of the export, its data files included";

#[test]
fn damage_of_data_files_is_told_by_the_file() {
    let cases: [Case<'_>; 8] = [
        (
            &|export| std::fs::write(export.data_file(), gzip(b"x\n").unwrap()).unwrap(),
            1,
            "`DATA`: its MD5 is MD5 but the manifest says MD5",
            "the file was changed or damaged; copy it again from where AWS wrote it",
        ),
        (
            &|export| std::fs::remove_file(export.data_file()).unwrap(),
            1,
            "`NAME`: the file is not there; looked at `DATA`",
            WHOLE_FOLDER,
        ),
        (
            &|export| export.replace(b"", 1),
            1,
            "`DATA`: the file has no bytes; even one without items has 20",
            COPY_AGAIN,
        ),
        (
            &|export| {
                let bytes = std::fs::read(export.data_file()).unwrap();
                export.replace(&bytes[..bytes.len() - 6], 1);
            },
            1,
            "`DATA`: the gzip data ends too early, after line 1",
            COPY_AGAIN,
        ),
        (
            &|export| {
                let bytes = std::fs::read(export.data_file()).unwrap();
                export.replace(&bytes[..12], 1);
            },
            1,
            "`DATA`: the gzip data ends too early, before its first line",
            COPY_AGAIN,
        ),
        (
            &|export| export.replace(ITEM.as_bytes(), 1),
            1,
            "`DATA`: not gzip data before its first line: invalid gzip header",
            COPY_AGAIN,
        ),
        (
            &|export| export.replace(&gzip(b"").unwrap(), 1),
            1,
            "`DATA`: it holds 0 items but the manifest says 1",
            "file and manifest are not of one export; copy the export again",
        ),
        (
            &|export| export.replace(&gzip(b"\n").unwrap(), 0),
            1,
            "`EXPORT/manifest-files.json`: its data files hold 1 items but `manifest-summary.json` says 2",
            NOT_OF_ONE,
        ),
    ];
    check(&cases);
}

#[test]
fn damage_of_manifests_is_told_by_the_manifest() {
    let cases: [Case<'_>; 11] = [
        (
            &|export| export.write("manifest-summary.md5", OTHER_MD5),
            1,
            "`EXPORT/manifest-summary.json`: its MD5 is MD5 but `EXPORT/manifest-summary.md5` says MD5",
            CHANGED,
        ),
        (
            &|export| {
                std::fs::remove_file(export.path("manifest-files.md5")).unwrap();
                export.write("manifest-files.checksum", OTHER_MD5);
            },
            1,
            "`EXPORT/manifest-files.json`: its MD5 is MD5 but `EXPORT/manifest-files.checksum` says MD5",
            CHANGED,
        ),
        (
            &|export| export.write("manifest-files.md5", b"<html>"),
            1,
            "`EXPORT/manifest-files.md5`: not the base64 text of an MD5",
            "copy the export again, or delete this file to go without the check",
        ),
        (
            &|export| std::fs::remove_file(export.path(SUMMARY)).unwrap(),
            2,
            "`EXPORT/manifest-summary.json`: there is no such file",
            "give the folder that holds manifest-summary.json (…/AWSDynamoDB/<export id>/); \
             an export that still runs has none yet",
        ),
        (
            &|export| export.rewrite(SUMMARY, "\"itemCount\":2", "\"itemCount\":3"),
            1,
            "`EXPORT/manifest-files.json`: its data files hold 2 items but `manifest-summary.json` says 3",
            NOT_OF_ONE,
        ),
        (
            &|export| export.rewrite(SUMMARY, "table/shop\"", "table/other\""),
            2,
            "`EXPORT/manifest-summary.json`: this is an export of table `other`, the schemas are for `shop`",
            "give an export of that table, or the folder with this table's schemas",
        ),
        (
            &|export| export.rewrite(SUMMARY, "\"exportTime\"", "\"time\""),
            1,
            "`EXPORT/manifest-summary.json`: `exportTime` is missing",
            AS_WRITTEN,
        ),
        (
            &|export| export.rewrite(SUMMARY, "2020-06-30", "2031-01-01"),
            1,
            "`EXPORT/manifest-summary.json`: unknown manifest version `2031-01-01`",
            "known versions are 2020-06-30 and 2023-08-01; use a newer dynalake",
        ),
        (
            &|export| export.rewrite(SUMMARY, "\"outputFormat\":\"", "\"outputFormat\":\"X-"),
            1,
            "`EXPORT/manifest-summary.json`: unknown `outputFormat` `X-FORMAT`",
            AS_WRITTEN,
        ),
        (
            &|export| export.rewrite(SUMMARY, "{", "<html>"),
            1,
            "`EXPORT/manifest-summary.json`: not a summary manifest (line 1, column 1)",
            AS_WRITTEN,
        ),
        (
            &|export| export.rewrite(FILES, "\"itemCount\":1", "\"itemCount\":-1"),
            1,
            "`EXPORT/manifest-files.json`: not a data file's entry (line 1, column 15)",
            AS_WRITTEN,
        ),
    ];
    check(&cases);
    let export = Damaged::new(DataFormat::Json);
    std::fs::remove_file(export.path(FILES)).unwrap();
    let run = export.convert(&export.export).exits(1);
    let path = export.path(FILES).display().to_string();
    let expected = format!(
        "error: `{FILES}`: the file is not there; looked at `{path}`\n  hint: {WHOLE_FOLDER}"
    );
    assert!(run.err.contains(&expected), "{}", run.err);
}

#[track_caller]
fn check(cases: &[Case<'_>]) {
    for format in [DataFormat::Json, DataFormat::Ion] {
        for (damage, code, error, hint) in cases {
            let export = Damaged::new(format);
            damage(&export);
            let error = error.replace("X-FORMAT", &format!("X-{}", format.as_str()));
            assert_eq!(export.says(), (*code, error, (*hint).to_owned()));
        }
    }
}

#[test]
fn data_in_the_other_format_is_never_taken_for_this_one() {
    let line_of = |format| match format {
        DataFormat::Json => &b"{\"Item\":{}}\n"[..],
        DataFormat::Ion => b"$ion_1_0 {Item:{}}\n",
    };
    let pairs = [
        (DataFormat::Json, DataFormat::Ion),
        (DataFormat::Ion, DataFormat::Json),
    ];
    for (format, other) in pairs {
        let (name, others) = (format.as_str(), other.as_str());
        let export = Damaged::new(format);
        export.rewrite(SUMMARY, name, others);
        let error = format!(
            "`EXPORT/manifest-files.json`: it lists `NAME` but `manifest-summary.json` says that the \
             format is {others}, whose files end in `{}`",
            other.suffix()
        );
        assert_eq!(export.says(), (1, error, NOT_OF_ONE.to_owned()));
        let export = Damaged::new(format);
        export.replace(&gzip(line_of(other)).unwrap(), 1);
        let error = format!("`DATA`: its first line is in {others} but the manifest says {name}");
        let hint = "the file was changed or renamed; copy it again from where AWS wrote it";
        assert_eq!(export.says(), (1, error, hint.to_owned()));
    }
}

#[test]
fn a_copy_elsewhere_and_an_empty_data_file_are_fine() {
    for format in [DataFormat::Json, DataFormat::Ion] {
        let export = Damaged::new(format);
        export.replace(&gzip(b"").unwrap(), 0);
        export.rewrite(SUMMARY, "\"itemCount\":2", "\"itemCount\":1");
        let copy = export.world.path("elsewhere/copy");
        std::fs::create_dir_all(&copy).unwrap();
        std::fs::rename(&export.export, copy.join("of-it")).unwrap();
        let run = export.convert(&copy.join("of-it")).exits(0);
        assert!(
            run.out.contains("1 items = 1 rows + 0 in quarantine"),
            "{run:#?}"
        );
    }
}
