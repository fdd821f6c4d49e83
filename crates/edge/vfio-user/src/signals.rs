//! Signals the eventfds of a client without blocking.

use crate::guest::{Disposal, Worker};
use crate::mapping::Signaller;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The maximum number of values that wait for the worker. At this number a signal fails: the worker
/// is blocked, because the client keeps a counter full.
const MAX_PENDING: usize = 1024;

/// How eventfds are signalled.
#[derive(Debug)]
pub(crate) enum Signals {
    /// By the kernel, with Linux AIO.
    Kernel(&'static Signaller),
    /// By the client's worker, if the kernel does not allow Linux AIO. A worker is needed because a
    /// write to a full counter blocks and the client can clear `O_NONBLOCK`.
    Worker(Disposal),
}

impl Signals {
    /// Chooses how the eventfds of this worker's client are signalled.
    pub(crate) fn new(worker: &Worker) -> Self {
        Signaller::of_process().map_or_else(|_| Self::Worker(worker.disposal()), Self::Kernel)
    }

    /// Whether `fd` is an eventfd. The eventfd is not signalled.
    pub(crate) fn takes(&self, fd: BorrowedFd<'_>) -> bool {
        match self {
            Self::Kernel(signaller) => signaller.takes(fd),
            Self::Worker(_) => is_eventfd(fd),
        }
    }

    /// Signals an eventfd, or lets the worker signal it. Returns false if the signal is lost.
    pub(crate) fn signal(&self, fd: &OwnedFd) -> bool {
        match self {
            Self::Kernel(signaller) => signaller.signal(fd.as_fd()).is_ok(),
            Self::Worker(worker) if worker.pending() < MAX_PENDING => {
                fd.try_clone().map(|fd| worker.dispose(Signal(fd))).is_ok()
            }
            Self::Worker(_) => false,
        }
    }
}

/// An eventfd that is signalled when this value is dropped.
struct Signal(OwnedFd);

impl Drop for Signal {
    fn drop(&mut self) {
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// Whether `fd` is an eventfd: only eventfds have an `eventfd-count` in /proc/PID/fdinfo
/// (proc_pid_fdinfo(5)).
fn is_eventfd(fd: BorrowedFd<'_>) -> bool {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()));
    info.is_ok_and(|info| info.lines().any(|line| line.starts_with("eventfd-count:")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::Workers;
    use testkit::vfio_user::{eventfd, is_readable};

    #[test]
    fn without_aio_a_worker_signals_and_waits() {
        let worker = Workers::new().unwrap().for_client();
        let signals = Signals::Worker(worker.disposal());
        let (full, event) = (eventfd(), eventfd());
        assert!(signals.takes(event.as_fd()) && !is_readable(&event, 0));
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert!(!signals.takes(read.as_fd()) && !signals.takes(write.as_fd()));
        assert!(signals.signal(&event) && is_readable(&event, 5));
        // The client fills the counter, so that writes block.
        rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        rustix::io::ioctl_fionbio(&full, false).unwrap();
        assert!((0..MAX_PENDING).all(|_| signals.signal(&full)));
        assert!(!signals.signal(&event), "the worker waits");
        rustix::io::read(&full, &mut [0; 8]).unwrap();
        while worker.disposals() > 0 {
            std::thread::yield_now();
        }
        assert!(signals.signal(&event));
    }
}
