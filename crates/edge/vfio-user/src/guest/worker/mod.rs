//! A thread that drops a client's values, because a drop may block for ever.
//!
//! The server of a file system can be slow, hang (NFS) or be the client itself (FUSE). Then even a
//! close may sleep for ever, even beyond the end of the process. A [`Worker`] per client closes
//! descriptors, and the node's loop never waits for it.
//!
//! A thread that hangs in the kernel cannot be ended. To limit such threads when clients connect
//! repeatedly, an endpoint has at most [`MAX_WORKERS`] and accepts no client while all of them are
//! busy.

mod client_file;

pub use client_file::ClientFile;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

/// Threads of one endpoint: one for its client, and the threads of earlier clients that still hang.
pub(crate) const MAX_WORKERS: usize = 16;

/// The workers of one endpoint.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Counts the threads, each of which has a clone.
    alive: Arc<()>,
    /// Readable when a value was dropped; see [`clear_wake`](Self::clear_wake).
    pub wake: Arc<OwnedFd>,
}

impl Workers {
    /// No workers yet. Error: if the kernel gives no eventfd.
    pub(crate) fn new() -> Result<Self, Errno> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { alive: Arc::new(()), wake: Arc::new(wake) })
    }

    /// Whether another client can have a worker.
    pub(crate) fn has_room(&self) -> bool {
        Arc::strong_count(&self.alive) <= MAX_WORKERS
    }

    /// A worker for a client. Its thread starts with the first value.
    pub(crate) fn for_client(&self) -> Worker {
        self.with(Arc::downgrade(&self.alive))
    }

    /// A worker of the endpoint itself; its thread does not count as a thread of a client.
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

    /// Clears the event of [`wake`](Self::wake).
    pub(crate) fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

#[derive(Default)]
struct State {
    /// Values that wait for their drop.
    values: VecDeque<Box<dyn Send>>,
    /// Values not yet dropped, including the one being dropped.
    disposals: usize,
    running: bool,
    dismissed: bool,
}

struct Shared {
    state: Mutex<State>,
    /// Signals that there is another value, or that the client has disconnected.
    more: Condvar,
    alive: Weak<()>,
    wake: Arc<OwnedFd>,
}

/// Drops values in the worker's thread.
#[derive(Clone, Debug)]
pub(crate) struct Disposal(Arc<Shared>);

/// One client's thread. On drop it ends as soon as it can.
#[derive(Debug)]
pub(crate) struct Worker(Arc<Shared>);

impl Worker {
    /// Number of values not yet dropped.
    pub(crate) fn disposals(&self) -> usize {
        self.0.lock().disposals
    }

    /// Drops values in this worker's thread.
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

    /// Drops `value` in the thread, after all earlier values.
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
            // If no thread starts, the next value tries again.
            state.running = thread.spawn(move || own.work(alive)).is_ok();
        }
        drop(state);
        self.more.notify_one();
    }

    /// The thread's loop.
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
        // Only now can another client have a thread.
        self.wake();
    }

    /// Wakes the node's loop.
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
