//! Locks of files.
//!
//! A lock belongs to the open file description that io_uring works on. So it stays as long as
//! transfers of a process that was killed are under way: the kernel ends these behind its back, and
//! nobody else may serve the file before.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// How long that is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// Locks a file for this open file description alone.
///
/// # Errors
/// `WouldBlock` if somebody else has the lock.
pub(super) fn lock(file: impl AsFd) -> io::Result<()> {
    patiently(io::ErrorKind::WouldBlock, || {
        Ok(flock(&file, FlockOperation::NonBlockingLockExclusive)?)
    })
}

/// Passes the lock of `from` on to `to`, which is another description of the same file.
///
/// # Errors
/// `WouldBlock` if somebody else was faster.
pub(super) fn pass_on(from: impl AsFd, to: impl AsFd) -> Result<(), Errno> {
    flock(from, FlockOperation::Unlock)?;
    flock(to, FlockOperation::NonBlockingLockExclusive)
}

/// Tries again while it fails because somebody has the file, but not for ever.
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
        // Whoever has it passes it on.
        pass_on(&second, &third).unwrap();
        let refused = lock(&second).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(third);
        lock(&second).unwrap();
    }
}
