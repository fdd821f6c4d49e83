//! Reads and writes of a file by io_uring, buffered or direct. Transfers that are not possible,
//! that fail or that are short go to the threads. Thus only threads continue short transfers and
//! evaluate errors.

use super::checked::{Checked, Part};
use super::checksums::{Checksums, Layout};
use super::lock::pass_on;
use super::{Aio, Task};
use crate::files::File;
use crate::media::done;
use crate::ring::{Ended, Ring};
use bytes::{Buf, Bytes, BytesMut};
use nvme::block::{Completion, Operation};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags, ioctl_blksszget, statx};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// The maximum number of transfers under way: the maximum number of I/O commands of a controller
/// (docs/nvme.md, "Limits").
const MOST: u32 = 256;

/// The alignment of direct I/O in bytes if the kernel does not report it (before Linux 6.1). All
/// file systems accept this alignment, and all disks with blocks up to this size.
const SAFE_ALIGNMENT: u32 = 4096;

/// Alignments in bytes, powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Alignment {
    memory: usize,
    /// Alignment of offsets and lengths.
    range: u64,
}

/// Reads and writes under way.
#[derive(Debug)]
pub(super) struct Transfers {
    pub(super) ring: Ring<Part>,
    alignment: Alignment,
    /// The requests with checksums.
    pub(super) checked: Checked,
}

/// What follows from the end of a transfer.
#[derive(Debug)]
pub(super) enum Progress {
    /// The request with this ID is completed.
    Completed(u64, Completion),
    /// The request goes on with another transfer.
    Continues,
    /// A thread must execute the request.
    ForThread(Task),
}

impl Transfers {
    /// Transfers with a file; `None` if `aio` or the file does not permit them. The eventfd
    /// `signal` becomes readable when [`ended`](Self::ended) may return a transfer.
    ///
    /// # Errors
    /// As `Ring::new`; as open(2) if the file system has no direct I/O; `WouldBlock` if another
    /// process locked the file first.
    pub(super) fn new(
        file: &dyn File,
        aio: Aio,
        layout: Option<Layout>,
        signal: BorrowedFd<'_>,
    ) -> io::Result<Option<Self>> {
        let Some(file) = file.descriptor() else { return Ok(None) };
        let (worked_on, alignment) = match aio {
            Aio::Threads => return Ok(None),
            Aio::IoUring => (file.try_clone_to_owned()?, Alignment { memory: 1, range: 1 }),
            Aio::IoUringDirect => (reopened(file)?, alignment(file)),
        };
        let description = worked_on.try_clone()?;
        // Data and checksums are separate transfers.
        let most = if layout.is_some() { 2 * MOST } else { MOST };
        let ring = Ring::new(worked_on, signal, most)?;
        if matches!(aio, Aio::IoUringDirect) {
            pass_on(file, &description)?;
        }
        Ok(Some(Self { ring, alignment, checked: Checked::default() }))
    }

    /// Starts a read or a write; returns a request that a thread must execute.
    pub(super) fn start(&mut self, task: Task, checksums: Option<&Checksums>) -> Option<Task> {
        if let Some(checksums) = checksums {
            return self.start_checked(task, checksums);
        }
        let (offset, bytes) = task.0.operation.range();
        let aligned = (offset | bytes) & (self.alignment.range - 1) == 0;
        if !aligned || self.ring.room() == 0 {
            return Some(task);
        }
        match &task.0.operation {
            Operation::Read { offset, length } => {
                let (offset, buffer) = (*offset, self.buffer(*length));
                self.ring.read(offset, buffer, Part::Whole(task));
            }
            Operation::Write { offset, data } => {
                let (offset, data) = (*offset, self.aligned(data));
                self.ring.write(offset, data, Part::Whole(task));
            }
            _ => return Some(task),
        }
        None
    }

    /// Passes the transfers that were started since the last call to the kernel.
    ///
    /// # Errors
    /// If the kernel did not accept all transfers: call this again.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.ring.submit()
    }

    /// What follows from the next transfer that has ended.
    pub(super) fn ended(&mut self, checksums: Option<&Checksums>) -> Option<Progress> {
        let Ended { value, read, result } = self.ring.ended()?;
        Some(match (value, checksums) {
            (Part::Whole(task), _) => match result {
                Ok(count) if count as u64 == task.0.operation.range().1 => {
                    let completion = read.map_or_else(done, |read| Ok(read.freeze()));
                    Progress::Completed(task.0.id, completion)
                }
                _ => Progress::ForThread(task),
            },
            (part, Some(checksums)) => self.part_ended(part, read, result, checksums),
            (_, None) => unreachable!("without checksums, all transfers are whole requests"),
        })
    }

    /// A zeroed buffer at an aligned address.
    fn buffer(&self, length: usize) -> BytesMut {
        let mut buffer = BytesMut::zeroed(length + self.alignment.memory - 1);
        buffer.advance(buffer.as_ptr().align_offset(self.alignment.memory));
        buffer.truncate(length);
        buffer
    }

    /// The bytes at an aligned address; copied only if `data` is not aligned.
    fn aligned(&self, data: &Bytes) -> Bytes {
        if data.as_ptr().align_offset(self.alignment.memory) == 0 {
            return data.clone();
        }
        let mut buffer = self.buffer(data.len());
        buffer.copy_from_slice(data);
        buffer.freeze()
    }
}

/// Opens the same file again, for direct I/O.
fn reopened(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let access = rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE;
    let flags = access | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// The alignment of direct I/O with the file (`STATX_DIOALIGN`, statx(2)).
fn alignment(file: BorrowedFd<'_>) -> Alignment {
    let dio = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    let dio = dio.filter(|stat| stat.stx_dio_mem_align != 0 && stat.stx_dio_offset_align != 0);
    let (memory, range) = match (dio, ioctl_blksszget(file)) {
        (Some(stat), _) => (stat.stx_dio_mem_align, stat.stx_dio_offset_align),
        (None, Ok(block)) => (SAFE_ALIGNMENT, block),
        (None, Err(_)) => (SAFE_ALIGNMENT, SAFE_ALIGNMENT),
    };
    Alignment { memory: memory as usize, range: range.into() }
}
