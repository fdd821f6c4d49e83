//! Ctrl-C and SIGTERM end a node in order; a second one ends it at once.
//! SIGUSR1 asks for its counters.

use live::Control;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Requests from signals or another thread: stop, or print the counters.
#[derive(Debug)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    report: Arc<AtomicBool>,
    wake: UnixStream,
    waker: UnixStream,
}

impl Stop {
    /// One that only [`stop`](Self::stop) sets. Fails if no socket pair can be had.
    pub fn manual() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        Ok(Self { flag: Arc::default(), report: Arc::default(), wake, waker })
    }

    /// One that SIGINT, SIGTERM and SIGUSR1 set. Fails if the signals cannot be handled.
    pub fn on_signals() -> io::Result<Self> {
        let stop = Self::manual()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, stop.flag.clone())?;
            signal_hook::flag::register(signal, stop.flag.clone())?;
            signal_hook::low_level::pipe::register(signal, stop.waker.try_clone()?)?;
        }
        signal_hook::flag::register(SIGUSR1, stop.report.clone())?;
        signal_hook::low_level::pipe::register(SIGUSR1, stop.waker.try_clone()?)?;
        Ok(stop)
    }

    /// The pending request to a node. A request for counters is returned once.
    pub fn request(&self) -> Control {
        if self.is_set() {
            return Control::Stop;
        }
        if !self.report.swap(false, Ordering::SeqCst) {
            return Control::Serve;
        }
        // Drain the descriptor after that: a signal in between leaves its flag, not a
        // descriptor that is readable for ever.
        while matches!((&self.wake).read(&mut [0; 64]), Ok(bytes) if bytes > 0) {}
        Control::Report
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
