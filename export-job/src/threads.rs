//! A fixed number of threads for work that keeps a processor busy.
//!
//! The runtime's own pool hands such work to whichever of its many threads is idle. An allocator keeps
//! what a thread has freed for that thread, so that the memory of a conversion would grow with the
//! number of its data files instead of staying that of its workers.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

type Work = Box<dyn FnOnce() + Send>;

/// Threads that take work until they are dropped.
#[derive(Debug, Clone)]
pub(crate) struct Threads {
    work: Sender<Work>,
}

impl Threads {
    /// Starts so many threads, at least one. They end when the last handle is dropped and their work is
    /// done.
    pub(crate) fn start(number: usize) -> std::io::Result<Self> {
        let (work, taken) = mpsc::channel::<Work>();
        let taken = Arc::new(Mutex::new(taken));
        for index in 0..number.max(1) {
            let taken = Arc::clone(&taken);
            thread::Builder::new()
                .name(format!("convert-{index}"))
                .spawn(move || {
                    while let Some(work) = next(&taken) {
                        work();
                    }
                })?;
        }
        Ok(Self { work })
    }

    /// Does a piece of work on one of the threads. `None` if it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, result) = oneshot::channel();
        let work = Box::new(move || {
            // A panic must not take the thread along: others wait for it.
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            if let Ok(outcome) = outcome {
                // Nobody waits any more: the conversion was given up.
                done.send(outcome).ok();
            }
        });
        self.work.send(work).ok()?;
        result.await.ok()
    }
}

fn next(taken: &Mutex<Receiver<Work>>) -> Option<Work> {
    taken
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_and_a_panic_is_told() {
        let threads = Threads::start(2).unwrap();
        assert_eq!(threads.run(|| 1 + 1).await, Some(2));
        assert_eq!(threads.run(|| panic!("on purpose")).await, None::<()>);
        let names = futures::future::join_all(
            (0..20).map(|_| threads.run(|| thread::current().name().map(str::to_owned))),
        )
        .await;
        let mut names: Vec<_> = names.into_iter().flatten().flatten().collect();
        names.sort();
        names.dedup();
        assert!(names.len() <= 2, "{names:?}");
    }
}
