//! A thread for system calls on files of a client, which may block for ever.
//!
//! The server of a file system can be slow, hang (NFS) or be the client itself (FUSE). Then a read,
//! a write and even a close sleep as long as that server likes, perhaps beyond the end of the
//! process. A [`Worker`] per client makes these calls, and the node's loop never waits for it.
//!
//! A thread that hangs in the kernel cannot be ended. A client that connects repeatedly must
//! not leave one behind each time: an endpoint has at most [`MAX_WORKERS`], and takes no client
//! while all of them are busy.

mod client_file;

pub use client_file::ClientFile;

use bytes::Bytes;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};

/// Threads of one endpoint: that of its client, and those of earlier clients that still hang.
pub const MAX_WORKERS: usize = 16;

/// Names a job: the access, and the byte offset in it.
pub type JobId = (u64, usize);

/// The result of a job: a read's bytes, or no bytes for a write; `None` if some bytes do not exist.
pub type Ended = (JobId, Option<Bytes>);

/// The workers of one endpoint.
#[derive(Debug)]
pub struct Workers {
    /// Each thread holds a copy.
    alive: Arc<()>,
    /// Readable when a job has ended; see [`clear_wake`](Self::clear_wake).
    pub wake: Arc<OwnedFd>,
}

impl Workers {
    /// No workers yet. Error: if the kernel gives no eventfd.
    pub fn new() -> Result<Self, Errno> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { alive: Arc::new(()), wake: Arc::new(wake) })
    }

    /// Whether another client can have a worker.
    pub fn has_room(&self) -> bool {
        Arc::strong_count(&self.alive) <= MAX_WORKERS
    }

    /// A worker for a client. Its thread starts with the first job.
    pub fn for_client(&self) -> Worker {
        self.with(Arc::downgrade(&self.alive))
    }

    /// A worker of the endpoint itself; its thread does not count among those of clients.
    pub fn for_endpoint(&self) -> Worker {
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
    pub fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

/// Bytes of a client's file.
#[derive(Clone, Debug)]
pub struct FilePosition {
    /// The file.
    pub file: Arc<ClientFile>,
    /// The first byte.
    pub offset: u64,
}

struct Job {
    /// `None` if it only drops a value.
    id: Option<JobId>,
    work: Box<dyn FnOnce() -> Option<Bytes> + Send>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs without an ID, waiting or running.
    drops: usize,
    ended: VecDeque<Ended>,
    running: bool,
    dismissed: bool,
}

struct Shared {
    state: Mutex<State>,
    /// A new job, or the client has disconnected.
    more: Condvar,
    alive: Weak<()>,
    wake: Arc<OwnedFd>,
}

/// Drops values in the worker's thread.
#[derive(Clone, Debug)]
pub struct Disposal(Arc<Shared>);

/// One client's thread. On drop it ends as soon as it can.
#[derive(Debug)]
pub struct Worker(Arc<Shared>);

impl Worker {
    /// Reads `length` bytes.
    pub fn read(&self, id: JobId, position: FilePosition, length: usize) {
        self.0.push(Some(id), move || {
            let mut bytes = vec![0; length];
            let whole = whole(length, |done| {
                rustix::io::pread(
                    &*position.file,
                    &mut bytes[done..],
                    position.offset + done as u64,
                )
            });
            whole.then(|| bytes.into())
        });
    }

    /// Writes bytes.
    pub fn write(&self, id: JobId, position: FilePosition, data: Bytes) {
        self.0.push(Some(id), move || {
            let whole = whole(data.len(), |done| {
                rustix::io::pwrite(&*position.file, &data[done..], position.offset + done as u64)
            });
            whole.then(Bytes::new)
        });
    }

    /// Cancels a job that has not begun.
    pub fn cancel(&self, id: JobId) {
        let mut state = self.0.lock();
        let at = state.jobs.iter().position(|job| job.id == Some(id));
        let job = at.and_then(|at| state.jobs.remove(at));
        // Dropping it may close a file: not under the lock.
        drop((state, job));
    }

    /// The next job that has ended.
    pub fn next_ended(&self) -> Option<Ended> {
        self.0.lock().ended.pop_front()
    }

    /// How many values it has not yet dropped.
    pub fn disposals(&self) -> usize {
        self.0.lock().drops
    }

    /// Drops values in this worker's thread.
    pub fn disposal(&self) -> Disposal {
        Disposal(self.0.clone())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.dismissed = true;
        let (jobs, drops) =
            std::mem::take(&mut state.jobs).into_iter().partition(|job| job.id.is_some());
        state.jobs = drops;
        drop(state);
        self.0.more.notify_one();
        drop::<VecDeque<Job>>(jobs);
    }
}

impl Disposal {
    /// Drops `thing` after the jobs that the worker was given so far.
    pub fn dispose(&self, thing: impl Send + 'static) {
        self.0.push(None, move || {
            drop(thing);
            None
        });
    }
}

/// Repeats a partial transfer until `length` bytes are done.
fn whole(length: usize, mut transfer: impl FnMut(usize) -> Result<usize, Errno>) -> bool {
    let mut done = 0;
    while done < length {
        match transfer(done) {
            Ok(0) => return false,
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock")
    }

    fn push(
        self: &Arc<Self>,
        id: Option<JobId>,
        work: impl FnOnce() -> Option<Bytes> + Send + 'static,
    ) {
        let mut state = self.lock();
        state.drops += usize::from(id.is_none());
        state.jobs.push_back(Job { id, work: Box::new(work) });
        if !state.running {
            let (own, alive) = (self.clone(), self.alive.upgrade());
            let thread = std::thread::Builder::new().name("client files".to_owned());
            // If no thread starts, the next job tries again.
            state.running = thread.spawn(move || own.work(alive)).is_ok();
        }
        drop(state);
        self.more.notify_one();
    }

    /// The thread's loop.
    fn work(&self, alive: Option<Arc<()>>) {
        let mut state = self.lock();
        loop {
            let Some(job) = state.jobs.pop_front() else {
                if state.dismissed {
                    state.running = false;
                    break;
                }
                state = self.more.wait(state).expect("nobody panics with the lock");
                continue;
            };
            drop(state);
            let Job { id, work } = job;
            let result = work();
            state = self.lock();
            state.drops -= usize::from(id.is_none());
            let wanted = id.filter(|_| !state.dismissed);
            state.ended.extend(wanted.map(|id| (id, result)));
            self.wake();
        }
        drop((state, alive));
        // Only now may another client have a thread.
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
