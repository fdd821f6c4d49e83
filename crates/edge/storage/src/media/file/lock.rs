//! Locks of files.
//!
//! A lock belongs to the open file description that io_uring uses. If the process is killed, the
//! lock stays until the kernel has ended all transfers. Until then no other process can serve the
//! file.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// The longest wait for a lock.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Locks a file exclusively for this open file description. Waits up to `PATIENCE`.
///
/// # Errors
/// `WouldBlock` if another process has the lock.
pub(super) fn lock(file: impl AsFd) -> io::Result<()> {
    patiently(io::ErrorKind::WouldBlock, || {
        Ok(flock(&file, FlockOperation::NonBlockingLockExclusive)?)
    })
}

/// Transfers the lock of `from` to `to`, another open file description of the same file.
///
/// # Errors
/// `WouldBlock` if another process locked the file first.
pub(super) fn pass_on(from: impl AsFd, to: impl AsFd) -> Result<(), Errno> {
    flock(from, FlockOperation::Unlock)?;
    flock(to, FlockOperation::NonBlockingLockExclusive)
}

/// Repeats `attempt` while it fails with the error `held`, up to `PATIENCE`.
pub(super) fn patiently<T>(
    held: io::ErrorKind,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Err(error) if error.kind() == held && Instant::now() < end => {
                std::thread::sleep(PAUSE);
            }
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_file_that_is_given_up_soon_is_waited_for_and_no_other() {
        let path = std::env::temp_dir().join(format!("farlane-lock-{}", std::process::id()));
        let [first, second, third] = [0; 3].map(|_| File::create(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        lock(&first).unwrap();
        let held = Instant::now();
        let leaves = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(first);
        });
        lock(&second).unwrap();
        assert!(held.elapsed() >= Duration::from_millis(50));
        leaves.join().unwrap();
        // The holder transfers the lock.
        pass_on(&second, &third).unwrap();
        let refused = lock(&second).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(third);
        lock(&second).unwrap();
    }
}
