//! Tests with a file that fails on request.

use super::*;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};

const SIZE: u64 = 1 << 20;

/// A file in memory, with the faults of the next writes and syncs.
#[derive(Debug, Default)]
struct Faulty {
    bytes: Mutex<Vec<u8>>,
    writes: Mutex<VecDeque<Fault>>,
    syncs: Mutex<VecDeque<ErrorKind>>,
    descriptor: Option<OwnedFd>,
}

/// A fault of a write: the number of bytes that are written before the error, and the error.
type Fault = (usize, ErrorKind);

impl File for Arc<Faulty> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        bytes.copy_from_slice(&self.bytes.lock().unwrap()[offset as usize..][..bytes.len()]);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fault = self.writes.lock().unwrap().pop_front();
        let count = fault.map_or(bytes.len(), |(count, _)| count);
        let mut own = self.bytes.lock().unwrap();
        own[offset as usize..][..count].copy_from_slice(&bytes[..count]);
        fault.map_or(Ok(()), |(_, kind)| Err(kind.into()))
    }

    fn write_durably_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().resize(length as usize, 0);
        Ok(())
    }

    /// Reports an error only once, as Linux does.
    fn sync_data(&self) -> io::Result<()> {
        self.syncs.lock().unwrap().pop_front().map_or(Ok(()), |kind| Err(kind.into()))
    }

    fn zero_range(&self, offset: u64, length: u64) -> io::Result<()> {
        self.write_at(&vec![0; length as usize], offset)
    }

    fn punch_hole(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn allocate(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn free_space(&self) -> Option<u64> {
        None
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(AsFd::as_fd)
    }
}

fn media() -> (FileMedia, Arc<Faulty>) {
    let file = Arc::new(Faulty::default());
    file.set_len(SIZE).unwrap();
    let (notices, received) = channel();
    let shared = Shared {
        file: Box::new(file.clone()),
        checksums: None,
        name: "disk".into(),
        marked: true.into(),
        keeper: None,
        failures: Failures::default(),
        notices,
    };
    (FileMedia::start(shared, received, SIZE, false, 1).unwrap(), file)
}

fn run(media: &mut FileMedia, operation: Operation) -> Completion {
    tests::run(media, operation)
}

fn write(offset: u64, byte: u8) -> Operation {
    Operation::Write { offset, data: vec![byte; 4096].into() }
}

fn read(offset: u64) -> Operation {
    Operation::Read { offset, length: 4096 }
}

#[test]
fn a_full_disk_half_way_through_a_write_loses_nothing_acknowledged() {
    let (mut media, file) = media();
    run(&mut media, write(0, 1)).unwrap();
    file.writes.lock().unwrap().extend([(2048, ErrorKind::StorageFull); 2]);
    assert_eq!(run(&mut media, write(4096, 2)), Err(Error::NoSpace));
    let notice = media.take_notice().unwrap();
    assert!(notice.starts_with("disk: cannot write 4096 bytes at byte 4096: "), "{notice}");
    assert_eq!(run(&mut media, write(4096, 2)), Err(Error::NoSpace));
    assert_eq!(media.take_notice(), None, "told once");
    assert!(!media.read_only());
    // There is space again: only the failed write is missing.
    run(&mut media, write(8192, 3)).unwrap();
    run(&mut media, Operation::Flush).unwrap();
    assert_eq!(run(&mut media, read(0)), Ok(vec![1; 4096].into()));
    assert_eq!(run(&mut media, read(8192)), Ok(vec![3; 4096].into()));
    media.close().unwrap();
}

#[test]
fn every_error_of_the_system_has_a_status() {
    for (kind, status) in [
        (ErrorKind::Other, Error::Media),
        (ErrorKind::UnexpectedEof, Error::Media),
        (ErrorKind::StorageFull, Error::NoSpace),
        (ErrorKind::QuotaExceeded, Error::NoSpace),
        (ErrorKind::FileTooLarge, Error::NoSpace),
        (ErrorKind::ReadOnlyFilesystem, Error::ReadOnly),
        // The error of a read-only block device (linux/block/fops.c, blkdev_write_iter).
        (ErrorKind::PermissionDenied, Error::ReadOnly),
    ] {
        let (mut media, file) = media();
        file.writes.lock().unwrap().push_back((0, kind));
        assert_eq!(run(&mut media, write(0, 1)), Err(status), "{kind}");
        assert_eq!(media.read_only(), status == Error::ReadOnly);
    }
    let (mut media, file) = media();
    file.writes.lock().unwrap().push_back((512, ErrorKind::Other));
    let zeroes = Operation::WriteZeroes { offset: 0, length: 4096 };
    assert_eq!(run(&mut media, zeroes), Err(Error::Media));
}

#[test]
fn a_medium_that_becomes_read_only_stays_so_and_is_read() {
    let (mut media, file) = media();
    run(&mut media, write(0, 1)).unwrap();
    file.writes.lock().unwrap().push_back((0, ErrorKind::ReadOnlyFilesystem));
    assert_eq!(run(&mut media, write(0, 2)), Err(Error::ReadOnly));
    assert!(media.take_notice().unwrap().contains("read-only until the node is restarted"));
    let others = [
        write(0, 2),
        Operation::WriteZeroes { offset: 0, length: 4096 },
        Operation::Discard { offset: 0, length: 4096 },
    ];
    for operation in others {
        assert_eq!(run(&mut media, operation), Err(Error::ReadOnly));
    }
    assert_eq!(run(&mut media, read(0)), Ok(vec![1; 4096].into()));
    // Earlier written data can still be made durable.
    run(&mut media, Operation::Flush).unwrap();
}

#[test]
fn after_a_flush_that_failed_no_flush_succeeds() {
    let (mut media, file) = media();
    run(&mut media, write(0, 1)).unwrap();
    file.syncs.lock().unwrap().push_back(ErrorKind::Other);
    // Flushes that other threads had begun fail too.
    for _ in 0..8 {
        let flush = Request { id: 3, command: None, nsid: 1, operation: Operation::Flush };
        assert_eq!(media.start(flush), None);
    }
    let mut outcomes = Vec::new();
    while outcomes.len() < 8 {
        outcomes.extend(media.poll_completion());
        std::thread::yield_now();
    }
    assert!(outcomes.iter().all(|(_, outcome)| *outcome == Err(Error::Media)), "{outcomes:?}");
    assert!(media.take_notice().unwrap().contains("every flush fails"));
    assert_eq!(media.take_notice(), None);
    run(&mut media, write(0, 2)).unwrap();
    assert_eq!(run(&mut media, Operation::Flush), Err(Error::Media), "data of before are lost");
    assert!(media.close().unwrap_err().to_string().contains("disk: an earlier flush failed"));
}

#[test]
fn threads_do_what_the_kernel_refuses_to_io_uring() {
    // A socket cannot be opened again for direct I/O (open(2), ENXIO).
    let (socket, _) = std::os::unix::net::UnixStream::pair().unwrap();
    let file = Arc::new(Faulty { descriptor: Some(socket.into()), ..Faulty::default() });
    file.set_len(SIZE).unwrap();
    let record = OpenedRecord {
        keeper: None,
        incarnation: 1,
        size: SIZE,
        notes: Vec::new(),
        checksums: None,
    };
    let (name, aio) = ("disk".to_owned(), Aio::IoUringDirect);
    let mut media = FileMedia::from_file(Box::new(file), name, SIZE, false, aio, record).unwrap();
    let notice = media.take_notice().unwrap();
    assert!(notice.starts_with("disk: io_uring is not") && notice.ends_with("using threads"));
    run(&mut media, write(0, 1)).unwrap();
    assert_eq!(run(&mut media, read(0)), Ok(vec![1; 4096].into()));
    assert_eq!(media.take_notice(), None, "told once");
}
