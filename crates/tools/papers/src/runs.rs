//! Runs many simulations in parallel, each in one thread.

use report::Failure;
use sim::world::Report;
use sim::{Config, World};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Queued simulations, by name.
#[derive(Default)]
pub struct Runs {
    queued: Vec<(String, Config)>,
}

impl Runs {
    /// Queues a simulation; returns its index in the results.
    pub fn add(&mut self, name: impl Into<String>, config: Config) -> usize {
        self.queued.push((name.into(), config));
        self.queued.len() - 1
    }

    /// Runs all simulations. Results have the order of the queue.
    ///
    /// # Errors
    /// The first simulation that failed, in which commands failed, or that read other data than
    /// were written.
    pub fn run(self) -> Result<Vec<Report>, Failure> {
        let next = AtomicUsize::new(0);
        let done: Vec<Mutex<Option<Result<Report, Failure>>>> =
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

fn one(name: &str, config: &Config) -> Result<Report, Failure> {
    let report = World::new(config)
        .and_then(|mut world| world.run())
        .map_err(|error| Failure(format!("simulation of {name}: {error}")))?;
    let sum =
        |count: fn(&sim::world::HostReport) -> u64| -> u64 { report.hosts.iter().map(count).sum() };
    let (failures, mismatches) = (sum(|host| host.failures), sum(|host| host.mismatches));
    if failures + mismatches > 0 {
        return Err(Failure(format!(
            "simulation of {name}: {failures} commands failed, {mismatches} blocks were wrong"
        )));
    }
    Ok(report)
}
