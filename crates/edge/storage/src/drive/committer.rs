//! A thread for commits, so that the loop of a node never waits for the disk.

use super::{DriveFolder, NewContents};
use crate::completions::{Completions, Finished, completions};
use crate::media::{FileMedia, Media};
use nvme::Commit;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// The outcome of a commit. `Ok`: the commit is durable; has the media of created contents, if they
/// can be opened. `Err`: nothing has changed (see [`DriveFolder::commit`]).
pub type Committed = io::Result<Option<FileMedia>>;

enum Request {
    Commit(Commit),
    /// Media to close.
    Close(Box<dyn Media>),
}
type Outcome = (u64, Committed);

/// Commits changes of a drive in the order of their starts. Changes that wait while the disk is
/// busy are committed together. The owner must limit the number of waiting changes.
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

    /// Starts a commit; [`poll_completion`](Self::poll_completion) returns its outcome.
    ///
    /// # Panics
    /// After [`close`](Self::close).
    pub fn start(&self, commit: Commit) {
        self.send(Request::Commit(commit));
    }

    /// Closes the media of removed contents in the thread, because this may take long.
    ///
    /// # Panics
    /// After [`close`](Self::close).
    pub fn close_media(&self, media: Box<dyn Media>) {
        self.send(Request::Close(media));
    }

    fn send(&self, request: Request) {
        let requests = self.requests.as_ref().expect("it is not closed");
        requests.send(request).expect("the thread lives as long as the sender");
    }

    /// The ID and the outcome of the next commit that has ended.
    pub fn poll_completion(&self) -> Option<(u64, Committed)> {
        self.done.poll()
    }

    /// Waits until a started commit has ended; returns ID and outcome, or `None` after
    /// [`close`](Self::close).
    pub fn wait(&self) -> Option<(u64, Committed)> {
        self.done.wait()
    }

    /// Makes [`signal`](Self::signal) unreadable again. Call this before
    /// [`poll_completion`](Self::poll_completion), so that no completion in between is missed.
    pub fn clear_signal(&self) {
        self.done.clear_signal();
    }

    /// A descriptor that is readable when a commit may have ended.
    pub fn signal(&self) -> BorrowedFd<'_> {
        self.done.signal()
    }

    /// Waits for all commits and ends the thread. Outcomes can still be polled.
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
    let mut waiting = VecDeque::new();
    loop {
        if waiting.is_empty() {
            let Ok(first) = queue.recv() else { return };
            waiting.push_back(first);
        }
        waiting.extend(queue.try_iter());
        match waiting.pop_front().expect("there is one") {
            Request::Close(media) => drop(media),
            Request::Commit(commit) if are_records_alone(&commit) => {
                let (mut ids, mut changes) = (vec![commit.id], commit.changes);
                while let Some(Request::Commit(next)) = waiting.front_mut()
                    && are_records_alone(next)
                {
                    ids.push(next.id);
                    changes.append(&mut next.changes);
                    waiting.pop_front();
                }
                let outcome = drive.commit(&changes);
                finished.send(ids.into_iter().map(|id| (id, copy(&outcome).map(|()| None))));
            }
            Request::Commit(one) => finished.send([(one.id, commit(drive, one))]),
        }
    }
}

fn are_records_alone(commit: &Commit) -> bool {
    commit.create.is_none() && commit.remove.is_empty()
}

/// Executes a commit that creates or removes contents. New contents are sparse files, as an SSD
/// allocates space on write. They have checksums if any contents of the drive have.
fn commit(drive: &DriveFolder, Commit { create, mut changes, remove, .. }: Commit) -> Committed {
    let checksums = create.is_some() && drive.contents()?.iter().any(|one| one.checksums);
    let create =
        create.map(|one| NewContents { name: one.name, size: one.bytes, sparse: true, checksums });
    if let Some(new) = &create {
        changes.push(drive.create_contents(new)?);
    }
    for contents in &remove {
        changes.push(DriveFolder::forget_contents(&contents.name)?);
    }
    drive.commit(&changes)?;
    for contents in &remove {
        // If this fails, the next opening of the drive removes the contents.
        let _ = drive.remove_contents(&contents.name);
    }
    Ok(create.and_then(|new| drive.open_contents(&new.name).ok()))
}

/// Copies the outcome.
fn copy(outcome: &io::Result<()>) -> io::Result<()> {
    match outcome {
        Ok(()) => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}
