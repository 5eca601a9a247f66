//! The lake, and the functions that feed it: real binaries, failing puts, `kill -9`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dynalake_pipeline::store::Store;
use dynalake_schemas::Catalog;
use dynalake_tests::{
    Action, FaultProxy, Invocation, LambdaError, LambdaProcess, ProxiedRequest, Random, S3Place,
    binary, repository, seaweed,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::source::{Record, Source};

/// Secret of the `hmac_sha256` columns.
pub const SECRET: &str = "a-secret-of-the-deployment-0123456789";

/// Where the lake is.
enum Place {
    Local(PathBuf),
    S3(S3Place, FaultProxy),
}

/// What is done to the invocations of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Puts fail for good.
    Puts,
    /// The first attempt at a put fails; the client tries again by itself.
    Passing,
    /// Processes are killed at work.
    Kill,
}

/// A lake with its functions.
pub struct Lake {
    /// Folder of everything that this lake needs on the disk.
    pub folder: TempDir,
    /// The lake.
    pub store: Store,
    /// Its schemas.
    pub catalog: Arc<Catalog>,
    place: Place,
    functions: Vec<LambdaProcess>,
    /// Invocations that succeeded, and that did not.
    pub succeeded: usize,
    /// See `succeeded`.
    pub failed: usize,
}

impl Lake {
    /// A new lake on the local disk, or in SeaweedFS; `None` without it.
    pub fn new(on_s3: bool, functions: usize) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        write_schemas(&folder.path().join("schemas"));
        let (place, store) = if on_s3 {
            let server = seaweed()?;
            let place = server.place("proof");
            let store = place.store();
            (Place::S3(place, FaultProxy::start(server.address())), store)
        } else {
            let lake = folder.path().join("lake");
            (Place::Local(lake.clone()), Store::local(lake))
        };
        let mut lake = Self {
            catalog: Arc::new(Catalog::load(&folder.path().join("schemas")).unwrap()),
            folder,
            store,
            place,
            functions: vec![],
            succeeded: 0,
            failed: 0,
        };
        for _ in 0..functions {
            let function = lake.start();
            lake.functions.push(function);
        }
        Some(lake)
    }

    fn start(&self) -> LambdaProcess {
        let schemas = self.folder.path().join("schemas").display().to_string();
        let mut variables = vec![
            ("DYNALAKE_SCHEMAS", schemas),
            ("DYNALAKE_HMAC_KEY", SECRET.to_owned()),
        ];
        match &self.place {
            Place::Local(lake) => variables.push(("DYNALAKE_LAKE", lake.display().to_string())),
            Place::S3(place, proxy) => {
                variables.push(("DYNALAKE_LAKE", place.uri()));
                variables.push(("DYNALAKE_S3_ENDPOINT", proxy.endpoint()));
                variables.push(("DYNALAKE_S3_PATH_STYLE", "true".to_owned()));
                for (name, value) in S3Place::aws_variables() {
                    variables.push((name, value.to_owned()));
                }
            }
        }
        let variables: Vec<(&str, &str)> = variables
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        LambdaProcess::start(&binary("stream"), &variables)
            .unwrap_or_else(|error| panic!("no start:\n{}", error.text()))
    }

    /// One round of deliveries: some shards' next records at the same time, each by a function of
    /// its own. What fails stays, and comes again in another cut; what succeeds may come again.
    pub fn deliver(&mut self, source: &mut Source, random: &mut Random) {
        let mut shards = source.readable();
        random.shuffle(&mut shards);
        shards.truncate(1 + random.below(self.functions.len()));
        let fault = match random.below(20) {
            0 | 1 => Fault::Puts,
            2 => Fault::Passing,
            3 => Fault::Kill,
            _ => Fault::None,
        };
        let most = *random.pick(&[1, 5, 30, 100]);
        let batches: Vec<(usize, Vec<Record>)> = shards
            .into_iter()
            .map(|shard| {
                let waiting = &source.shards[shard].waiting;
                let size = (1 + random.below(most)).min(waiting.len());
                (shard, waiting.iter().take(size).cloned().collect())
            })
            .collect();
        let batches: Vec<(usize, usize, Vec<Record>)> = batches
            .into_iter()
            .enumerate()
            .map(|(function, (shard, batch))| (function, shard, batch))
            .collect();
        let answers = self.round(&batches, fault, random);
        for ((_, shard, batch), answer) in batches.iter().zip(answers) {
            let shard = &mut source.shards[*shard];
            if !answer {
                self.failed += 1;
                continue;
            }
            self.succeeded += 1;
            shard.waiting.drain(..batch.len());
            shard.done.extend(batch.iter().cloned());
            match random.below(20) {
                // The service forgets that the batch was done.
                0 => self.again(batch),
                // It goes back, and the next batch begins with records that were delivered.
                1 | 2 => {
                    for _ in 0..=random.below(shard.done.len().min(20)) {
                        if let Some(record) = shard.done.pop() {
                            shard.waiting.push_front(record);
                        }
                    }
                }
                // Somebody replays old events.
                3 => {
                    let from = random.below(shard.done.len());
                    let size = (1 + random.below(30)).min(shard.done.len() - from);
                    self.again(&shard.done[from..from + size]);
                }
                _ => {}
            }
        }
    }

    /// Sends records that are done already.
    fn again(&mut self, records: &[Record]) {
        let answer = self.functions[0].invoke(event(records));
        assert!(is_done(answer), "an undisturbed invocation failed");
    }

    /// Invokes functions at the same time under a fault; true for those that succeeded.
    fn round(
        &mut self,
        batches: &[(usize, usize, Vec<Record>)],
        fault: Fault,
        random: &mut Random,
    ) -> Vec<bool> {
        let obstacle = self.begin_fault(fault, random);
        let before = self.objects();
        let begun: Vec<(usize, Invocation)> = batches
            .iter()
            .map(|(function, _, batch)| (*function, self.functions[*function].begin(event(batch))))
            .collect();
        if fault == Fault::Kill {
            self.kill_at_work(&begun, before);
        }
        let answers = begun
            .iter()
            .map(|(function, invocation)| self.functions[*function].wait(invocation))
            .map(|answer| match fault {
                Fault::None | Fault::Passing => {
                    assert!(
                        answer.is_ok(),
                        "an undisturbed invocation failed: {answer:?}"
                    );
                    is_done(answer)
                }
                Fault::Puts | Fault::Kill => answer.is_ok() && is_done(answer),
            })
            .collect();
        if let Place::S3(_, proxy) = &self.place {
            proxy.heal();
        }
        if let Some((folder, aside)) = obstacle {
            std::fs::remove_file(&folder).unwrap();
            std::fs::rename(aside, folder).unwrap();
        }
        for function in 0..self.functions.len() {
            if !self.functions[function].is_alive() {
                self.functions[function] = self.start();
            }
        }
        answers
    }

    /// Makes puts fail. On the local disk a file takes the place of a table's folder meanwhile.
    fn begin_fault(&self, fault: Fault, random: &mut Random) -> Option<(PathBuf, PathBuf)> {
        match (&self.place, fault) {
            (Place::S3(_, proxy), Fault::Puts) => {
                let nth = random.below(4);
                proxy.fail_put(
                    nth,
                    *random.pick(&[Action::Deny, Action::Deny, Action::SlowDown]),
                );
            }
            (Place::S3(_, proxy), Fault::Passing) => {
                let nth = random.below(4);
                let action = *random.pick(&[Action::Reset, Action::DropAnswer, Action::SlowDown]);
                proxy.set(move |request| {
                    if request.method == "PUT" && request.nth == nth && request.attempt == 0 {
                        action
                    } else {
                        Action::Pass
                    }
                });
            }
            (Place::S3(_, proxy), Fault::Kill) => {
                // The first object's put goes on until the process is gone.
                proxy.fail_put(0, Action::SlowDown);
            }
            (Place::Local(lake), Fault::Puts) => {
                let tables = folders(&lake.join("changes"));
                if !tables.is_empty() {
                    let folder = random.pick(&tables).clone();
                    let aside = lake.join("changes/.aside");
                    std::fs::rename(&folder, &aside).unwrap();
                    std::fs::write(&folder, b"in the way").unwrap();
                    return Some((folder, aside));
                }
            }
            _ => {}
        }
        None
    }

    /// Kills functions when they have begun to store.
    fn kill_at_work(&mut self, begun: &[(usize, Invocation)], before: usize) {
        match &self.place {
            Place::S3(_, proxy) => {
                // A batch may have nothing to store; then the function is killed at rest.
                let first = |request: &ProxiedRequest| request.method == "PUT" && request.nth == 0;
                proxy.comes_within(Duration::from_secs(3), first);
            }
            Place::Local(_) => {
                // Until something appears, or they are idle again; a batch whose objects are all
                // there already changes nothing.
                for _ in 0..50 {
                    if self.objects() != before {
                        break;
                    }
                }
            }
        }
        for (function, _) in begun {
            self.functions[*function].kill();
        }
    }

    /// Number of change objects of a local lake.
    fn objects(&self) -> usize {
        match &self.place {
            Place::Local(lake) => folders(&lake.join("changes"))
                .iter()
                .flat_map(|table| folders(table))
                .map(|day| std::fs::read_dir(day).map_or(0, Iterator::count))
                .sum(),
            Place::S3(..) => 0,
        }
    }
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}

fn event(records: &[Record]) -> String {
    let records: Vec<&Value> = records.iter().map(|record| &record.body).collect();
    json!({"Records": records}).to_string()
}

fn is_done(answer: Result<Value, LambdaError>) -> bool {
    answer.is_ok_and(|answer| answer == json!({"batchItemFailures": []}))
}

/// The schemas of the example shop, and shipments, which change their entity with their state.
fn write_schemas(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    let shop = repository().join("schemas/ecommerce");
    let shipments = repository().join("tests/fixtures/schemas/shop");
    let names = ["open_shipment.toml", "closed_shipment.toml"];
    let moving = names.iter().map(|name| shipments.join(name));
    let files = std::fs::read_dir(shop).unwrap();
    for path in files.map(|file| file.unwrap().path()).chain(moving) {
        // The lock is of the shop alone.
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            std::fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
}
