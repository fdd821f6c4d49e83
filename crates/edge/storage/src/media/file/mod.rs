//! A namespace in a file. Threads execute requests with `pread` and `pwrite`, or io_uring executes
//! reads and writes; an eventfd signals completions.

mod checked;
mod checksums;
mod failure;
#[cfg(test)]
mod failure_tests;
mod lock;
mod open;
mod opened_record;
mod options;
#[cfg(test)]
mod speed;
#[cfg(test)]
pub(super) mod tests;
mod transfers;

use super::{Media, done, status_of};
use crate::about;
use crate::completions::{Completions, completions};
use crate::files::{File, check_limit, grow};
use crate::record::{RecordKeeper, RecordStore, boot_id};
use bytes::Bytes;
pub(crate) use checksums::Layout;
use checksums::{Checksums, Order, Turn};
use failure::Failures;
use lock::lock;
use nvme::block::{Completion, Error, Operation, Request};
use open::{Opened, Undo};
use opened_record::OpenedRecord;
use options::served_size;
pub use options::{Aio, FileOptions};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use transfers::{Progress, Transfers};

/// Number of threads per file: enough to keep the page cache busy.
const WORKERS: usize = 2;

/// The media of a namespace in a file.
#[derive(Debug)]
pub struct FileMedia {
    shared: Arc<Shared>,
    size: u64,
    read_only: bool,
    incarnation: u64,
    undo: Option<Undo>,
    requests: Option<Sender<Task>>,
    /// The order of requests with checksums; `None` without checksums.
    order: Option<Order>,
    /// Reads and writes by io_uring; `None` if threads execute them.
    transfers: Option<Transfers>,
    done: Completions<(u64, Completion)>,
    notices: Receiver<String>,
    workers: Vec<JoinHandle<()>>,
}

/// A request and what it may do; without checksums always [`Turn::Free`].
type Task = (Request, Turn);

/// The state that the workers share.
#[derive(Debug)]
struct Shared {
    file: Box<dyn File>,
    checksums: Option<Checksums>,
    /// Name of the file for messages.
    name: String,
    /// Whether the record needs no change before a write.
    marked: AtomicBool,
    /// The keeper of the record; if `None`, the contents count as new at each start.
    keeper: Option<Mutex<RecordKeeper>>,
    failures: Failures,
    notices: Sender<String>,
}

impl FileMedia {
    /// Opens `path`. If the medium is dropped before [`Media::begin`], a created file is removed,
    /// and an extended file gets its old length. Error: a sentence with the path.
    pub fn open(path: &Path, options: FileOptions) -> io::Result<Self> {
        Self::open_in_boot(path, options, &boot_id()).map_err(|error| about(path.display(), error))
    }

    /// Checks without a lock or a change that `path` can be opened, or be created. Error: a sentence
    /// with the path.
    pub(super) fn check(path: &Path, options: FileOptions) -> io::Result<()> {
        open::check(path, options).map_err(|error| about(path.display(), error))
    }

    /// As [`open`](Self::open), with `boot` as the identity of this boot of the machine. Errors do
    /// not contain the path.
    fn open_in_boot(path: &Path, options: FileOptions, boot: &str) -> io::Result<Self> {
        let name = path.display().to_string();
        let mut opened = Opened::new(path, options)?;
        let read_only = opened.read_only;
        let record = OpenedRecord::open(path, &opened, boot)?;
        let length = opened.length;
        let size = served_size(record.size, &opened, options.size)?;
        if !read_only && opened.metadata.is_file() {
            check_limit(size)?;
        }
        if size > length {
            opened.undo.length = Some(length);
            grow(&opened.file, length, size, options.sparse)?;
        }
        let file = Box::new(opened.file);
        let mut media = Self::from_file(file, name, size, read_only, options.aio, record)?;
        if read_only && !options.read_only {
            media.shared.notify("not writable, so served read-only".into());
        }
        media.undo = Some(opened.undo);
        Ok(media)
    }

    /// Serves contents of a drive, which must have a record. `name` is for messages; errors do not
    /// contain it. `boot` identifies this boot of the machine.
    pub(crate) fn in_drive(
        file: Box<dyn File>,
        name: String,
        record: Box<dyn RecordStore>,
        boot: &str,
    ) -> io::Result<Self> {
        if let Some(descriptor) = file.descriptor() {
            lock(descriptor).map_err(|error| about("in use by another process", error))?;
        }
        let record = OpenedRecord::in_drive(record, &*file, boot)?;
        let size = record.size;
        Self::from_file(file, name, size, false, Aio::default(), record)
    }

    /// Serves the first `size` bytes of a file; `name` is for messages.
    fn from_file(
        file: Box<dyn File>,
        name: String,
        size: u64,
        read_only: bool,
        aio: Aio,
        record: OpenedRecord,
    ) -> io::Result<Self> {
        let (notices, received) = channel();
        record.notes.into_iter().for_each(|note| {
            let _ = notices.send(format!("{name}: {note}"));
        });
        let marked = AtomicBool::new(record.keeper.is_none());
        let keeper = record.keeper.map(Mutex::new);
        let (checksums, failures) = (record.checksums, Failures::default());
        let layout = checksums.as_ref().map(|checksums| checksums.layout);
        let shared = Shared { file, checksums, name, marked, keeper, failures, notices };
        let mut media = Self::start(shared, received, size, read_only, record.incarnation)?;
        let (file, signal) = (&*media.shared.file, media.done.signal());
        media.transfers = match Transfers::new(file, aio, layout, signal) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(about("in use by another process", error));
            }
            Err(error) => {
                media.shared.notify(format!("io_uring is not available: {error}; using threads"));
                None
            }
            Ok(transfers) => transfers,
        };
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
        let order = shared.checksums.is_some().then(Order::default);
        let (requests, queue) = channel::<Task>();
        let (finished, done) = completions()?;
        let queue = Arc::new(Mutex::new(queue));
        let workers = (0..WORKERS)
            .map(|_| {
                let (shared, queue, finished) = (shared.clone(), queue.clone(), finished.clone());
                std::thread::spawn(move || {
                    loop {
                        let next = queue.lock().expect("no worker panics with the lock").recv();
                        let Ok((request, turn)) = next else { return };
                        let outcome = shared.execute(request.operation, turn);
                        finished.send([(request.id, outcome)]);
                    }
                })
            })
            .collect();
        Ok(Self {
            shared,
            size,
            read_only,
            incarnation,
            undo: None,
            requests: Some(requests),
            order,
            transfers: None,
            done,
            notices,
            workers,
        })
    }
}

impl FileMedia {
    /// Passes a request to the threads. Returns an error completion if there is no thread.
    fn hand_over(&mut self, task: Task) -> Option<Completion> {
        match &self.requests {
            Some(requests) if requests.send(task).is_ok() => None,
            _ => Some(Err(Error::Internal)),
        }
    }

    fn begin_task(&mut self, (request, turn): Task) -> Option<Completion> {
        let task = match &mut self.transfers {
            // A request that must update the record or marks first is for a thread.
            Some(transfers) if self.shared.may(&request.operation) => {
                transfers.start((request, turn), self.shared.checksums.as_ref())?
            }
            _ => (request, turn),
        };
        self.hand_over(task)
    }

    /// Begins the requests whose turn it is.
    fn begin_next(&mut self) {
        while let Some(task) = self.order.as_mut().and_then(Order::next) {
            let done = self.begin_task(task);
            debug_assert!(done.is_none(), "the threads live until all requests have ended");
        }
    }

    /// Handles the end of a request.
    fn ended(&mut self, (id, outcome): (u64, Completion)) -> (u64, Completion) {
        if let Some(order) = &mut self.order {
            order.finish(id);
            self.begin_next();
            self.submit();
        }
        (id, outcome)
    }

    /// Waits for the requests that have more than one step, and for the requests behind them.
    fn drain(&mut self) {
        while self.order.as_ref().is_some_and(|order| !order.is_idle()) {
            self.clear_signal();
            if self.poll_completion().is_none() {
                let signal = self.done.signal();
                let _ = poll(&mut [PollFd::new(&signal, PollFlags::IN)], None);
            }
        }
    }

    /// Verifies all data by their checksums; returns the ranges of bytes that do not have their
    /// checksum or cannot be read. `None` without checksums. No request may be under way.
    pub fn verify(&self) -> Option<Vec<Range<u64>>> {
        let Shared { checksums, file, .. } = &*self.shared;
        checksums.as_ref().map(|checksums| checksums.verify(&**file))
    }
}

impl Shared {
    fn execute(&self, operation: Operation, turn: Turn) -> Completion {
        match operation {
            Operation::Flush => return self.flush(turn),
            Operation::Read { .. } => {}
            _ if self.failures.read_only() => return Err(Error::ReadOnly),
            _ => self.mark().map_err(|error| status_of(&error))?,
        }
        let outcome = match &self.checksums {
            Some(checksums) => checksums.execute(&*self.file, &operation, turn),
            None => execute(&*self.file, &operation),
        };
        outcome.map_err(|error| self.failed(&operation, &error))
    }

    /// Whether an operation can be executed without preparation.
    fn may(&self, operation: &Operation) -> bool {
        let marked = || self.marked.load(Ordering::Acquire) && !self.failures.read_only();
        let (offset, length) = operation.range();
        let in_region = |one: &Checksums| one.is_marked(&(offset..offset + length));
        matches!(operation, Operation::Read { .. })
            || marked() && self.checksums.as_ref().is_none_or(in_region)
    }

    /// Marks the record durably as dirty, before the first write.
    fn mark(&self) -> io::Result<()> {
        if self.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        self.with_record(RecordKeeper::mark_dirty)?;
        self.marked.store(true, Ordering::Release);
        Ok(())
    }

    /// Changes the record. If the record had to be removed instead, notifies the user.
    fn with_record(
        &self,
        change: impl FnOnce(&mut RecordKeeper) -> io::Result<Option<io::Error>>,
    ) -> io::Result<()> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let mut keeper = keeper.lock().expect("no worker panics with the lock");
        let changed = change(&mut keeper);
        let record = keeper.store.name();
        match changed {
            Ok(None) => Ok(()),
            Ok(Some(error)) => {
                self.notify(format!(
                    "cannot write the record {record}: {error}: the contents count as new \
                     at the next start"
                ));
                Ok(())
            }
            Err(error) => {
                let text = format!("the record {record} can be neither written nor removed");
                self.notify(format!("{text}: {error}; writes fail"));
                Err(error)
            }
        }
    }

    /// Makes all data durable and removes the marks.
    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_data()?;
        match &self.checksums {
            Some(checksums) if checksums.has_marks() => {
                checksums.clear_marks(&*self.file)?;
                self.file.sync_data()
            }
            _ => Ok(()),
        }
    }

    fn notify(&self, text: String) {
        let _ = self.notices.send(format!("{}: {text}", self.name));
    }
}

/// Executes one operation on any file.
fn execute(file: &dyn File, operation: &Operation) -> io::Result<Bytes> {
    match operation {
        Operation::Read { offset, length } => {
            let mut data = vec![0; *length];
            file.read_at(&mut data, *offset)?;
            return Ok(data.into());
        }
        Operation::Write { offset, data } => file.write_at(data, *offset)?,
        Operation::Flush => file.sync_data()?,
        Operation::WriteZeroes { offset, length } => file.zero_range(*offset, *length)?,
        // A hole reads as zeroes. A file system without holes keeps the data, which is allowed for
        // a discard.
        Operation::Discard { offset, length } => drop(file.punch_hole(*offset, *length)),
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
        let (Some(order), Some(checksums)) = (&mut self.order, &self.shared.checksums) else {
            return self.begin_task((request, Turn::Free));
        };
        if self.requests.is_none() {
            return Some(Err(Error::Internal));
        }
        order.add(request, checksums.has_marks());
        self.begin_next();
        None
    }

    fn submit(&mut self) -> bool {
        let Some(transfers) = &mut self.transfers else { return false };
        if transfers.submit().is_err() {
            // The kernel has no memory at the moment. Wake the loop of the node for another
            // attempt.
            let _ = rustix::io::write(self.done.signal(), &1u64.to_ne_bytes());
        }
        true
    }

    fn poll_completion(&mut self) -> Option<(u64, Completion)> {
        loop {
            // Submit the transfers that the kernel did not accept at the last attempt.
            self.submit();
            let checksums = self.shared.checksums.as_ref();
            let ended = self.transfers.as_mut().and_then(|transfers| transfers.ended(checksums));
            let completed = match ended {
                Some(Progress::Completed(id, outcome)) => Some((id, outcome)),
                Some(Progress::Continues) => None,
                Some(Progress::ForThread(task)) => {
                    let id = task.0.id;
                    self.hand_over(task).map(|outcome| (id, outcome))
                }
                None => return self.done.poll().map(|completed| self.ended(completed)),
            };
            if let Some(completed) = completed {
                return Some(self.ended(completed));
            }
        }
    }

    fn clear_signal(&mut self) {
        self.done.clear_signal();
    }

    fn signal(&self) -> Option<BorrowedFd<'_>> {
        Some(self.done.signal())
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_only(&self) -> bool {
        self.read_only || self.shared.failures.read_only()
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn begin(&mut self) {
        if let Some(undo) = self.undo.take() {
            undo.disarm();
        }
        let size = self.size;
        // `with_record` reports an error to the user; the first write tries again.
        let _ = self.shared.with_record(|keeper| keeper.begin(size));
    }

    fn take_notice(&mut self) -> Option<String> {
        self.notices.try_recv().ok()
    }

    fn close(&mut self) -> io::Result<()> {
        if self.requests.is_none() {
            return Ok(());
        }
        self.drain();
        self.requests = None;
        // The drop waits for the transfers under way.
        self.transfers = None;
        for worker in self.workers.drain(..) {
            worker.join().map_err(|_| io::Error::other("a media thread panicked"))?;
        }
        if self.read_only {
            return Ok(());
        }
        let synced = match self.shared.failures.lost_data() {
            true => Err(io::Error::other(format!(
                "{}: an earlier flush failed, so written data may be lost",
                self.shared.name
            ))),
            false => self.shared.sync_all(),
        };
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
