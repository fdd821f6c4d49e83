//! Signals eventfds of other processes without blocking.
//!
//! A write to an eventfd blocks if the counter is full. If the descriptor is in fact a pipe, a
//! write blocks when the pipe is full. `O_NONBLOCK` does not prevent it, because the flag belongs
//! to the open file description, which the other process shares and can change. Therefore the
//! kernel signals the eventfd as the completion of a Linux AIO operation that ends at once. With
//! `IOCB_FLAG_RESFD` the kernel adds 1 to the counter without blocking, even if the counter is
//! full, and accepts only eventfds (linux/fs/aio.c, `__io_submit_one` and `aio_complete`;
//! `eventfd_signal` in linux/fs/eventfd.c).

use nix::libc;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of completions that the kernel can keep until they are fetched.
const RING: u32 = 64;

/// `IOCB_CMD_PREAD` of linux/aio_abi.h.
const PREAD: u16 = 0;
/// `IOCB_FLAG_RESFD` of linux/aio_abi.h.
const SIGNAL_EVENTFD: u32 = 1;

/// `struct iocb` of linux/aio_abi.h.
#[repr(C)]
#[derive(Default)]
struct Operation {
    data: u64,
    /// Key and flags, in the byte order of the machine; both are 0 here.
    key_and_flags: [u32; 2],
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    eventfd: u32,
}

/// `struct io_event` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Completion {
    data: u64,
    operation: u64,
    results: [i64; 2],
}

/// Signals eventfds without blocking.
#[derive(Debug)]
pub struct Signaller {
    /// `aio_context_t`.
    context: libc::c_ulong,
    /// The read end of a pipe. A read of 0 bytes ends at once (linux/fs/pipe.c, `pipe_read`).
    readable: OwnedFd,
    /// The write end of the pipe. An AIO read of it fails with `EBADF`, but the kernel first checks
    /// the operation's eventfd: [`takes`](Self::takes) uses this order.
    unreadable: OwnedFd,
    /// Number of operations since completions were last fetched.
    ended: AtomicU32,
}

impl Signaller {
    /// The signaller of this process, which the first call creates. Error: as [`new`](Self::new);
    /// if the first call fails, all later calls return the same error.
    pub fn of_process() -> Result<&'static Self, Errno> {
        static ONE: OnceLock<Result<Signaller, Errno>> = OnceLock::new();
        ONE.get_or_init(Self::new).as_ref().map_err(|errno| *errno)
    }

    /// Creates a signaller. Error: of io_setup or pipe2, for example `ENOSYS` if the kernel has no
    /// Linux AIO, `EPERM` if Linux AIO is not allowed, `EAGAIN` if `fs.aio-max-nr` is reached.
    pub fn new() -> Result<Self, Errno> {
        let (readable, unreadable) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: io_setup writes the context, which outlives the call.
        result(unsafe {
            libc::syscall(libc::SYS_io_setup, libc::c_ulong::from(RING), &raw mut context)
        })?;
        Ok(Self { context, readable, unreadable, ended: AtomicU32::new(0) })
    }

    /// Whether `fd` is an eventfd. The eventfd is not signalled.
    pub fn takes(&self, fd: BorrowedFd<'_>) -> bool {
        // The kernel checks the eventfd before the file.
        self.submit(self.unreadable.as_fd(), fd) == Err(Errno::BADF)
    }

    /// Adds 1 to the counter of the eventfd `fd`, unless the counter is full. Error: `EINVAL` if
    /// `fd` is not an eventfd; other errors of io_submit if the kernel has no memory.
    pub fn signal(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.ended.fetch_add(1, Ordering::Relaxed) >= RING / 2 {
            self.ended.store(0, Ordering::Relaxed);
            self.fetch();
        }
        match self.submit(self.readable.as_fd(), fd) {
            // Other threads have filled the ring.
            Err(Errno::AGAIN) => {
                self.fetch();
                self.submit(self.readable.as_fd(), fd)
            }
            result => result,
        }
    }

    fn submit(&self, file: BorrowedFd<'_>, eventfd: BorrowedFd<'_>) -> Result<(), Errno> {
        let mut operation = Operation {
            opcode: PREAD,
            file: file.as_raw_fd() as u32,
            flags: SIGNAL_EVENTFD,
            eventfd: eventfd.as_raw_fd() as u32,
            ..Operation::default()
        };
        let operations = [&raw mut operation];
        // SAFETY: the argument is one pointer to one operation, which outlives the call; both files
        // are open. The operation reads no bytes, so it has no buffer. It has ended when the call
        // returns, so the kernel keeps no pointer.
        result(unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.context,
                libc::c_long::from(1_u8),
                operations.as_ptr(),
            )
        })
    }

    /// Fetches the completions, to make room in the ring.
    fn fetch(&self) {
        let mut events = [Completion::default(); RING as usize];
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `events` has room for the requested number of completions; `events` and the
        // timeout outlive the call.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                libc::c_long::from(0_u8),
                events.len() as libc::c_long,
                events.as_mut_ptr(),
                &raw const at_once,
            );
        }
    }
}

impl Drop for Signaller {
    fn drop(&mut self) {
        // SAFETY: `new` created the context, and all operations have ended.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

/// The result of a system call.
fn result(returned: libc::c_long) -> Result<(), Errno> {
    if returned >= 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn count(fd: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        assert_eq!(rustix::io::read(fd, &mut count), Ok(8));
        u64::from_ne_bytes(count)
    }

    #[test]
    fn many_more_signals_than_the_ring_holds_all_count() {
        let signaller = Signaller::new().unwrap();
        let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        for _ in 0..10 * RING {
            signaller.signal(event.as_fd()).unwrap();
        }
        assert_eq!(count(&event), u64::from(10 * RING));
    }

    #[test]
    fn a_full_counter_does_not_wait() {
        let signaller = Signaller::new().unwrap();
        let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        for _ in 0..3 {
            signaller.signal(event.as_fd()).unwrap();
        }
        assert_eq!(count(&event), u64::MAX);
    }

    #[test]
    fn only_eventfds_are_taken_and_asking_does_not_signal() {
        let signaller = Signaller::new().unwrap();
        let event = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert!(signaller.takes(event.as_fd()));
        assert_eq!(count(&event), 1);
        for no in [&read, &write] {
            assert!(!signaller.takes(no.as_fd()));
            assert_eq!(signaller.signal(no.as_fd()), Err(Errno::INVAL));
        }
    }
}
