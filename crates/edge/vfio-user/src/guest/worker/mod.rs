//! A thread that drops the values of a client, because a drop can block for ever.
//!
//! The server of a file system can be slow, can hang (NFS) or can be the client itself (FUSE). Then
//! closing a file can block for ever, even during the exit of the process. One [`Worker`] per
//! client closes the descriptors; the node's event loop never waits for the worker.
//!
//! A thread that hangs in the kernel cannot be ended. Clients that connect repeatedly could create
//! many hanging threads. Therefore an endpoint has at most [`MAX_WORKERS`] threads, and accepts no
//! client while all of them are in use.

mod client_file;

pub use client_file::ClientFile;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

/// The maximum number of threads of one endpoint: the thread of the client and hanging threads of
/// earlier clients.
pub(crate) const MAX_WORKERS: usize = 16;

/// The workers of one endpoint.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Counts the threads: each thread has a clone.
    alive: Arc<()>,
    /// An eventfd that is readable after a value was dropped or a thread has ended, until
    /// [`clear_wake`](Self::clear_wake).
    pub wake: Arc<OwnedFd>,
}

impl Workers {
    /// Creates the value without workers. Error: as eventfd.
    pub(crate) fn new() -> Result<Self, Errno> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { alive: Arc::new(()), wake: Arc::new(wake) })
    }

    /// Whether a worker for another client can be created.
    pub(crate) fn has_room(&self) -> bool {
        Arc::strong_count(&self.alive) <= MAX_WORKERS
    }

    /// A worker for a client. The thread starts when the first value is to be dropped.
    pub(crate) fn for_client(&self) -> Worker {
        self.with(Arc::downgrade(&self.alive))
    }

    /// A worker for the endpoint itself. The thread does not count towards [`MAX_WORKERS`].
    pub(crate) fn for_endpoint(&self) -> Worker {
        self.with(Weak::new())
    }

    fn with(&self, alive: Weak<()>) -> Worker {
        Worker(Arc::new(Shared {
            state: Mutex::default(),
            more: Condvar::new(),
            alive,
            wake: self.wake.clone(),
        }))
    }

    /// Makes [`wake`](Self::wake) unreadable until the next event.
    pub(crate) fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

#[derive(Default)]
struct State {
    /// Values that wait to be dropped.
    values: VecDeque<Box<dyn Send>>,
    /// Number of values that are not yet dropped, including the value that is being dropped.
    disposals: usize,
    running: bool,
    dismissed: bool,
}

struct Shared {
    state: Mutex<State>,
    /// Signals the thread that there is another value or that the [`Worker`] was dropped.
    more: Condvar,
    alive: Weak<()>,
    wake: Arc<OwnedFd>,
}

/// Drops values in the worker's thread.
#[derive(Clone, Debug)]
pub(crate) struct Disposal(Arc<Shared>);

/// The thread of one client. When this value is dropped, the thread ends after it has dropped all
/// values.
#[derive(Debug)]
pub(crate) struct Worker(Arc<Shared>);

impl Worker {
    /// Number of values not yet dropped.
    pub(crate) fn disposals(&self) -> usize {
        self.0.lock().disposals
    }

    /// A [`Disposal`] for this worker's thread.
    pub(crate) fn disposal(&self) -> Disposal {
        Disposal(self.0.clone())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.lock().dismissed = true;
        self.0.more.notify_one();
    }
}

impl Disposal {
    /// Number of values that the worker has not yet dropped.
    pub(crate) fn pending(&self) -> usize {
        self.0.lock().disposals
    }

    /// Drops `value` in the worker's thread, after all earlier values.
    pub(crate) fn dispose(&self, value: impl Send + 'static) {
        self.0.push(Box::new(value));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock")
    }

    fn push(self: &Arc<Self>, value: Box<dyn Send>) {
        let mut state = self.lock();
        state.disposals += 1;
        state.values.push_back(value);
        if !state.running {
            let (own, alive) = (self.clone(), self.alive.upgrade());
            let thread = std::thread::Builder::new().name("client files".to_owned());
            // If the thread cannot be started, the next value tries to start it again.
            state.running = thread.spawn(move || own.work(alive)).is_ok();
        }
        drop(state);
        self.more.notify_one();
    }

    /// The loop of the thread.
    fn work(&self, alive: Option<Arc<()>>) {
        let mut state = self.lock();
        loop {
            let Some(value) = state.values.pop_front() else {
                if state.dismissed {
                    state.running = false;
                    break;
                }
                state = self.more.wait(state).expect("nobody panics with the lock");
                continue;
            };
            drop(state);
            drop(value);
            state = self.lock();
            state.disposals -= 1;
            self.wake();
        }
        drop((state, alive));
        // Only from here on the thread no longer counts.
        self.wake();
    }

    /// Wakes the node's event loop.
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
