//! Memory that is shared with another process, and signals to eventfds of the other process. This
//! module and its submodules have the only unsafe code of this crate.
//!
//! The other process can change the bytes at any time, so no function of this module returns a
//! reference to the bytes. Bytes are copied in and out, and the caller checks the copy. The other
//! process can also remove the pages. Then the mapping is dead, and every access fails (see
//! `fault.rs`).

mod fault;
mod signaller;

pub use signaller::Signaller;

use bytes::BytesMut;
use fault::Guard;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The page size in bytes of all hosts that farlane supports.
pub const PAGE: usize = 4096;

/// `HUGETLBFS_MAGIC` of linux/magic.h.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// [`Mapping::write`] stores at most this number of bytes double word by double word, in address
/// order, if address and length are multiples of 4.
const BY_WORD: usize = 64;

/// A mapped part of a file. It is unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    /// Start of the mapped pages.
    pages: NonNull<c_void>,
    /// Number of bytes in the mapped pages.
    mapped: usize,
    /// Offset of the first byte of the part from `pages`, in bytes.
    skip: usize,
    /// Number of bytes in the part.
    length: usize,
    /// `None` only during drop.
    guard: Option<Guard>,
}

// SAFETY: only this value owns the pages until it is dropped, and the addresses of the pages are
// the same in all threads.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of `fd` from byte `offset` on (MAP_SHARED), readable if `read` and
    /// writable if `write`.
    ///
    /// # Errors
    /// `EINVAL` if `length` is 0, the end overflows or is after the end of the file, or the file is
    /// not a regular file; `ENOMEM` if the process has too many mappings; otherwise the errors of
    /// fstat, fstatfs and mmap, for example `EACCES` if the descriptor does not allow the access.
    pub fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        length: u64,
        read: bool,
        write: bool,
    ) -> Result<Self, Errno> {
        let page = page_size(fd)?;
        let skip = offset % page;
        let end = offset.checked_add(length).ok_or(Errno::INVAL)?;
        let mapped =
            skip.checked_add(length).and_then(|bytes| bytes.checked_next_multiple_of(page));
        let mapped = mapped.and_then(|bytes| usize::try_from(bytes).ok()).ok_or(Errno::INVAL)?;
        let stat = rustix::fs::fstat(fd)?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if length == 0 || !regular || end > stat.st_size as u64 {
            return Err(Errno::INVAL);
        }
        let mut protection = ProtFlags::empty();
        protection.set(ProtFlags::READ, read);
        protection.set(ProtFlags::WRITE, write);
        // SAFETY: the kernel chooses the address of the new mapping, so it replaces no memory in
        // use.
        let pages = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                mapped,
                protection,
                MapFlags::SHARED,
                fd,
                offset - skip,
            )
        }?;
        let pages = NonNull::new(pages).ok_or(Errno::FAULT)?;
        // From here on the pages are unmapped on an error too.
        let mut mapping =
            Self { pages, mapped, skip: skip as usize, length: length as usize, guard: None };
        mapping.guard = Some(Guard::new(pages.as_ptr() as usize, mapped, page as usize)?);
        Ok(mapping)
    }

    /// Whether the mapping is dead: an access failed because the other process has removed pages.
    /// All later accesses fail too.
    pub fn is_dead(&self) -> bool {
        self.guard.as_ref().is_none_or(Guard::is_dead)
    }

    /// `value`; `None` if the mapping is dead.
    fn alive<T>(&self, value: T) -> Option<T> {
        (!self.is_dead()).then_some(value)
    }

    /// The address of `count` bytes at `offset`; `None` if not all of them are inside the mapping.
    fn at(&self, offset: usize, count: usize) -> Option<*mut u8> {
        if offset.checked_add(count)? > self.length {
            return None;
        }
        // SAFETY: skip + offset + count <= mapped, because of the check above and skip + length <=
        // mapped.
        Some(unsafe { self.pages.as_ptr().cast::<u8>().add(self.skip + offset) })
    }

    /// Copies bytes from byte `offset` on to `into`; `None` if not all bytes are inside the mapping
    /// or the mapping is dead. The mapping must be readable.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Option<()> {
        let from = self.at(offset, into.len())?;
        // SAFETY: `from` has into.len() mapped bytes. They do not overlap `into`, which is memory
        // of this process only.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        fence(Ordering::Acquire);
        self.alive(())
    }

    /// Appends `count` bytes from byte `offset` on to `out`, otherwise as [`read`](Self::read). If
    /// the mapping is dead, `out` is longer too, but the new bytes are invalid.
    pub fn append(&self, offset: usize, count: usize, out: &mut BytesMut) -> Option<()> {
        let from = self.at(offset, count)?;
        out.reserve(count);
        let to = out.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: as in `read`. `out` has room for `count` bytes after its current length, and the
        // bytes are initialised before the length is increased.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, count);
            out.set_len(out.len() + count);
        }
        fence(Ordering::Acquire);
        self.alive(())
    }

    /// Copies `bytes` to byte `offset`; `None` if not all bytes are inside the mapping or the
    /// mapping is dead. The mapping must be writable. A reader who sees the last bytes of a short
    /// aligned write also sees the first bytes and all earlier writes. Thus the phase bit of a
    /// completion entry is not visible before the other fields and the data.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Option<()> {
        let to = self.at(offset, bytes.len())?;
        fence(Ordering::Release);
        if bytes.len() > BY_WORD || !(to as usize | bytes.len()).is_multiple_of(4) {
            // SAFETY: as in `read`, in the opposite direction.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
            return self.alive(());
        }
        for (i, word) in bytes.chunks_exact(4).enumerate() {
            let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
            // SAFETY: the address is inside the mapping and aligned to 4 bytes (checked above), and
            // an atomic may be shared with other processes.
            let cell = unsafe { AtomicU32::from_ptr(to.add(i * 4).cast()) };
            cell.store(word, Ordering::Release);
        }
        self.alive(())
    }

    fn cell(&self, offset: usize) -> Option<&AtomicU32> {
        let at = self.at(offset, 4)?;
        if !(at as usize).is_multiple_of(4) {
            return None;
        }
        // SAFETY: the address is inside the mapping, aligned, and mapped as long as `self` lives;
        // the bytes are used only as an atomic here.
        Some(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// The double word at byte `offset`; `None` if it is not aligned or not inside the mapping, or
    /// the mapping is dead.
    pub fn load(&self, offset: usize) -> Option<u32> {
        let value = self.cell(offset)?.load(Ordering::Acquire);
        self.alive(value)
    }

    /// Stores `rest` in the double word at byte `offset` and returns the previous value; `None` if
    /// the double word is not aligned or not inside the mapping, or the mapping is dead.
    pub fn swap(&self, offset: usize, rest: u32) -> Option<u32> {
        let value = self.cell(offset)?.swap(rest, Ordering::AcqRel);
        self.alive(value)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The guard is dropped before the pages are unmapped, because another mapping can get the
        // same addresses right after.
        self.guard = None;
        // SAFETY: `new` mapped these pages with this length, and no pointer to them outlives
        // `self`. An error can only mean that the pages are no longer mapped.
        let _ = unsafe { rustix::mm::munmap(self.pages.as_ptr(), self.mapped) };
    }
}

/// The page size of the file in bytes. Mappings of the file begin and end at multiples of the page
/// size. Error: as fstatfs.
fn page_size(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    let system = rustix::fs::fstatfs(fd)?;
    // In a file system of huge pages, the block size is the page size (Linux fs/hugetlbfs/inode.c,
    // `hugetlbfs_statfs`).
    let huge = system.f_type as u64 == HUGETLBFS_MAGIC;
    Ok(if huge { (system.f_bsize as u64).max(PAGE as u64) } else { PAGE as u64 })
}

/// Memory that a client may map: an anonymous file of fixed size, and a mapping of a part of the
/// file.
#[derive(Debug)]
pub struct Shared {
    /// The file.
    pub file: OwnedFd,
    /// The mapped part.
    pub mapping: Mapping,
}

impl Shared {
    /// Creates a file of `offset + length` bytes, all zero, and maps the last `length` bytes.
    /// `name` is only for debugging (memfd_create(2)).
    ///
    /// # Errors
    /// `EINVAL` if `offset + length` overflows; otherwise the errors of memfd_create, ftruncate,
    /// fcntl (seals) and [`Mapping::new`].
    pub fn new(name: &str, offset: u64, length: u64) -> Result<Self, Errno> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(name, flags)?;
        let size = offset.checked_add(length).ok_or(Errno::INVAL)?;
        rustix::fs::ftruncate(&file, size)?;
        // The seals prevent that a client truncates the file.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        let mapping = Mapping::new(file.as_fd(), offset, length, true, true)?;
        Ok(Self { file, mapping })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_in_and_out_and_nothing_outside() {
        let shared = Shared::new("test", 4096, 8192).unwrap();
        let map = &shared.mapping;
        let bytes: Vec<u8> = (0..=255).collect();
        for (offset, length) in [(0, 16), (3, 5), (8188, 4), (4000, 200), (0, 0)] {
            map.write(offset, &bytes[..length]).unwrap();
            let mut back = vec![0; length];
            map.read(offset, &mut back).unwrap();
            assert_eq!(back, bytes[..length]);
            let mut more = BytesMut::from(&b"front"[..]);
            map.append(offset, length, &mut more).unwrap();
            assert_eq!(more[5..], bytes[..length]);
        }
        assert_eq!(map.append(8189, 4, &mut BytesMut::new()), None);
        assert_eq!(map.write(8189, &[0; 4]), None);
        assert_eq!(map.read(usize::MAX, &mut [0; 4]), None);
        assert_eq!(map.load(8192), None);
        assert_eq!(map.load(2), None);
        map.write(4, &7_u32.to_ne_bytes()).unwrap();
        assert_eq!(map.swap(4, 9), Some(7));
        assert_eq!(map.load(4), Some(9));
    }

    #[test]
    fn a_part_from_the_middle_of_a_page() {
        let shared = Shared::new("test", 0, 8192).unwrap();
        let part = Mapping::new(shared.file.as_fd(), 4100, 100, true, true).unwrap();
        part.write(0, &[1, 2, 3, 4]).unwrap();
        assert_eq!(part.write(97, &[0; 4]), None);
        let mut back = [0; 4];
        shared.mapping.read(4100, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
    }

    #[test]
    fn beyond_the_end_of_the_file_is_refused() {
        let shared = Shared::new("test", 0, 4096).unwrap();
        let map = |offset, length| Mapping::new(shared.file.as_fd(), offset, length, true, true);
        assert_eq!(map(0, 4097).err(), Some(Errno::INVAL));
        assert_eq!(map(4096, 1).err(), Some(Errno::INVAL));
        assert_eq!(map(0, 0).err(), Some(Errno::INVAL));
        assert_eq!(map(u64::MAX, 2).err(), Some(Errno::INVAL));
    }
}
