//! Results and messages that other threads send to the loop of a node, with an eventfd that wakes the
//! loop.

use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The sending end, for threads.
#[derive(Debug)]
pub struct Finished<T> {
    results: Sender<T>,
    signal: Arc<OwnedFd>,
}

impl<T> Clone for Finished<T> {
    fn clone(&self) -> Self {
        Self { results: self.results.clone(), signal: self.signal.clone() }
    }
}

impl<T> Finished<T> {
    /// Sends results, then wakes the loop once.
    pub fn send(&self, results: impl IntoIterator<Item = T>) {
        // Errors do not matter: without a receiver no result is needed, and the counter never fills
        // up.
        results.into_iter().for_each(|result| drop(self.results.send(result)));
        let _ = rustix::io::write(&*self.signal, &1u64.to_ne_bytes());
    }
}

/// The receiving end, for the loop.
pub struct Completions<T> {
    results: Receiver<T>,
    signal: Arc<OwnedFd>,
}

impl<T> fmt::Debug for Completions<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completions").finish_non_exhaustive()
    }
}

impl<T> Completions<T> {
    /// The next result; `None` if there is none now.
    pub fn poll(&self) -> Option<T> {
        self.results.try_recv().ok()
    }

    /// Waits for the next result; `None` if all senders were dropped.
    pub fn wait(&self) -> Option<T> {
        self.results.recv().ok()
    }

    /// Makes [`signal`](Self::signal) unreadable again. Call this before [`poll`](Self::poll), so
    /// that no result in between is missed.
    pub fn clear_signal(&self) {
        let _ = rustix::io::read(&*self.signal, &mut [0u8; 8]);
    }

    /// A descriptor that is readable when there may be a result.
    pub fn signal(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }
}

/// Creates both ends.
///
/// # Errors
/// As eventfd(2).
pub fn completions<T>() -> io::Result<(Finished<T>, Completions<T>)> {
    let signal = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
    let (sender, results) = channel();
    Ok((Finished { results: sender, signal: signal.clone() }, Completions { results, signal }))
}
