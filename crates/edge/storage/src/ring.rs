//! Reads and writes of a file without a thread: io_uring(7).

use bytes::{Bytes, BytesMut};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::{fmt, io};

/// The reads and writes of one file that are under way. Every transfer has a value of the owner,
/// which is returned with the result.
pub(crate) struct Ring<T> {
    ring: IoUring,
    file: OwnedFd,
    /// The transfers under way, by the kernel's user data.
    transfers: Vec<Option<(T, Buffer)>>,
    free: Vec<usize>,
    /// Whether some transfers were not passed to the kernel yet.
    queued: bool,
}

/// The memory of a transfer. The ring owns it, because the kernel uses it until the transfer ends.
enum Buffer {
    Read(BytesMut),
    #[expect(dead_code, reason = "kept for the kernel")]
    Write(Bytes),
}

/// A transfer that has ended.
#[derive(Debug)]
pub(crate) struct Ended<T> {
    /// The value of the owner.
    pub value: T,
    /// The memory of a read.
    pub read: Option<BytesMut>,
    /// Number of transferred bytes, which may be smaller than requested.
    pub result: io::Result<usize>,
}

impl<T> Ring<T> {
    /// A ring for up to `most` transfers with `file`. The eventfd `signal` becomes readable when a
    /// transfer ends.
    ///
    /// # Errors
    /// As io_uring_setup(2): `EPERM` or `ENOSYS` if io_uring is not allowed or not built in,
    /// `ENOMEM` if the process may not lock memory; `Unsupported` before Linux 5.6.
    pub(crate) fn new(file: OwnedFd, signal: BorrowedFd<'_>, most: u32) -> io::Result<Self> {
        let ring = IoUring::new(most)?;
        // Linux 5.6, the first version with reads and writes of plain memory (io_uring_enter(2)),
        // has this feature.
        if !ring.params().is_feature_rw_cur_pos() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        ring.submitter().register_eventfd(signal.as_raw_fd())?;
        let most = most as usize;
        let transfers = std::iter::repeat_with(|| None).take(most).collect();
        Ok(Self { ring, file, transfers, free: (0..most).collect(), queued: false })
    }

    /// Number of transfers for which there is room.
    pub(crate) fn room(&self) -> usize {
        self.free.len()
    }

    /// Starts to fill `buffer` from `offset` of the file. [`submit`](Self::submit) passes the
    /// transfer to the kernel.
    ///
    /// # Panics
    /// If there is no [room](Self::room).
    pub(crate) fn read(&mut self, offset: u64, mut buffer: BytesMut, value: T) {
        let (address, length) = (buffer.as_mut_ptr(), length(&buffer));
        let read = opcode::Read::new(Fd(self.file.as_raw_fd()), address, length);
        self.push(read.offset(offset).build(), value, Buffer::Read(buffer));
    }

    /// Starts to write `data` at `offset` of the file. [`submit`](Self::submit) passes the transfer
    /// to the kernel.
    ///
    /// # Panics
    /// If there is no [room](Self::room).
    pub(crate) fn write(&mut self, offset: u64, data: Bytes, value: T) {
        let (address, length) = (data.as_ptr(), length(&data));
        let write = opcode::Write::new(Fd(self.file.as_raw_fd()), address, length);
        self.push(write.offset(offset).build(), value, Buffer::Write(data));
    }

    fn push(&mut self, entry: squeue::Entry, value: T, buffer: Buffer) {
        let number = self.free.pop().expect("the caller has asked for room");
        // The kernel uses heap memory, whose address does not change when its owner moves.
        self.transfers[number] = Some((value, buffer));
        let entry = entry.user_data(number as u64);
        // SAFETY: `transfers` owns the buffer until the kernel has completed the entry, and nothing
        // accesses it before. `self` owns the file, which outlives the entry, because `drop` waits
        // for all entries.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("as many entries as transfers");
        self.queued = true;
    }

    /// Passes the transfers that were started since the last call to the kernel. Some may end at
    /// once.
    ///
    /// # Errors
    /// As io_uring_enter(2), if the kernel did not accept all transfers: call this again.
    pub(crate) fn submit(&mut self) -> io::Result<()> {
        if self.queued {
            self.ring.submit()?;
            self.queued = !self.ring.submission().is_empty();
        }
        Ok(())
    }

    /// The next transfer that has ended; `None` if there is none now.
    pub(crate) fn ended(&mut self) -> Option<Ended<T>> {
        let entry = self.ring.completion().next()?;
        let number = entry.user_data() as usize;
        let (value, buffer) = self.transfers[number].take().expect("completed once");
        self.free.push(number);
        let read = match buffer {
            Buffer::Read(buffer) => Some(buffer),
            Buffer::Write(_) => None,
        };
        let result = match entry.result() {
            error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
            bytes => Ok(bytes as usize),
        };
        Some(Ended { value, read, result })
    }

    /// Whether no transfer is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.free.len() == self.transfers.len()
    }
}

impl<T> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("file", &self.file).finish_non_exhaustive()
    }
}

impl<T> Drop for Ring<T> {
    /// Waits until the kernel no longer uses the memory of any transfer.
    fn drop(&mut self) {
        while !self.is_idle() {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    // The kernel may still use the memory, so the memory is leaked.
                    std::mem::take(&mut self.transfers).into_iter().for_each(std::mem::forget);
                    return;
                }
                _ => while self.ended().is_some() {},
            }
        }
    }
}

/// The length of one transfer in bytes. The commands of a drive are far below the limit of 4 GiB.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("below 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    use rustix::fd::AsFd;
    use rustix::fs::{MemfdFlags, memfd_create};

    fn ring(most: u32) -> Option<(Ring<u32>, OwnedFd)> {
        let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        let signal = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        // Containers often forbid io_uring.
        let ring = Ring::new(file, signal.as_fd(), most).ok()?;
        Some((ring, signal))
    }

    fn wait(ring: &mut Ring<u32>, signal: &OwnedFd) -> Ended<u32> {
        ring.submit().unwrap();
        loop {
            if let Some(ended) = ring.ended() {
                return ended;
            }
            poll(&mut [PollFd::new(signal, PollFlags::IN)], None).unwrap();
            rustix::io::read(signal, &mut [0; 8]).unwrap();
        }
    }

    #[test]
    fn ring_reads_written_data_and_reports_end_of_file() {
        let Some((mut ring, signal)) = ring(4) else { return };
        ring.write(4096, Bytes::from(vec![7; 512]), 1);
        let ended = wait(&mut ring, &signal);
        assert_eq!((ended.value, ended.result.unwrap(), ended.read), (1, 512, None));
        ring.read(4096, BytesMut::zeroed(1024), 2);
        let ended = wait(&mut ring, &signal);
        assert_eq!((ended.value, ended.result.unwrap()), (2, 512), "half of it is there");
        assert_eq!(ended.read.unwrap()[..512], [7; 512]);
    }

    #[test]
    fn an_error_of_the_file_is_that_of_the_transfer() {
        let Some((mut ring, signal)) = ring(1) else { return };
        let pipe = rustix::pipe::pipe().unwrap();
        ring.file = pipe.0;
        ring.write(0, Bytes::from_static(b"x"), 9);
        assert_eq!(ring.room(), 0);
        let ended = wait(&mut ring, &signal);
        assert_eq!(ended.result.unwrap_err().raw_os_error(), Some(9), "EBADF: not for writing");
        assert!(ring.room() == 1 && ring.is_idle());
    }

    #[test]
    fn transfers_under_way_outlive_the_ring() {
        let Some((mut ring, _signal)) = ring(8) else { return };
        for number in 0..8 {
            ring.write(u64::from(number) << 20, Bytes::from(vec![1; 1 << 20]), number);
        }
        let file = ring.file.try_clone().unwrap();
        // The transfers were not even submitted.
        drop(ring);
        assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, 8 << 20);
    }
}
