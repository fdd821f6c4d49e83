//! A namespace in a file. Threads carry requests out with `pread` and `pwrite`; an eventfd
//! signals completions.

mod grow;
mod open;
mod opened_record;
#[cfg(test)]
mod tests;

use super::record::{ImageFolder, RecordKeeper, boot_id};
use super::{Media, done, status_of};
use crate::about;
use bytes::Bytes;
use grow::grow;
use nvme::block::{Completion, Error, Operation, Request};
use open::{Opened, Undo};
use opened_record::OpenedRecord;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Threads per file: enough to keep the page cache busy.
const WORKERS: usize = 2;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Creates the file or grows it to this many bytes; a longer file is never truncated.
    pub size: Option<u64>,
    /// The part that `size` adds is allocated as it is written, not reserved.
    pub sparse: bool,
    /// Writes are refused, and no record is written.
    pub read_only: bool,
}

/// A file as a block store.
#[derive(Debug)]
pub struct FileMedia {
    shared: Arc<Shared>,
    size: u64,
    read_only: bool,
    incarnation: u64,
    undo: Option<Undo>,
    requests: Option<Sender<Request>>,
    done: Receiver<(u64, Completion)>,
    notices: Receiver<String>,
    signal: Arc<OwnedFd>,
    workers: Vec<JoinHandle<()>>,
}

/// What the workers have in common.
#[derive(Debug)]
struct Shared {
    file: File,
    /// The file's name for messages.
    name: String,
    /// The record needs no change before a write.
    marked: AtomicBool,
    /// The record's keeper; without one the contents count as new at each start.
    keeper: Option<Mutex<RecordKeeper<ImageFolder>>>,
    notices: Sender<String>,
}

impl FileMedia {
    /// Opens `path`. A file that this created or grew is removed or restored if the medium is
    /// dropped before [`Media::begin`]. Error: a sentence that names the file.
    pub fn open(path: &Path, options: FileOptions) -> io::Result<Self> {
        Self::open_in_boot(path, options, &boot_id()).map_err(|error| about(path.display(), error))
    }

    /// The same, with `boot` as the identity of this boot of the machine. Errors do not name the
    /// file.
    fn open_in_boot(path: &Path, options: FileOptions, boot: &str) -> io::Result<Self> {
        let name = path.display().to_string();
        let create = options.size.is_some() && !options.read_only;
        let mut opened = Opened::new(path, options.read_only, create)?;
        let record = OpenedRecord::open(path, &opened, options.read_only, boot)?;
        let length = opened.length;
        let size = served_size(record.size, length, options)?;
        if size > length {
            opened.undo.length = Some(length);
            grow(&opened.file, length, size, options.sparse)?;
        }
        let (notices, received) = channel();
        record.notes.into_iter().for_each(|note| {
            let _ = notices.send(format!("{name}: {note}"));
        });
        let shared = Shared {
            file: opened.file,
            name,
            marked: AtomicBool::new(record.keeper.is_none()),
            keeper: record.keeper.map(Mutex::new),
            notices,
        };
        let mut media = Self::start(shared, received, size, options.read_only, record.incarnation)?;
        media.undo = Some(opened.undo);
        Ok(media)
    }

    fn start(
        shared: Shared,
        notices: Receiver<String>,
        size: u64,
        read_only: bool,
        incarnation: u64,
    ) -> io::Result<Self> {
        let shared = Arc::new(shared);
        let signal = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (requests, queue) = channel::<Request>();
        let (finished, done) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..WORKERS)
            .map(|_| {
                let (shared, queue) = (shared.clone(), queue.clone());
                let (finished, signal) = (finished.clone(), signal.clone());
                std::thread::spawn(move || {
                    loop {
                        let next = queue.lock().expect("no worker panics with the lock").recv();
                        let Ok(request) = next else { return };
                        let outcome = shared.execute(request.operation);
                        let _ = finished.send((request.id, outcome));
                        let _ = rustix::io::write(&*signal, &1u64.to_ne_bytes());
                    }
                })
            })
            .collect();
        let (undo, requests) = (None, Some(requests));
        Ok(Self {
            shared,
            size,
            read_only,
            incarnation,
            undo,
            requests,
            done,
            notices,
            signal,
            workers,
        })
    }
}

/// How many bytes of a file of `length` bytes are served; `have` were served before.
fn served_size(have: u64, length: u64, options: FileOptions) -> io::Result<u64> {
    let FileOptions { size, read_only, .. } = options;
    match size {
        Some(size) if size < have => Err(io::Error::other(format!(
            "is {have} bytes long, more than size={size}: refusing to cut it"
        ))),
        Some(size) if size > length && read_only => Err(io::Error::other(format!(
            "is {length} bytes long and read-only, size={size} asks for more"
        ))),
        Some(size) => Ok(size),
        None => Ok(have),
    }
}

impl Shared {
    fn execute(&self, operation: Operation) -> Completion {
        if !matches!(operation, Operation::Read { .. } | Operation::Flush) {
            self.mark().map_err(|error| status_of(&error))?;
        }
        let flush = operation == Operation::Flush;
        let outcome = execute(&self.file, operation);
        if flush && outcome.is_err() {
            // Linux reports pages that could not be written only once: the final sync would not
            // report them again.
            let forgotten = self.with_record(|keeper| keeper.discard().map(|()| None));
            self.marked.fetch_and(forgotten.is_ok(), Ordering::AcqRel);
        }
        outcome
    }

    /// Before the first write, marks the record durably as dirty.
    fn mark(&self) -> io::Result<()> {
        if self.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        self.with_record(RecordKeeper::mark_dirty)?;
        self.marked.store(true, Ordering::Release);
        Ok(())
    }

    /// Changes the record; notifies the user if it had to be removed instead.
    fn with_record(
        &self,
        change: impl FnOnce(&mut RecordKeeper<ImageFolder>) -> io::Result<Option<io::Error>>,
    ) -> io::Result<()> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let mut keeper = keeper.lock().expect("no worker panics with the lock");
        let changed = change(&mut keeper);
        let record = keeper.folder.record.display();
        match changed {
            Ok(None) => Ok(()),
            Ok(Some(error)) => {
                self.notify(format!(
                    "no record can be written to {record}: {error}: the contents count as new \
                     at the next start"
                ));
                Ok(())
            }
            Err(error) => {
                let text = format!("the record {record} can be neither written nor removed");
                self.notify(format!("{text}: {error}: writes are refused"));
                Err(error)
            }
        }
    }

    fn notify(&self, text: String) {
        let _ = self.notices.send(format!("{}: {text}", self.name));
    }
}

fn execute(file: &File, operation: Operation) -> Completion {
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
        // A hole reads as zeroes; on a file system without holes zeroes are written.
        Operation::Discard { offset, length } => {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match fallocate(file, hole, offset, length) {
                Ok(()) => Ok(Bytes::new()),
                Err(_) => zero(file, offset, length),
            }
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
        match request.operation {
            Operation::Flush if self.read_only => return Some(done()),
            Operation::Read { .. } => {}
            _ if self.read_only => return Some(Err(Error::ReadOnly)),
            _ => {}
        }
        match &self.requests {
            Some(requests) if requests.send(request).is_ok() => None,
            _ => Some(Err(Error::Internal)),
        }
    }

    fn poll_completion(&mut self) -> Option<(u64, Completion)> {
        self.done.try_recv().ok()
    }

    fn clear_signal(&mut self) {
        let _ = rustix::io::read(&*self.signal, &mut [0u8; 8]);
    }

    fn signal(&self) -> Option<BorrowedFd<'_>> {
        Some(self.signal.as_fd())
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_only(&self) -> bool {
        self.read_only
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn begin(&mut self) {
        if let Some(undo) = self.undo.take() {
            undo.disarm();
        }
        let size = self.size;
        // The user is notified of an error; writes try again.
        let _ = self.shared.with_record(|keeper| keeper.begin(size));
    }

    fn take_notice(&mut self) -> Option<String> {
        self.notices.try_recv().ok()
    }

    fn close(&mut self) -> io::Result<()> {
        if self.requests.take().is_none() {
            return Ok(());
        }
        for worker in self.workers.drain(..) {
            worker.join().map_err(|_| io::Error::other("a media thread panicked"))?;
        }
        if self.read_only {
            return Ok(());
        }
        let synced = self.shared.file.sync_all();
        let recorded = self.shared.with_record(|keeper| match &synced {
            Ok(()) => keeper.mark_clean(),
            Err(_) => keeper.discard().map(|()| None),
        });
        synced.and(recorded)
    }
}

impl Drop for FileMedia {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
