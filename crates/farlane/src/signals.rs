//! Ctrl-C and SIGTERM end a node in order; a second one ends it at once.
//! SIGUSR1 asks for its counters, SIGUSR2 stops its trace or starts it again.

use live::Control;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a command that a signal ended: 128 and SIGINT, as of shells.
pub const INTERRUPTED: u8 = 130;

/// Requests from signals or another thread: stop, print the counters, or switch the trace.
#[derive(Debug)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    report: Arc<AtomicBool>,
    trace: Arc<AtomicBool>,
    wake: UnixStream,
    waker: UnixStream,
}

impl Stop {
    /// One that only [`stop`](Self::stop) sets. Fails if no socket pair can be had.
    pub fn manual() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let [flag, report, trace] = Default::default();
        Ok(Self { flag, report, trace, wake, waker })
    }

    /// One that SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 set. Fails if the signals cannot be handled.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::manual()?;
        for signal in [SIGINT, SIGTERM] {
            let status = INTERRUPTED.into();
            signal_hook::flag::register_conditional_shutdown(signal, status, stop.flag.clone())?;
            signal_hook::flag::register(signal, stop.flag.clone())?;
            signal_hook::low_level::pipe::register(signal, stop.waker.try_clone()?)?;
        }
        for (signal, flag) in [(SIGUSR1, &stop.report), (SIGUSR2, &stop.trace)] {
            signal_hook::flag::register(signal, flag.clone())?;
            signal_hook::low_level::pipe::register(signal, stop.waker.try_clone()?)?;
        }
        Ok(stop)
    }

    /// The pending request to a node. A request for counters is returned once.
    pub fn request(&self) -> Control {
        if self.is_set() {
            return Control::Stop;
        }
        if self.take(&self.report) { Control::Report } else { Control::Serve }
    }

    /// Whether the trace is to be stopped or started again, once per request.
    pub fn takes_trace_switch(&self) -> bool {
        self.take(&self.trace)
    }

    fn take(&self, flag: &AtomicBool) -> bool {
        let pending = flag.swap(false, Ordering::SeqCst);
        if pending {
            // Drain the descriptor after that: a signal in between leaves its flag, not a
            // descriptor that is readable for ever.
            while matches!((&self.wake).read(&mut [0; 64]), Ok(bytes) if bytes > 0) {}
        }
        pending
    }

    /// Readable while a request is pending.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Whether the node has to stop.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// Tells the node to stop, from another thread.
    pub fn stop(&self) {
        self.flag.store(true, Ordering::SeqCst);
        let _ = (&self.waker).write(&[1]);
    }
}
