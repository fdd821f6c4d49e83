//! Memory shared with another process, and signals to its eventfds: the only module with unsafe
//! code.
//!
//! The other process may change the bytes at any time, so nothing here returns a reference to them:
//! bytes are copied in and out, and every value read is a snapshot that the caller checks. The
//! other process can also remove the pages: then the mapping is dead, and every access fails
//! (`fault.rs`).

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

/// The page size of every host that farlane supports; file offsets of a mapping are multiples
/// of it.
pub const PAGE: usize = 4096;

/// `HUGETLBFS_MAGIC` of linux/magic.h.
const HUGETLBFS_MAGIC: u64 = 0x9584_58f6;

/// Copies up to this many bytes go word by word, in address order.
const BY_WORD: usize = 64;

/// A mapped part of a file; unmapped on drop.
#[derive(Debug)]
pub struct Mapping {
    /// Start of the mapped pages.
    pages: NonNull<c_void>,
    /// Bytes of the mapped pages.
    mapped: usize,
    /// First byte of the part, from `pages`.
    skip: usize,
    /// Bytes of the part.
    length: usize,
    /// `None` only during drop.
    guard: Option<Guard>,
}

// SAFETY: the pages belong to this value alone until it is dropped, and stay
// where they are whichever thread looks at them.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of `fd` from byte `offset` on, shared.
    ///
    /// # Errors
    /// `EINVAL` for no bytes, an overflow, a file that is not regular, or bytes after its end;
    /// `ENOMEM` for more mappings than a process can have; otherwise as fstat, fstatfs and mmap,
    /// for example `EACCES` for a missing right of the descriptor.
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
        // SAFETY: a new mapping at an address of the kernel's choice replaces
        // nothing that anybody uses.
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
        // From here on it is unmapped even on an error.
        let mut mapping =
            Self { pages, mapped, skip: skip as usize, length: length as usize, guard: None };
        mapping.guard = Some(Guard::new(pages.as_ptr() as usize, mapped, page as usize)?);
        Ok(mapping)
    }

    /// Whether the other process has removed pages: one access failed for this reason, and all
    /// later ones fail.
    pub fn is_dead(&self) -> bool {
        self.guard.as_ref().is_none_or(Guard::is_dead)
    }

    /// `None` if the last access found the mapping dead.
    fn alive<T>(&self, value: T) -> Option<T> {
        (!self.is_dead()).then_some(value)
    }

    /// The address of `count` bytes at `offset`, if all lie inside.
    fn at(&self, offset: usize, count: usize) -> Option<*mut u8> {
        if offset.checked_add(count)? > self.length {
            return None;
        }
        // SAFETY: skip + offset + count <= mapped, by the line above and
        // because skip + length == mapped.
        Some(unsafe { self.pages.as_ptr().cast::<u8>().add(self.skip + offset) })
    }

    /// Copies bytes out; `None` if any lies outside or the mapping is dead. The mapping must be
    /// readable.
    pub fn read(&self, offset: usize, into: &mut [u8]) -> Option<()> {
        let from = self.at(offset, into.len())?;
        // SAFETY: `from` has into.len() mapped bytes, which `into`, being
        // memory of this process alone, does not overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
        fence(Ordering::Acquire);
        self.alive(())
    }

    /// Appends `count` bytes to `out`; as [`read`](Self::read). If the mapping is dead, the bytes
    /// must not be used.
    pub fn append(&self, offset: usize, count: usize, out: &mut BytesMut) -> Option<()> {
        let from = self.at(offset, count)?;
        out.reserve(count);
        let to = out.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: as in `read`; `out` has room for `count` bytes behind its length, and they are
        // initialised when its length says so.
        unsafe {
            std::ptr::copy_nonoverlapping(from, to, count);
            out.set_len(out.len() + count);
        }
        fence(Ordering::Acquire);
        self.alive(())
    }

    /// Copies bytes in; `None` if any lies outside or the mapping is dead. The mapping must be
    /// writable. A reader who sees the last bytes of a short write sees the first ones and all
    /// earlier writes: a completion entry's phase bit may not overtake its other fields or the
    /// data.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Option<()> {
        let to = self.at(offset, bytes.len())?;
        fence(Ordering::Release);
        if bytes.len() > BY_WORD || !(to as usize | bytes.len()).is_multiple_of(4) {
            // SAFETY: as in `read`, the other way round.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
            return self.alive(());
        }
        for (i, word) in bytes.chunks_exact(4).enumerate() {
            let word = u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
            // SAFETY: inside, aligned to 4 bytes (checked above), and an
            // atomic may be shared with anybody.
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
        // SAFETY: inside, aligned, mapped as long as `self` lives, and only
        // ever used as an atomic here.
        Some(unsafe { AtomicU32::from_ptr(at.cast()) })
    }

    /// The aligned double word at `offset`; `None` outside or if dead.
    pub fn load(&self, offset: usize) -> Option<u32> {
        let value = self.cell(offset)?.load(Ordering::Acquire);
        self.alive(value)
    }

    /// Takes the aligned double word at `offset` and stores `rest`; `None` outside or if dead.
    pub fn swap(&self, offset: usize, rest: u32) -> Option<u32> {
        let value = self.cell(offset)?.swap(rest, Ordering::AcqRel);
        self.alive(value)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Dropped first, because another mapping may get these addresses right after.
        self.guard = None;
        // SAFETY: mapped by `new` with this length, and no pointer into it
        // outlives `self`. An error can only mean that it is gone already.
        let _ = unsafe { rustix::mm::munmap(self.pages.as_ptr(), self.mapped) };
    }
}

/// The page size of the file in bytes; mappings begin and end at its multiples.
fn page_size(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    let system = rustix::fs::fstatfs(fd)?;
    // A file system of huge pages has blocks of that size (Linux
    // fs/hugetlbfs/inode.c, `hugetlbfs_statfs`).
    let huge = system.f_type as u64 == HUGETLBFS_MAGIC;
    Ok(if huge { (system.f_bsize as u64).max(PAGE as u64) } else { PAGE as u64 })
}

/// Memory that a client may map: an anonymous file of fixed size, and our mapping of a part of it.
#[derive(Debug)]
pub struct Shared {
    /// The file.
    pub file: OwnedFd,
    /// The part.
    pub mapping: Mapping,
}

impl Shared {
    /// A file of `offset + length` bytes of zeroes, mapped from `offset` on.
    ///
    /// # Errors
    /// As memfd_create, ftruncate, fcntl (seals) and mmap.
    pub fn new(name: &str, offset: u64, length: u64) -> Result<Self, Errno> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(name, flags)?;
        let size = offset.checked_add(length).ok_or(Errno::INVAL)?;
        rustix::fs::ftruncate(&file, size)?;
        // A client that truncated the file would lose its doorbells.
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
