//! Requests to a node from another thread or a signal handler.

use crate::Control;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use switch::congestion::Rate;

/// Requests to stop, to print the counters, or to switch the trace.
///
/// A signal handler sets one of the flags and writes to [`waker`](Self::waker).
#[derive(Debug)]
pub struct Stop {
    /// Set to stop the node.
    pub flag: Arc<AtomicBool>,
    /// Set to print the counters.
    pub report: Arc<AtomicBool>,
    /// Set to a [`TraceSwitch`].
    pub trace: Arc<AtomicUsize>,
    /// Number of the request for the state; 0: none.
    status: Arc<AtomicU64>,
    /// The rate limit to change to.
    rate_limit: Arc<(AtomicBool, Mutex<Option<Rate>>)>,
    /// Set to read the file of peers again.
    pub reload: Arc<AtomicBool>,
    wake: UnixStream,
    waker: UnixStream,
}

impl Stop {
    /// A value without a request.
    ///
    /// # Errors
    /// If no socket pair can be created.
    pub fn new() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let [flag, report, reload] = Default::default();
        let (trace, status, rate_limit) = Default::default();
        Ok(Self { flag, report, trace, status, rate_limit, reload, wake, waker })
    }

    /// Requests of another thread that stops with this one.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn sharing(&self) -> io::Result<Self> {
        Ok(Self { flag: self.flag.clone(), ..Self::new()? })
    }

    /// A stream that wakes the node when a byte is written to it.
    ///
    /// # Errors
    /// As `dup(2)`.
    pub fn waker(&self) -> io::Result<UnixStream> {
        self.waker.try_clone()
    }

    /// Requests the state of the node, from any thread.
    ///
    /// # Errors
    /// As `dup(2)`.
    pub fn requester(&self) -> io::Result<Requester> {
        let (status, rate_limit) = (self.status.clone(), self.rate_limit.clone());
        Ok(Requester { status, rate_limit, trace: self.trace.clone(), waker: self.waker()? })
    }

    /// The pending request to a node. Requests for counters and for the state are returned once.
    pub fn request(&self) -> Control {
        if self.is_set() {
            return Control::Stop;
        }
        if self.take(&self.report) {
            return Control::Report;
        }
        if self.take(&self.rate_limit.0) {
            let rate = self.rate_limit.1.lock().unwrap_or_else(PoisonError::into_inner);
            return Control::RateLimit(*rate);
        }
        // As in `take`.
        match self.status.load(Ordering::SeqCst) {
            0 => Control::Serve,
            _ => {
                let number = self.status.swap(0, Ordering::SeqCst);
                self.drain();
                Control::Status(number)
            }
        }
    }

    /// The requested switch of the trace, once per request.
    pub fn takes_trace_switch(&self) -> Option<TraceSwitch> {
        // A load alone does not take the cache line from other cores.
        if self.trace.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let request = self.trace.swap(0, Ordering::SeqCst);
        self.drain();
        let all = [TraceSwitch::Toggle, TraceSwitch::Start, TraceSwitch::Stop];
        all.into_iter().find(|switch| *switch as usize == request)
    }

    fn take(&self, flag: &AtomicBool) -> bool {
        let pending = flag.load(Ordering::SeqCst) && flag.swap(false, Ordering::SeqCst);
        if pending {
            self.drain();
        }
        pending
    }

    /// Empties the descriptor. The flag is read before: a signal in between leaves a flag, not a
    /// descriptor that stays readable.
    fn drain(&self) {
        while matches!((&self.wake).read(&mut [0; 64]), Ok(bytes) if bytes > 0) {}
    }

    /// Readable while a request is pending.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Whether the node has to stop.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// Requests the counters of the node, from another thread.
    pub fn request_report(&self) {
        self.report.store(true, Ordering::SeqCst);
        let _ = (&self.waker).write(&[1]);
    }

    /// Requests the node to stop, from another thread.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::SeqCst);
        let _ = (&self.waker).write(&[1]);
    }
}

/// A change of a running trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceSwitch {
    /// Stop it, or start it again.
    Toggle = 1,
    /// Start it again if it is stopped.
    Start,
    /// Stop it.
    Stop,
}

/// Requests to a thread of a node from another thread.
#[derive(Debug)]
pub struct Requester {
    status: Arc<AtomicU64>,
    rate_limit: Arc<(AtomicBool, Mutex<Option<Rate>>)>,
    trace: Arc<AtomicUsize>,
    waker: UnixStream,
}

impl Requester {
    /// Requests the state once; the answer has this number, which is not 0.
    pub fn request(&self, number: u64) {
        self.status.store(number, Ordering::SeqCst);
        self.wake();
    }

    /// Changes the limit of the thread's total output.
    pub fn set_rate_limit(&self, rate: Option<Rate>) {
        *self.rate_limit.1.lock().unwrap_or_else(PoisonError::into_inner) = rate;
        self.rate_limit.0.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Changes the running trace.
    pub fn switch_trace(&self, switch: TraceSwitch) {
        self.trace.store(switch as usize, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        let _ = (&self.waker).write(&[1]);
    }
}
