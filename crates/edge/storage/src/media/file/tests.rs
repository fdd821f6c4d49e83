//! Tests of media in a file.

use super::*;
use crate::files::SystemFile;
use crate::media::{RamMedia, SharedRam};
use proptest::prelude::*;
use rustix::event::PollFd;
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use testkit::Folder;

const MIB: u64 = 1 << 20;
const AS_IT_IS: FileOptions = FileOptions {
    size: None,
    sparse: false,
    read_only: false,
    use_existing_data: false,
    block: 512,
    aio: Aio::Threads,
};
const READ_ONLY: FileOptions = FileOptions { read_only: true, ..AS_IT_IS };
const NEW: FileOptions = FileOptions { size: Some(MIB), ..AS_IT_IS };

/// A folder with an image.
struct Scratch(Folder);

impl Scratch {
    fn new() -> Self {
        Self(Folder::new())
    }

    fn image(&self) -> PathBuf {
        self.0.join("disk.img")
    }

    fn record(&self) -> PathBuf {
        self.0.join("disk.img.farlane")
    }

    fn image_length(&self) -> u64 {
        self.image().metadata().unwrap().len()
    }

    /// The text of the record.
    fn text(&self) -> String {
        std::fs::read_to_string(self.record()).unwrap()
    }

    /// The names of the files in the folder, sorted.
    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&*self.0).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn open(&self, options: FileOptions, boot: &str) -> FileMedia {
        let mut media = FileMedia::open_in_boot(&self.image(), options, boot).unwrap();
        media.begin();
        media
    }

    #[track_caller]
    fn fails(&self, options: FileOptions, parts: &[&str]) {
        let error = FileMedia::open(&self.image(), options).unwrap_err().to_string();
        for part in parts.iter().chain(&["disk.img"]) {
            assert!(error.contains(part), "no '{part}' in: {error}");
        }
    }
}

/// Executes one request.
pub(crate) fn run(media: &mut dyn Media, operation: Operation) -> Completion {
    if let Some(outcome) = media.start(Request { id: 7, command: None, nsid: 1, operation }) {
        return outcome;
    }
    media.submit();
    loop {
        if let Some((7, outcome)) = media.poll_completion() {
            return outcome;
        }
        std::thread::yield_now();
    }
}

fn write(media: &mut FileMedia) {
    let data = Bytes::from(vec![0xa5; 4096]);
    run(media, Operation::Write { offset: 0, data }).unwrap();
}

fn notices(media: &mut FileMedia) -> String {
    std::iter::from_fn(|| media.take_notice()).collect::<Vec<_>>().join("\n")
}

#[test]
fn data_survives_reopening() {
    let scratch = Scratch::new();
    let data = Bytes::from(vec![0xa5; 4096]);
    {
        let mut media = scratch.open(NEW, "A");
        run(&mut media, Operation::Write { offset: 8192, data: data.clone() }).unwrap();
        run(&mut media, Operation::WriteZeroes { offset: 8192, length: 512 }).unwrap();
        run(&mut media, Operation::Flush).unwrap();
        scratch.fails(AS_IT_IS, &["in use"]);
    }
    let mut media = scratch.open(READ_ONLY, "A");
    assert_eq!(media.size(), MIB);
    let read = run(&mut media, Operation::Read { offset: 8192, length: 4096 }).unwrap();
    assert!(read[..512].iter().all(|b| *b == 0) && read[512..] == data[512..]);
    let refused = run(&mut media, Operation::Write { offset: 0, data });
    assert_eq!(refused, Err(Error::ReadOnly));
}

#[test]
fn faults_of_the_file_are_statuses_of_commands() {
    for aio in [Aio::Threads, Aio::IoUring, Aio::IoUringDirect] {
        faults_are_statuses(aio);
    }
}

fn faults_are_statuses(aio: Aio) {
    let scratch = Scratch::new();
    let mut media = scratch.open(FileOptions { aio, ..NEW }, "A");
    // Truncate the file while it is served.
    OpenOptions::new().write(true).open(scratch.image()).unwrap().set_len(6144).unwrap();
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
    let flush = Request { id: 1, command: None, nsid: 1, operation: Operation::Flush };
    assert_eq!(media.start(flush), Some(Err(Error::Internal)), "closed");
}

proptest! {
    // Each case makes three files durable.
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Sequences of writes, zeroes and reads, on all media.
    #[test]
    fn every_medium_reads_what_was_written(
        steps in prop::collection::vec((0u8..3, 0u64..MIB / 512, 1u64..64), 1..40),
    ) {
        let ways = [Aio::Threads, Aio::IoUring, Aio::IoUringDirect].map(Some);
        for (aio, shared) in ways.map(|way| (way, false)).into_iter().chain([(None, false), (None, true)]) {
            let scratch = Scratch::new();
            let mut media: Box<dyn Media> = match aio {
                Some(aio) => Box::new(scratch.open(FileOptions { aio, ..NEW }, "A")),
                None if shared => Box::new(SharedRam::new(MIB)),
                None => Box::new(RamMedia::new(MIB)),
            };
            let media = &mut *media;
            let mut model = vec![0; MIB as usize];
            for (step, (kind, block, blocks)) in steps.iter().enumerate() {
                let (offset, end) = (block * 512, ((block + blocks) * 512).min(MIB));
                let range = &mut model[offset as usize..end as usize];
                let length = range.len();
                match kind {
                    0 => {
                        // The data are not aligned in memory.
                        let data = Bytes::from(vec![step as u8 + 1; length + 3]).slice(3..);
                        range.copy_from_slice(&data);
                        run(media, Operation::Write { offset, data }).unwrap();
                    }
                    1 => {
                        range.fill(0);
                        let length = length as u64;
                        run(media, Operation::WriteZeroes { offset, length }).unwrap();
                    }
                    _ => {
                        let read = run(media, Operation::Read { offset, length }).unwrap();
                        prop_assert_eq!(&read[..], &*range);
                    }
                }
            }
            media.close().unwrap();
            prop_assert_eq!(media.size(), MIB);
            if aio.is_some() {
                prop_assert!(std::fs::read(scratch.image()).unwrap() == model);
            }
        }
    }
}

#[test]
fn many_requests_at_once_all_complete_whoever_carries_them_out() {
    for aio in [Aio::Threads, Aio::IoUring, Aio::IoUringDirect] {
        let scratch = Scratch::new();
        let mut media = scratch.open(FileOptions { aio, ..NEW }, "A");
        // More requests than the ring has room for, with blocks that may be too small for direct
        // I/O.
        let mut left: Vec<u64> = (0..1000).collect();
        for id in &left {
            let (offset, length) = (id * 512, 512);
            let operation = match id % 2 {
                0 => Operation::Read { offset, length },
                _ => Operation::Write { offset, data: vec![*id as u8; length].into() },
            };
            let request = Request { id: *id, command: None, nsid: 1, operation };
            assert_eq!(media.start(request), None);
        }
        media.submit();
        while !left.is_empty() {
            while let Some((id, outcome)) = media.poll_completion() {
                outcome.unwrap();
                left.retain(|other| *other != id);
            }
            let none = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
            let flags = rustix::event::PollFlags::IN;
            let signal = media.signal().unwrap();
            if !left.is_empty() {
                let ready =
                    rustix::event::poll(&mut [PollFd::new(&signal, flags)], Some(&none)).unwrap();
                assert_eq!(ready, 1, "{aio:?}: {} requests are lost", left.len());
                media.clear_signal();
            }
        }
    }
}

/// A file whose writes fail with ENOSPC, and which cannot be synced.
fn full_file() -> SystemFile {
    OpenOptions::new().read(true).write(true).open("/dev/full").unwrap().into()
}

fn full(keeper: Option<RecordKeeper>) -> (Shared, Receiver<String>) {
    let (notices, received) = channel();
    let (file, name, keeper): (Box<dyn File>, _, _) =
        (Box::new(full_file()), "full".into(), keeper.map(Mutex::new));
    let failures = Failures::default();
    let shared =
        Shared { file, checksums: None, name, marked: true.into(), keeper, failures, notices };
    (shared, received)
}

#[test]
fn a_full_disk_is_capacity_exceeded() {
    let (shared, received) = full(None);
    let mut media = FileMedia::start(shared, received, MIB, false, 1).unwrap();
    let write = Operation::Write { offset: 0, data: Bytes::from(vec![1; 512]) };
    assert_eq!(run(&mut media, write), Err(Error::NoSpace));
    let zeroes = Operation::WriteZeroes { offset: 0, length: 512 };
    assert_eq!(run(&mut media, zeroes), Err(Error::NoSpace));
    // The file cannot be flushed either, and the host gets an error.
    assert_eq!(run(&mut media, Operation::Flush), Err(Error::Media));
}

#[test]
fn a_record_that_an_older_program_wrote_keeps_the_incarnation() {
    let scratch = Scratch::new();
    std::fs::write(scratch.image(), vec![0; 8192]).unwrap();
    let inode = scratch.image().metadata().unwrap().ino();
    let record = format!(
        "# Which contents the file beside this one has: written by farlane device.\n\
         # Without it the contents count as new.\n\
         version = 1\nincarnation = 123456789abcdef0\nsize = 4096\ninode = {inode}\nbirth = -\n\
         state = clean\nboot = b0077000-0000-4000-8000-000000000001\n"
    );
    std::fs::write(scratch.record(), &record).unwrap();
    let media = scratch.open(AS_IT_IS, "A");
    assert_eq!((media.incarnation(), media.size()), (0x1234_5678_9abc_def0, 4096));
    drop(media);
    assert_eq!(scratch.text(), record, "nothing was written");
}

#[test]
fn a_flush_that_failed_makes_the_contents_new() {
    let scratch = Scratch::new();
    drop(scratch.open(NEW, "A"));
    let opened = || Opened::new(&scratch.image(), AS_IT_IS).unwrap();
    let kept = |opened: &Opened| OpenedRecord::open(&scratch.image(), opened, "A").unwrap();
    let dirty = scratch.text().replace("clean", "dirty");
    std::fs::write(scratch.record(), &dirty).unwrap();
    // A file that can be neither synced nor written.
    let before = kept(&opened());
    let incarnation = before.incarnation;
    let (shared, _heard) = full(before.keeper);
    assert_eq!(shared.execute(Operation::Flush, Turn::Free), Err(Error::Media));
    // The contents count as new even if the process is killed now, or the last sync succeeds.
    assert!(!scratch.record().exists());
    shared.with_record(RecordKeeper::mark_clean).unwrap();
    assert!(!scratch.record().exists());
    // A record that cannot be removed is later replaced by a record with another incarnation.
    std::fs::write(scratch.record(), &dirty).unwrap();
    let mut keeper = kept(&opened()).keeper.unwrap();
    std::fs::remove_file(scratch.record()).unwrap();
    std::fs::create_dir(scratch.record()).unwrap();
    assert!(keeper.discard().is_err());
    std::fs::remove_dir(scratch.record()).unwrap();
    keeper.mark_clean().unwrap();
    assert_ne!(kept(&opened()).incarnation, incarnation);
    // A killed process has written data that cannot be made durable.
    std::fs::write(scratch.record(), &dirty).unwrap();
    assert_eq!(kept(&opened()).incarnation, incarnation);
    let failing = Opened { file: full_file(), ..opened() };
    let after = kept(&failing);
    assert_ne!(after.incarnation, incarnation);
    assert!(after.notes[0].contains("cannot be synced"), "{:?}", after.notes);
}

#[test]
fn open_errors_name_the_file() {
    let scratch = Scratch::new();
    scratch.fails(AS_IT_IS, &["cannot open"]);
    std::fs::write(scratch.image(), vec![0; 4096]).unwrap();
    scratch.fails(FileOptions { size: Some(512), ..AS_IT_IS }, &["it is not shortened"]);
    std::fs::remove_file(scratch.image()).unwrap();
    for (path, options) in [("/tmp", READ_ONLY), ("/dev/zero", READ_ONLY), ("/dev/null", NEW)] {
        let error = FileMedia::open(Path::new(path), options).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains("neither a regular file"), "{error}");
    }
    // The open does not wait for the other end of a pipe. The test starts no process for this,
    // because a process would keep the locks of other tests for a moment.
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, scratch.image(), kind, mode, 0).unwrap();
    scratch.fails(READ_ONLY, &["neither a regular file"]);
}

#[test]
fn the_record_is_dirty_from_the_first_write_to_the_orderly_end() {
    let scratch = Scratch::new();
    let mut media = scratch.open(NEW, "A");
    let incarnation = media.incarnation();
    assert!(scratch.text().contains("state = clean"));
    run(&mut media, Operation::Read { offset: 0, length: 4096 }).unwrap();
    run(&mut media, Operation::Flush).unwrap();
    assert!(scratch.text().contains("state = clean"));
    write(&mut media);
    let dirty = scratch.text();
    assert!(dirty.contains("state = dirty\nboot = A\n"), "{dirty}");
    media.close().unwrap();
    let clean = scratch.text();
    assert_eq!(clean, dirty.replace("dirty", "clean"));
    drop(media);
    // After an orderly end, the boot has no effect.
    assert_eq!(scratch.open(AS_IT_IS, "B").incarnation(), incarnation);
    // Every kind of write marks the record as dirty, as a killed process leaves it.
    for operation in [
        Operation::WriteZeroes { offset: 0, length: 4096 },
        Operation::Discard { offset: 0, length: 4096 },
    ] {
        let mut media = scratch.open(AS_IT_IS, "A");
        run(&mut media, operation).unwrap();
        assert_eq!(scratch.text(), dirty);
    }
    std::fs::write(scratch.record(), &dirty).unwrap();
    assert_eq!(scratch.open(AS_IT_IS, "A").incarnation(), incarnation, "a killed process");
    assert_eq!(scratch.text(), clean, "all of it is durable now");
    std::fs::write(scratch.record(), &dirty).unwrap();
    let mut crashed = scratch.open(AS_IT_IS, "B");
    assert_ne!(crashed.incarnation(), incarnation, "a crash of the machine");
    assert!(notices(&mut crashed).contains("machine went down"));
    let new = crashed.incarnation();
    drop(crashed);
    assert_eq!(scratch.open(AS_IT_IS, "C").incarnation(), new, "it was stored");
    assert_eq!(scratch.names(), ["disk.img", "disk.img.farlane"]);
}

#[test]
fn another_file_has_other_contents() {
    let scratch = Scratch::new();
    let first = scratch.open(NEW, "A").incarnation();
    // The new file may have the inode number of the old file.
    std::fs::remove_file(scratch.image()).unwrap();
    let second = scratch.open(NEW, "A").incarnation();
    assert_ne!(second, first);
    // Another program creates the file; the old record still exists.
    std::fs::remove_file(scratch.image()).unwrap();
    std::fs::write(scratch.image(), vec![0; MIB as usize]).unwrap();
    let mut third = scratch.open(AS_IT_IS, "A");
    assert_ne!(third.incarnation(), second);
    assert!(notices(&mut third).contains("is not the file that"));
    let kept = third.incarnation();
    drop(third);
    assert_eq!(scratch.open(AS_IT_IS, "A").incarnation(), kept);
    // Without a record, the file is accepted and gets a new record.
    std::fs::remove_file(scratch.record()).unwrap();
    let mut fourth = scratch.open(AS_IT_IS, "A");
    assert_ne!(fourth.incarnation(), kept);
    assert_eq!(notices(&mut fourth), "");
    assert!(scratch.text().contains(&format!("{:016x}", fourth.incarnation())));
}

#[test]
fn recorded_size_is_used_if_file_is_longer() {
    let scratch = Scratch::new();
    let incarnation = scratch.open(NEW, "A").incarnation();
    let set_len =
        |size| OpenOptions::new().write(true).open(scratch.image()).unwrap().set_len(size).unwrap();
    // A longer file: another program has extended it, or this node has, before it wrote the record.
    set_len(3 * MIB);
    let mut media = scratch.open(AS_IT_IS, "A");
    assert_eq!((media.size(), media.incarnation()), (MIB, incarnation));
    assert!(notices(&mut media).contains("of which 1048576 are used"));
    drop(media);
    assert_eq!(scratch.open(NEW, "A").size(), MIB);
    let media = scratch.open(FileOptions { size: Some(2 * MIB), ..AS_IT_IS }, "A");
    assert_eq!((media.size(), media.incarnation()), (2 * MIB, incarnation));
    drop(media);
    assert_eq!(scratch.image_length(), 3 * MIB, "never cut");
    scratch.fails(NEW, &["it is not shortened"]);
    let grown = scratch.open(FileOptions { size: Some(4 * MIB), ..AS_IT_IS }, "A");
    assert_eq!((grown.size(), grown.incarnation()), (4 * MIB, incarnation));
    drop(grown);
    assert_eq!(scratch.open(AS_IT_IS, "A").size(), 4 * MIB);
    // A shorter file is an error, and does not change.
    set_len(4 * MIB - 512);
    let parts = ["gives 4194304 bytes", "has only 4193792", "disk.img.farlane", "remove"];
    scratch.fails(AS_IT_IS, &parts);
    scratch.fails(READ_ONLY, &parts);
    scratch.fails(FileOptions { size: Some(8 * MIB), ..AS_IT_IS }, &parts);
    assert_eq!(scratch.image_length(), 4 * MIB - 512);
}

#[test]
fn a_record_that_cannot_be_read_is_refused() {
    let scratch = Scratch::new();
    drop(scratch.open(NEW, "A"));
    let newer = scratch.text().replace("version = 1", "version = 2");
    std::fs::write(scratch.record(), newer).unwrap();
    scratch.fails(AS_IT_IS, &["disk.img.farlane has version '2'", "remove the record"]);
    scratch.fails(READ_ONLY, &["version '2'"]);
    std::fs::write(scratch.record(), vec![b'x'; 100_000]).unwrap();
    scratch.fails(AS_IT_IS, &["invalid line", "remove the record"]);
    std::fs::remove_file(scratch.record()).unwrap();
    std::fs::create_dir(scratch.record()).unwrap();
    scratch.fails(AS_IT_IS, &["cannot be read", "not a regular file"]);
}

#[test]
fn a_failed_start_leaves_nothing_behind() {
    let scratch = Scratch::new();
    drop(FileMedia::open(&scratch.image(), NEW).unwrap());
    assert_eq!(scratch.names(), [""; 0], "it was never served");
    drop(scratch.open(NEW, "A"));
    let record = scratch.text();
    let larger = FileOptions { size: Some(2 * MIB), ..AS_IT_IS };
    let media = FileMedia::open(&scratch.image(), larger).unwrap();
    assert_eq!(scratch.image_length(), 2 * MIB);
    drop(media);
    assert_eq!(scratch.image_length(), MIB);
    assert_eq!(scratch.text(), record);
    // A size that no file system has room for: an existing file does not change.
    let huge = FileOptions { size: Some(1 << 61), ..AS_IT_IS };
    scratch.fails(huge, &["cannot reserve", "free", "sparse"]);
    scratch.fails(FileOptions { sparse: true, ..huge }, &["cannot grow"]);
    assert_eq!(scratch.image_length(), MIB);
    std::fs::remove_file(scratch.image()).unwrap();
    std::fs::remove_file(scratch.record()).unwrap();
    scratch.fails(huge, &["cannot reserve"]);
    assert_eq!(scratch.names(), [""; 0]);
}

#[test]
fn a_reservation_that_fails_after_the_look_at_free_space_is_undone() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use std::os::fd::AsRawFd;
    // There is space, but the file may not grow.
    let file = memfd_create("sealed", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, MIB).unwrap();
    fcntl_add_seals(&file, SealFlags::GROW).unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let options = FileOptions { size: Some(2 * MIB), ..AS_IT_IS };
    let error = FileMedia::open(&path, options).unwrap_err().to_string();
    assert!(error.contains("cannot reserve 1048576 bytes"), "{error}");
    assert_eq!(rustix::fs::fstat(&file).unwrap().st_size, MIB as i64);
    // The file has no name, so it has no record.
    let mut media = FileMedia::open(&path, AS_IT_IS).unwrap();
    media.begin();
    assert!(notices(&mut media).contains("no place for a record"));
    let first = media.incarnation();
    write(&mut media);
    drop(media);
    assert_ne!(FileMedia::open(&path, AS_IT_IS).unwrap().incarnation(), first);
    let read_only = || FileMedia::open(&path, READ_ONLY).unwrap().incarnation();
    assert_eq!(read_only(), read_only());
}

#[test]
fn growth_by_size_is_reserved_unless_sparse() {
    let scratch = Scratch::new();
    let blocks = |options| {
        drop(scratch.open(options, "A"));
        scratch.image().metadata().unwrap().blocks() * 512
    };
    assert!(blocks(FileOptions { sparse: true, ..NEW }) < MIB);
    let reserved = blocks(FileOptions { size: Some(4 * MIB), ..AS_IT_IS });
    assert!((3 * MIB..4 * MIB).contains(&reserved), "{reserved} bytes");
}

#[test]
fn a_record_that_cannot_be_written_makes_the_contents_new() {
    let scratch = Scratch::new();
    let first = scratch.open(NEW, "A").incarnation();
    // A folder with this name prevents a new record.
    let blocker = scratch.0.join("disk.img.farlane.new");
    std::fs::create_dir(&blocker).unwrap();
    let mut media = scratch.open(AS_IT_IS, "A");
    assert_eq!((media.incarnation(), notices(&mut media).as_str()), (first, ""));
    write(&mut media);
    let text = notices(&mut media);
    assert!(text.contains("cannot write the record") && text.contains("count as new"), "{text}");
    assert!(!scratch.record().exists());
    write(&mut media);
    assert_eq!(notices(&mut media), "", "reported once");
    media.close().unwrap();
    drop(media);
    let second = scratch.open(AS_IT_IS, "A").incarnation();
    assert_ne!(second, first);
    std::fs::remove_dir(blocker).unwrap();
    // The record can neither be written nor removed: writes to the file fail.
    let mut media = scratch.open(AS_IT_IS, "A");
    std::fs::remove_file(scratch.record()).unwrap();
    std::fs::create_dir(scratch.record()).unwrap();
    let data = Bytes::from(vec![1; 512]);
    assert!(run(&mut media, Operation::Write { offset: 0, data }).is_err());
    assert!(notices(&mut media).contains("writes fail"));
    std::fs::remove_dir(scratch.record()).unwrap();
    write(&mut media);
    assert!(scratch.text().contains("state = dirty"), "the next write tries again");
}

#[test]
fn a_read_only_file_gets_no_record() {
    let scratch = Scratch::new();
    std::fs::write(scratch.image(), vec![0; MIB as usize]).unwrap();
    let first = scratch.open(READ_ONLY, "A").incarnation();
    assert_eq!(scratch.open(READ_ONLY, "B").incarnation(), first);
    assert_eq!(scratch.names(), ["disk.img"]);
    let changed = OpenOptions::new().write(true).open(scratch.image()).unwrap();
    changed.set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_ne!(scratch.open(READ_ONLY, "A").incarnation(), first);
    // With a record, the incarnation is that of the record.
    let recorded = scratch.open(AS_IT_IS, "A").incarnation();
    assert_eq!(scratch.open(READ_ONLY, "B").incarnation(), recorded);
    let dirty = scratch.text().replace("clean", "dirty");
    std::fs::write(scratch.record(), &dirty).unwrap();
    assert_eq!(scratch.open(READ_ONLY, "A").incarnation(), recorded);
    assert_ne!(scratch.open(READ_ONLY, "B").incarnation(), recorded);
    assert_eq!(scratch.text(), dirty);
}

#[test]
fn the_record_lies_beside_the_file_itself_and_has_its_mode() {
    let scratch = Scratch::new();
    std::fs::write(scratch.image(), vec![0; MIB as usize]).unwrap();
    std::fs::set_permissions(scratch.image(), Permissions::from_mode(0o640)).unwrap();
    let folder = scratch.0.join("links");
    std::fs::create_dir(&folder).unwrap();
    let link = folder.join("link.img");
    std::os::unix::fs::symlink(scratch.image(), &link).unwrap();
    let mut media = FileMedia::open(&link, AS_IT_IS).unwrap();
    media.begin();
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
    assert_eq!(scratch.record().metadata().unwrap().mode() & 0o777, 0o640);
}
