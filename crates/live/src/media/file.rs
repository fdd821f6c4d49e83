//! A namespace in a file. Requests are carried out by a few threads with
//! `pread` and `pwrite`; completions are signalled by an eventfd.

use super::{Media, done, status_of};
use bytes::Bytes;
use nvme::block::{Completion, Error, Operation, Request};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Threads a file: enough for the page cache to be busy.
const WORKERS: usize = 2;

/// A file as a block store.
#[derive(Debug)]
pub struct FileMedia {
    file: Arc<File>,
    size: u64,
    read_only: bool,
    requests: Option<Sender<Request>>,
    done: Receiver<(u64, Completion)>,
    signal: Arc<OwnedFd>,
    workers: Vec<JoinHandle<()>>,
}

impl FileMedia {
    /// Opens `path`; with `size`, creates it or makes it that long.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn open(path: &Path, size: Option<u64>, read_only: bool) -> io::Result<Self> {
        let named = |what: &str, error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {what}: {error}", path.display()))
        };
        let create = size.is_some() && !read_only;
        let mut file = OpenOptions::new()
            .read(true)
            .write(!read_only)
            .create(create)
            .truncate(false)
            .open(path)
            .map_err(|error| named("cannot open", error))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| named("in use by another process", error.into()))?;
        let kind = file.metadata().map_err(|error| named("cannot stat", error))?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let why = "neither a regular file nor a block device";
            return Err(io::Error::other(format!("{}: {why}", path.display())));
        }
        // Block devices have no length but where they end.
        let length =
            file.seek(SeekFrom::End(0)).map_err(|error| named("cannot find its end", error))?;
        let size = match size {
            Some(size) if size < length => {
                let why =
                    format!("is {length} bytes long, more than size={size}: refusing to cut it");
                return Err(io::Error::other(format!("{}: {why}", path.display())));
            }
            Some(size) if size > length && read_only => {
                let why =
                    format!("is {length} bytes long and read-only, size={size} asks for more");
                return Err(io::Error::other(format!("{}: {why}", path.display())));
            }
            Some(size) => {
                if size > length {
                    // Space is taken now, so that a full disk shows here and
                    // not as a failed write of the guest.
                    reserve(&file, size)
                        .map_err(|error| named(&format!("cannot reserve {size} bytes"), error))?;
                }
                size
            }
            None => length,
        };
        Self::start(file, size, read_only)
    }

    fn start(file: File, size: u64, read_only: bool) -> io::Result<Self> {
        let file = Arc::new(file);
        let signal = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (requests, queue) = channel::<Request>();
        let (finished, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..WORKERS)
            .map(|_| {
                let (file, queue) = (file.clone(), queue.clone());
                let (finished, signal) = (finished.clone(), signal.clone());
                std::thread::spawn(move || {
                    loop {
                        let next = queue.lock().expect("no worker panics with the lock").recv();
                        let Ok(request) = next else { return };
                        let outcome = carry_out(&file, request.operation);
                        let _ = finished.send((request.id, outcome));
                        let _ = rustix::io::write(&*signal, &1u64.to_ne_bytes());
                    }
                })
            })
            .collect();
        Ok(Self { file, size, read_only, requests: Some(requests), done, signal, workers })
    }
}

/// Makes a file `size` bytes long, and takes the space where the file system
/// can do that: those over a network often cannot.
fn reserve(file: &File, size: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, size) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => file.set_len(size),
        result => Ok(result?),
    }
}

fn carry_out(file: &File, operation: Operation) -> Completion {
    let outcome = match operation {
        Operation::Read { offset, length } => {
            let mut data = vec![0; length];
            file.read_exact_at(&mut data, offset).map(|()| Bytes::from(data))
        }
        Operation::Write { offset, data } => {
            file.write_all_at(&data, offset).map(|()| Bytes::new())
        }
        Operation::Flush => file.sync_data().map(|()| Bytes::new()),
        Operation::WriteZeroes { offset, length } => zero(file, offset, length),
        // A hole reads as zeroes; a file system that cannot make one keeps
        // the data, which a discard allows.
        Operation::Discard { offset, length } => {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = fallocate(file, hole, offset, length);
            Ok(Bytes::new())
        }
    };
    outcome.map_err(|error| status_of(&error))
}

fn zero(file: &File, offset: u64, length: u64) -> io::Result<Bytes> {
    let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    if fallocate(file, flags, offset, length).is_ok() {
        return Ok(Bytes::new());
    }
    let zeroes = vec![0; 1 << 20];
    let (mut at, end) = (offset, offset + length);
    while at < end {
        let bytes = zeroes.len().min((end - at) as usize);
        file.write_all_at(&zeroes[..bytes], at)?;
        at += bytes as u64;
    }
    Ok(Bytes::new())
}

impl Media for FileMedia {
    fn start(&mut self, request: Request) -> Option<Completion> {
        let writes = !matches!(request.operation, Operation::Read { .. } | Operation::Flush);
        if writes && self.read_only {
            return Some(Err(Error::ReadOnly));
        }
        if self.read_only && request.operation == Operation::Flush {
            return Some(done());
        }
        match &self.requests {
            Some(requests) if requests.send(request).is_ok() => None,
            _ => Some(Err(Error::Internal)),
        }
    }

    fn finished(&mut self) -> Option<(u64, Completion)> {
        match self.done.try_recv() {
            Ok(done) => Some(done),
            Err(_) => {
                // Only now: an eventfd drained first could miss what came
                // between.
                let _ = rustix::io::read(&*self.signal, &mut [0u8; 8]);
                self.done.try_recv().ok()
            }
        }
    }

    fn signal(&self) -> Option<BorrowedFd<'_>> {
        Some(self.signal.as_fd())
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn incarnation(&self) -> u64 {
        let Ok(metadata) = self.file.metadata() else { return 0 };
        metadata.dev() << 32 ^ metadata.ino()
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn close(&mut self) -> io::Result<()> {
        self.requests = None;
        for worker in self.workers.drain(..) {
            worker.join().map_err(|_| io::Error::other("a media thread panicked"))?;
        }
        if self.read_only { Ok(()) } else { self.file.sync_all() }
    }
}

impl Drop for FileMedia {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("farlane-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    fn run(media: &mut FileMedia, operation: Operation) -> Completion {
        if let Some(outcome) = media.start(Request { id: 7, command: None, nsid: 1, operation }) {
            return outcome;
        }
        loop {
            if let Some((7, outcome)) = media.finished() {
                return outcome;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn data_survives_reopening() {
        let path = scratch("reopen");
        let data = Bytes::from(vec![0xa5; 4096]);
        {
            let mut media = FileMedia::open(&path, Some(1 << 20), false).unwrap();
            run(&mut media, Operation::Write { offset: 8192, data: data.clone() }).unwrap();
            run(&mut media, Operation::WriteZeroes { offset: 8192, length: 512 }).unwrap();
            run(&mut media, Operation::Flush).unwrap();
            let busy = FileMedia::open(&path, None, false).unwrap_err();
            assert!(busy.to_string().contains("in use"), "{busy}");
        }
        let mut media = FileMedia::open(&path, None, true).unwrap();
        assert_eq!(media.size(), 1 << 20);
        let read = run(&mut media, Operation::Read { offset: 8192, length: 4096 }).unwrap();
        assert!(read[..512].iter().all(|b| *b == 0) && read[512..] == data[512..]);
        let refused = run(&mut media, Operation::Write { offset: 0, data });
        assert_eq!(refused, Err(Error::ReadOnly));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn faults_of_the_file_are_statuses_of_commands() {
        let path = scratch("faults");
        let mut media = FileMedia::open(&path, Some(1 << 20), false).unwrap();
        // Somebody cuts the file while it is served.
        OpenOptions::new().write(true).open(&path).unwrap().set_len(6144).unwrap();
        let read = |offset| Operation::Read { offset, length: 4096 };
        assert_eq!(run(&mut media, read(4096)), Err(Error::Media), "half of it is there");
        assert_eq!(run(&mut media, read(65536)), Err(Error::Media), "nothing of it is");
        assert_eq!(run(&mut media, read(0)), Ok(Bytes::from(vec![0; 4096])));
        let data = Bytes::from(vec![7; 4096]);
        run(&mut media, Operation::Write { offset: 65536, data: data.clone() }).unwrap();
        assert_eq!(run(&mut media, read(65536)), Ok(data));
        run(&mut media, Operation::Discard { offset: 65536, length: 4096 }).unwrap();
        run(&mut media, Operation::Flush).unwrap();
        media.close().unwrap();
        assert!(
            matches!(
                media.start(Request { id: 1, command: None, nsid: 1, operation: Operation::Flush }),
                Some(Err(Error::Internal))
            ),
            "closed"
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_disk_is_capacity_exceeded() {
        // Every write to it fails with ENOSPC.
        let full = OpenOptions::new().read(true).write(true).open("/dev/full").unwrap();
        let mut media = FileMedia::start(full, 1 << 20, false).unwrap();
        let write = Operation::Write { offset: 0, data: Bytes::from(vec![1; 512]) };
        assert_eq!(run(&mut media, write), Err(Error::NoSpace));
        let zeroes = Operation::WriteZeroes { offset: 0, length: 512 };
        assert_eq!(run(&mut media, zeroes), Err(Error::NoSpace));
        // It cannot be flushed either, and the host hears of it.
        assert_eq!(run(&mut media, Operation::Flush), Err(Error::Media));
    }

    #[test]
    fn mistakes_name_the_file() {
        let path = scratch("missing");
        let missing = FileMedia::open(&path, None, false).unwrap_err().to_string();
        assert!(missing.contains("farlane-") && missing.contains("cannot open"), "{missing}");
        std::fs::write(&path, vec![0; 4096]).unwrap();
        let cut = FileMedia::open(&path, Some(512), false).unwrap_err().to_string();
        assert!(cut.contains("refusing to cut"), "{cut}");
        let folder = FileMedia::open(&std::env::temp_dir(), None, true).unwrap_err().to_string();
        assert!(folder.contains("neither a regular file"), "{folder}");
        let endless = FileMedia::open(Path::new("/dev/zero"), None, true).unwrap_err().to_string();
        assert!(endless.contains("neither a regular file"), "{endless}");
        std::fs::remove_file(path).unwrap();
    }
}
