//! Commits in a thread of their own, so that the loop of a node never waits for the disk.

use super::{Change, DriveFolder};
use crate::completions::{Completions, Finished, completions};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A commit: its ID, and its changes.
type Request = (u64, Vec<Change>);
type Outcome = (u64, io::Result<()>);

/// Commits changes of a drive in the order in which they are started. Those that wait while the
/// disk is busy are committed together. Its owner bounds how many wait.
#[derive(Debug)]
pub struct Committer {
    requests: Option<Sender<Request>>,
    done: Completions<Outcome>,
    thread: Option<JoinHandle<()>>,
}

impl Committer {
    /// The committer of a drive.
    ///
    /// # Errors
    /// As eventfd(2), or if no thread can be started.
    pub fn new(drive: DriveFolder) -> io::Result<Self> {
        let (finished, done) = completions()?;
        let (requests, queue) = channel();
        let name = "commits".to_owned();
        let thread =
            std::thread::Builder::new().name(name).spawn(move || run(&drive, &queue, &finished))?;
        Ok(Self { requests: Some(requests), done, thread: Some(thread) })
    }

    /// Starts a commit, which comes out of [`poll_completion`](Self::poll_completion).
    ///
    /// # Panics
    /// After [`close`](Self::close).
    pub fn start(&self, id: u64, changes: Vec<Change>) {
        let requests = self.requests.as_ref().expect("it is not closed");
        requests.send((id, changes)).expect("the thread lives as long as the sender");
    }

    /// The next commit that has ended: its ID, and whether it is durable; if not, nothing of it has
    /// changed (see [`DriveFolder::commit`]).
    pub fn poll_completion(&self) -> Option<(u64, io::Result<()>)> {
        self.done.poll()
    }

    /// Makes [`signal`](Self::signal) unreadable again. Call it before
    /// [`poll_completion`](Self::poll_completion), so that no completion in between is missed.
    pub fn clear_signal(&self) {
        self.done.clear_signal();
    }

    /// A descriptor that is readable when a commit may have ended.
    pub fn signal(&self) -> BorrowedFd<'_> {
        self.done.signal()
    }

    /// Waits for all commits; their outcomes can still be polled.
    pub fn close(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("commits do not panic");
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(drive: &DriveFolder, queue: &Receiver<Request>, finished: &Finished<Outcome>) {
    while let Ok(first) = queue.recv() {
        let waiting: Vec<Request> = [first].into_iter().chain(queue.try_iter()).collect();
        let (ids, changes): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        let outcome = drive.commit(&changes.concat());
        finished.send(ids.into_iter().map(|id| (id, copy(&outcome))));
    }
}

/// The same outcome once more.
fn copy(outcome: &io::Result<()>) -> io::Result<()> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::Records;
    use crate::storage::crash::Disk;
    use std::path::Path;

    /// Commits `count` changes that all wait when the thread starts; returns the outcomes.
    fn commit(drive: &DriveFolder, count: u64) -> Vec<Outcome> {
        let (finished, done) = completions().unwrap();
        let (requests, queue) = channel();
        for id in 0..count {
            requests.send((id, vec![("last".into(), Some(id.to_le_bytes().to_vec()))])).unwrap();
        }
        drop(requests);
        run(drive, &queue, &finished);
        std::iter::from_fn(|| done.poll()).collect()
    }

    #[test]
    fn those_that_wait_are_one_commit_in_their_order() {
        let disk = Disk::new();
        let path = Path::new("drive");
        let create = || DriveFolder::create_in(&disk.root(), "drive", path, Records::new(), &[]);
        let drive = create().unwrap();
        let steps = |count| {
            let before = disk.steps();
            let outcomes = commit(&drive, count);
            assert!(outcomes.iter().all(|(_, outcome)| outcome.is_ok()));
            assert!(outcomes.iter().map(|(id, _)| *id).eq(0..count));
            disk.steps() - before
        };
        // The first commit makes the file longer.
        steps(1);
        assert_eq!(steps(1), steps(20));
        assert_eq!(drive.records()["last"], 19_u64.to_le_bytes());
        // Clones are the same disk.
        let _ = disk.clone().stopping_at(disk.steps());
        let outcomes = commit(&drive, 3);
        let errors = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().err());
        assert_eq!(
            errors.filter(|error| error.to_string().contains("drive: the process")).count(),
            3
        );
        assert_eq!(drive.records()["last"], 19_u64.to_le_bytes());
    }
}
