//! Runs points of a folder.

use super::super::pool::Extras;
use super::super::{LatencyBounds, Watch};
use super::store::Folder;
use crate::run::phases::{pairs, words};
use crate::{Plan, Planned};
use report::Failure;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use wire::Duration;

/// Time between two looks at the request to stop.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);

/// How points run.
pub struct Work<'a> {
    /// Number of points at once.
    pub threads: usize,
    /// Maximum time for a point.
    pub timeout: Option<Duration>,
    /// Time since some start.
    pub clock: &'a (dyn Fn() -> Duration + Sync),
    /// The bounds of a search.
    pub bounds: fn(&Planned) -> LatencyBounds,
}

impl Folder {
    /// Runs the missing ones of the points `only`, also if some fail. Returns the failures that
    /// cannot be written, by point.
    ///
    /// # Errors
    /// If the plan cannot be read on this machine, or has other files here.
    pub fn work(
        &self,
        only: &[usize],
        work: &Work<'_>,
        watch: &Watch<'_>,
    ) -> Result<BTreeMap<usize, String>, Failure> {
        let wrong = |why: String| Failure(format!("{}: {why}", self.path().display()));
        if let Some(number) = only.iter().find(|number| **number >= self.count()) {
            return Err(wrong(format!("no point {number}: there are {}", self.count())));
        }
        let plan = self.job().plan(self.machine()).map_err(wrong)?;
        let (next, unwritten) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let is_stopped = watch.is_stopped;
        std::thread::scope(|scope| {
            let (send, receive) = channel();
            for _ in 0..work.threads.min(only.len()).max(1) {
                let (send, next, unwritten, plan) = (send.clone(), &next, &unwritten, &plan);
                scope.spawn(move || {
                    while !is_stopped() {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(number) = only.get(at) else { break };
                        if !self.is_done(*number)
                            && let Some(why) = self.run(plan, *number, work, is_stopped)
                        {
                            unwritten.lock().expect("no worker panics").insert(*number, why);
                        }
                        if send.send(()).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(send);
            let mut over = 0;
            loop {
                match receive.recv_timeout(LOOK) {
                    Ok(()) => over += 1,
                    Err(RecvTimeoutError::Timeout) => {
                        let text = format!("{over} of {} points", only.len());
                        (watch.progress)(Some(&text));
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        (watch.progress)(None);
        Ok(unwritten.into_inner().expect("no worker panics"))
    }

    /// Runs a point. Returns why it failed if that cannot be written.
    fn run(
        &self,
        plan: &Plan,
        number: usize,
        work: &Work<'_>,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Option<String> {
        let why = self.results(plan, number, work, is_stopped).err()?;
        match self.fail(number, &why) {
            Ok(()) => None,
            Err(_) => Some(why),
        }
    }

    fn results(
        &self,
        plan: &Plan,
        number: usize,
        work: &Work<'_>,
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), String> {
        let since = (work.clock)();
        let took = || Duration::from_ps((work.clock)().as_ps().saturating_sub(since.as_ps()));
        let is_late = || work.timeout.is_some_and(|limit| took() > limit);
        let is_over = || is_stopped() || is_late();
        let watch = Watch { is_stopped: &is_over, progress: &|_| {} };
        let point = self.job().point(plan, number, work.bounds);
        let mut point = point.map_err(|error| error.to_string())?;
        let extras = Extras { one_by_one: true, ..Extras::default() };
        let documents = point.simulate("", &extras, &watch)?;
        match point.document(&documents) {
            Some(document) => {
                let set = words("", pairs(&point.set));
                let written = self.write(number, (&set, &documents), &document, took());
                let path = self.point(number);
                written.map_err(|error| format!("cannot write {}: {error}", path.display()))
            }
            None if is_late() => {
                let limit = work.timeout.unwrap_or(Duration::ZERO).as_ns() as f64 / 1e9;
                Err(format!("took longer than {limit} s, the limit of a point"))
            }
            None => Ok(()),
        }
    }
}
