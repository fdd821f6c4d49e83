//! Many simulations, one a thread at a time: parallel across runs, never inside one.

use sim::world::Report;
use sim::{Config, World};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use thiserror::Error;

/// Why a simulation has no results.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failed {
    /// It did not end well.
    #[error("simulation of {name}: {error}")]
    World {
        /// Of what.
        name: String,
        /// Why.
        error: sim::world::Error,
    },
    /// Commands failed, or blocks held something else than was written.
    #[error("simulation of {name}: {failures} commands failed, {mismatches} blocks were wrong")]
    Data {
        /// Of what.
        name: String,
        /// Commands with an error status.
        failures: u64,
        /// Wrong blocks.
        mismatches: u64,
    },
}

impl From<Failed> for report::Failure {
    fn from(failed: Failed) -> Self {
        Self(failed.to_string())
    }
}

/// Queued simulations, by name.
#[derive(Default)]
pub struct Runs {
    queued: Vec<(String, Config)>,
}

impl Runs {
    /// Queues a simulation; yields its index in the results.
    pub fn add(&mut self, name: impl Into<String>, config: Config) -> usize {
        self.queued.push((name.into(), config));
        self.queued.len() - 1
    }

    /// Runs them all; results come in the order of the queue.
    ///
    /// # Errors
    /// The first that failed.
    pub fn run(self) -> Result<Vec<Report>, Failed> {
        let next = AtomicUsize::new(0);
        let done: Vec<Mutex<Option<Result<Report, Failed>>>> =
            self.queued.iter().map(|_| Mutex::new(None)).collect();
        let workers = thread::available_parallelism().map_or(1, usize::from).min(done.len());
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                        && let Some((name, config)) = self.queued.get(at)
                    {
                        let result = one(name, config);
                        *done[at].lock().expect("no worker panics") = Some(result);
                    }
                });
            }
        });
        let result = |slot: Mutex<Option<_>>| slot.into_inner().expect("no worker panics");
        done.into_iter().map(|slot| result(slot).expect("every place was run")).collect()
    }
}

fn one(name: &str, config: &Config) -> Result<Report, Failed> {
    let name = || name.to_owned();
    let report = World::new(config)
        .and_then(|mut world| world.run())
        .map_err(|error| Failed::World { name: name(), error })?;
    let sum = |count: fn(&sim::world::HostReport) -> u64| report.hosts.iter().map(count).sum();
    let (failures, mismatches) = (sum(|host| host.failures), sum(|host| host.mismatches));
    if failures + mismatches > 0 {
        return Err(Failed::Data { name: name(), failures, mismatches });
    }
    Ok(report)
}
