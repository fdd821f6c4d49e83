//! The files and folders of the machine.

use super::{Access, File, Folder};
use rustix::fs::{self, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, retry_on_intr};
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Number of bytes that [`File::zero_range`] writes at once if the system cannot zero a range.
const ZEROES: usize = 1 << 20;

/// A file of the machine, or a block device.
#[derive(Debug)]
pub struct SystemFile(std::fs::File);

impl SystemFile {
    fn allocate_with(&self, flags: FallocateFlags, offset: u64, length: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| fs::fallocate(&self.0, flags, offset, length))?)
    }
}

impl From<std::fs::File> for SystemFile {
    fn from(file: std::fs::File) -> Self {
        Self(file)
    }
}

impl AsFd for SystemFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// The methods of std continue short reads and writes, and repeat interrupted calls.
impl File for SystemFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn write_durably_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let write = || pwritev2(&self.0, &[IoSlice::new(bytes)], offset, ReadWriteFlags::DSYNC);
        match retry_on_intr(write) {
            Ok(written) if written == bytes.len() => Ok(()),
            // Continues a short write, and reports errors. Also for file systems without the flag.
            _ => {
                self.write_at(bytes, offset)?;
                self.sync_data()
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        // The length of a block device is the offset of its end.
        Ok(fs::seek(&self.0, SeekFrom::End(0))?)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn zero_range(&self, offset: u64, length: u64) -> io::Result<()> {
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        if self.allocate_with(flags, offset, length).is_ok() {
            return Ok(());
        }
        let zeroes = vec![0; ZEROES];
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let bytes = zeroes.len().min((end - at) as usize);
            self.write_at(&zeroes[..bytes], at)?;
            at += bytes as u64;
        }
        Ok(())
    }

    fn punch_hole(&self, offset: u64, length: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        self.allocate_with(flags, offset, length)
    }

    fn free_space(&self) -> Option<u64> {
        let system = fs::fstatvfs(&self.0).ok()?;
        // Some file systems report no sizes.
        (system.f_blocks > 0).then(|| system.f_bfree.saturating_mul(system.f_frsize))
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.allocate_with(FallocateFlags::empty(), offset, length)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// A folder of the machine. It stays usable if the folder is renamed.
#[derive(Debug)]
pub struct SystemFolder(OwnedFd);

impl SystemFolder {
    /// Opens the folder at `path`.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::open(path, FOLDER, Mode::empty())?))
    }

    /// As [`open`](Self::open), also for a folder that the process may not list. Such a folder
    /// cannot be synced either.
    pub(crate) fn search(path: &Path) -> io::Result<Self> {
        let flags = FOLDER | OFlags::PATH;
        Self::open(path).or_else(|_| Ok(Self(fs::open(path, flags, Mode::empty())?)))
    }

    fn open_file(&self, name: &str, access: Access) -> io::Result<OwnedFd> {
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::RDWR,
            Access::Create => OFlags::RDWR | OFlags::CREATE,
            Access::CreateNew => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        // The open neither follows a link out of the folder nor waits for the other end of a pipe.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o666);
        let file = retry_on_intr(|| fs::openat(&self.0, name, flags, mode))?;
        match fs::FileType::from_raw_mode(fs::fstat(&file)?.st_mode) {
            fs::FileType::RegularFile => Ok(file),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Folder for SystemFolder {
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn File>> {
        Ok(Box::new(SystemFile(self.open_file(name, access)?.into())))
    }

    fn lock(&self, name: &str, shared: bool) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        let (access, operation) = match shared {
            true => (Access::Read, FlockOperation::NonBlockingLockShared),
            false => (Access::Create, FlockOperation::NonBlockingLockExclusive),
        };
        let file = self.open_file(name, access)?;
        match retry_on_intr(|| fs::flock(&file, operation)) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn folder(&self, name: &str) -> io::Result<Box<dyn Folder>> {
        let flags = FOLDER | OFlags::NOFOLLOW;
        Ok(Box::new(Self(fs::openat(&self.0, name, flags, Mode::empty())?)))
    }

    fn create_folder(&self, name: &str) -> io::Result<()> {
        Ok(fs::mkdirat(&self.0, name, Mode::from_raw_mode(0o777))?)
    }

    fn remove_folder(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(fs::renameat(&self.0, from, &self.0, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    fn sync(&self) -> io::Result<()> {
        match retry_on_intr(|| fs::fsync(&self.0)) {
            // The file system cannot sync folders.
            Err(Errno::INVAL) => Ok(()),
            result => Ok(result?),
        }
    }
}
