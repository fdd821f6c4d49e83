//! Tests of drives in folders of the machine.

use super::super::*;
use super::world::request;
use crate::media::Media;
use bytes::Bytes;
use nvme::block::Operation;
use nvme::{Commit, Contents};
use std::io::ErrorKind;
use testkit::Folder as Scratch;

const MIB: u64 = 1 << 20;

fn new(name: &str, size: u64, sparse: bool) -> NewContents {
    NewContents { name: name.into(), size, sparse, checksums: false }
}

fn records(names: &[&str]) -> Records {
    names.iter().map(|name| ((*name).to_owned(), name.as_bytes().to_vec())).collect()
}

fn created(scratch: &Scratch) -> (PathBuf, DriveFolder) {
    let path = scratch.join("drive");
    let drive = DriveFolder::create(&path, records(&["serial"]), &[new("one", MIB, true)]).unwrap();
    (path, drive)
}

fn opened(path: &Path) -> DriveFolder {
    let (drive, notices) = DriveFolder::open(path).unwrap();
    assert_eq!(notices, [""; 0]);
    drive
}

fn records_alone(id: u64, changes: Vec<Change>) -> Commit {
    Commit { id, create: None, changes, remove: Vec::new() }
}

fn names(path: &Path) -> Vec<String> {
    SystemFolder::open(path).unwrap().list().unwrap()
}

/// Checks that the error contains the folder's name and these parts.
#[track_caller]
fn fails<T>(result: io::Result<T>, parts: &[&str]) {
    let error = result.map(drop).unwrap_err().to_string();
    for part in parts.iter().chain(&["drive"]) {
        assert!(error.contains(part), "no '{part}' in: {error}");
    }
}

#[test]
fn a_drive_keeps_everything_also_when_it_is_moved_or_copied() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    let data = Bytes::from(vec![0xa5; 4096]);
    let mut media = drive.open_contents("one").unwrap();
    assert_eq!((media.size(), media.read_only()), (MIB, false));
    media.begin();
    let incarnation = media.incarnation();
    request(&mut media, Operation::Write { offset: 4096, data: data.clone() }).unwrap();
    drive.commit(&[("serial".into(), None), ("name".into(), Some(b"x".to_vec()))]).unwrap();
    // Move the folder while the drive is in use.
    let moved = scratch.join("moved drive");
    std::fs::rename(&path, &moved).unwrap();
    media.close().unwrap();
    drop((media, drive));
    let copied = scratch.join("copied drive");
    let status = std::process::Command::new("cp").arg("-r").args([&moved, &copied]).status();
    assert!(status.unwrap().success());
    for path in [moved, copied] {
        assert_eq!(names(&path), ["contents", "drive.redb", "lock"]);
        let drive = opened(&path);
        let keys: Vec<_> = drive.records().into_keys().collect();
        assert_eq!(keys, ["contents/one", "name"]);
        let mut media = drive.open_contents("one").unwrap();
        assert_eq!(media.incarnation(), incarnation);
        let read = Operation::Read { offset: 4096, length: 4096 };
        assert_eq!(request(&mut media, read), Ok(data.clone()));
    }
}

#[test]
fn contents_whose_record_an_older_program_wrote_keep_their_incarnation() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    let record = "version = 1\nincarnation = 123456789abcdef0\nsize = 1048576\nstate = clean\n\
                  boot = b0077000-0000-4000-8000-000000000001\n";
    drive.commit(&[("contents/one".into(), Some(record.into()))]).unwrap();
    drop(drive);
    let drive = opened(&path);
    let known = &drive.contents().unwrap()[0];
    assert_eq!((known.incarnation, known.size, known.dirty), (0x1234_5678_9abc_def0, MIB, false));
    let media = drive.open_contents("one").unwrap();
    assert_eq!((media.incarnation(), media.size()), (0x1234_5678_9abc_def0, MIB));
    drop(media);
    assert_eq!(drive.records()["contents/one"], record.as_bytes(), "nothing was written");
}

#[test]
fn drive_folder_is_locked_by_one_process() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    let media = drive.open_contents("one").unwrap();
    fails(DriveFolder::open(&path), &["in use by another process"]);
    assert!(DriveFolder::show(&path).unwrap().in_use);
    drop(drive);
    fails(DriveFolder::open(&path), &["in use"]);
    drop(media);
    assert!(!DriveFolder::show(&path).unwrap().in_use);
    drop(opened(&path));
}

#[test]
fn a_folder_that_is_no_empty_one_stays_as_it_is() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    drop(drive);
    let again = || DriveFolder::create(&path, records(&["x"]), &[]);
    fails(again(), &["already is a drive"]);
    assert!(opened(&path).records().contains_key("serial"));
    let other = scratch.join("no drive");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("letter"), "x").unwrap();
    fails(DriveFolder::create(&other, Records::new(), &[]), &["neither empty nor a drive"]);
    fails(DriveFolder::open(&other), &["is not a drive", "drive.redb"]);
    fails(DriveFolder::show(&other), &["is not a drive"]);
    assert_eq!(names(&other), ["letter"]);
    fails(DriveFolder::open(&scratch.join("drives")), &["No such file"]);
    fails(DriveFolder::create(&scratch.join("drives/a"), Records::new(), &[]), &["No such file"]);
    // The folder of a new drive may exist if it is empty.
    std::fs::remove_file(other.join("letter")).unwrap();
    drop(DriveFolder::create(&other, Records::new(), &[]).unwrap());
    drop(opened(&other));
}

#[test]
fn a_full_disk_is_an_error_at_creation() {
    let scratch = Scratch::new();
    let path = scratch.join("drive");
    let huge = new("two", 1 << 61, false);
    let create = |contents: &[NewContents]| DriveFolder::create(&path, Records::new(), contents);
    fails(create(&[new("one", MIB, false), huge.clone()]), &["contents/two", "cannot reserve"]);
    assert!(!path.exists());
    let (_, drive) = created(&scratch);
    fails(drive.create_contents(&huge), &["contents/two", "cannot reserve"]);
    assert_eq!(names(&path.join("contents")), ["one"]);
    for name in ["", "a/b", "..", "new_one", &"x".repeat(65)] {
        fails(drive.create_contents(&new(name, MIB, true)), &["1 to 64 letters"]);
    }
    fails(drive.create_contents(&new("one", MIB, true)), &["one", "exists"]);
}

#[test]
fn contents_without_a_record_are_removed_and_nothing_else() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    let two = drive.create_contents(&new("two", MIB, true)).unwrap();
    drive.create_contents(&new("three", MIB, true)).unwrap();
    drive.commit(&[two]).unwrap();
    fails(drive.remove_contents("two"), &["contents/two", "still has a record"]);
    // The record is not written again when the media are closed.
    let mut media = drive.open_contents("one").unwrap();
    request(&mut media, Operation::WriteZeroes { offset: 0, length: 512 }).unwrap();
    drive.commit(&[DriveFolder::forget_contents("one").unwrap()]).unwrap();
    media.close().unwrap();
    drop((media, drive));
    std::fs::write(path.join("contents/READ.ME"), "x").unwrap();
    let (drive, notices) = DriveFolder::open(&path).unwrap();
    let texts =
        ["removed contents/one: it has no record", "removed contents/three: it has no record"];
    assert_eq!(notices, texts);
    assert_eq!(names(&path.join("contents")), ["READ.ME", "two"]);
    fails(drive.open_contents("one"), &["contents/one", "have no record"]);
    drive.commit(&[DriveFolder::forget_contents("two").unwrap()]).unwrap();
    drive.remove_contents("two").unwrap();
    assert_eq!(names(&path.join("contents")), ["READ.ME"]);
}

#[test]
fn damaged_drives_are_refused_with_the_reason() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    drive.commit(&[("contents/two".into(), Some(b"version = 9".to_vec()))]).unwrap();
    fails(drive.open_contents("two"), &["contents/two", "No such file"]);
    std::fs::write(path.join("contents/two"), "x").unwrap();
    fails(drive.open_contents("two"), &["record contents/two has version '9'"]);
    assert_eq!(drive.contents().unwrap_err().kind(), ErrorKind::InvalidData);
    drop(drive);
    std::fs::OpenOptions::new()
        .write(true)
        .open(path.join("contents/one"))
        .unwrap()
        .set_len(512)
        .unwrap();
    let short = ["contents/one", "gives 1048576 bytes, but the file has only 512"];
    fails(opened(&path).open_contents("one"), &short);
    for bytes in [&b""[..], b"no database", &[0; 8192]] {
        std::fs::write(path.join("drive.redb"), bytes).unwrap();
        fails(DriveFolder::open(&path), &["drive.redb"]);
        fails(DriveFolder::show(&path), &["drive.redb"]);
    }
}

#[test]
fn contents_are_new_after_a_crash_of_the_machine_and_not_after_a_kill() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    drop(drive);
    let open = |boot: &str| {
        let folder = Box::new(SystemFolder::open(&path).unwrap());
        let (drive, _) = DriveFolder::open_in(folder, &path, &Formats::KNOWN, boot).unwrap();
        let mut media = drive.open_contents("one").unwrap();
        media.begin();
        (media.incarnation(), media, drive)
    };
    let (first, mut media, drive) = open("A");
    request(&mut media, Operation::WriteZeroes { offset: 0, length: 512 }).unwrap();
    assert!(drive.contents().unwrap()[0].dirty);
    // The state that a killed process leaves.
    let dirty = drive.records();
    let leave = |drive: &DriveFolder| {
        let record = ("contents/one".to_owned(), Some(dirty["contents/one"].clone()));
        drive.commit(&[record]).unwrap();
    };
    media.close().unwrap();
    assert!(!drive.contents().unwrap()[0].dirty);
    leave(&drive);
    drop((media, drive));
    let (killed, media, drive) = open("A");
    drop(media);
    leave(&drive);
    drop(drive);
    let (crashed, mut media, drive) = open("B");
    let notice = media.take_notice().unwrap();
    assert!(notice.contains("contents/one: was being written when the machine went down"));
    drop((media, drive));
    assert_eq!(killed, first);
    assert_ne!(crashed, first);
    assert_eq!(open("C").0, crashed);
}

#[test]
fn commits_of_a_thread_end_in_order_and_together() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    let mut committer = Committer::new(drive.clone()).unwrap();
    let readable = |committer: &Committer, wait: i32| {
        let mut fds = [rustix::event::PollFd::from_borrowed_fd(
            committer.signal(),
            rustix::event::PollFlags::IN,
        )];
        let limit = rustix::time::Timespec { tv_sec: wait.into(), tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&limit)).unwrap() == 1
    };
    assert!(!readable(&committer, 0));
    for id in 0..100_u64 {
        let records = vec![("count".into(), Some(id.to_le_bytes().to_vec()))];
        committer.start(records_alone(id, records));
    }
    assert!(readable(&committer, 10));
    committer.close();
    committer.clear_signal();
    assert!(!readable(&committer, 0));
    let ended: Vec<_> = std::iter::from_fn(|| committer.poll_completion())
        .map(|(id, result)| (id, result.is_ok()))
        .collect();
    assert_eq!(ended, (0..100).map(|id| (id, true)).collect::<Vec<_>>());
    drop((committer, drive));
    assert_eq!(opened(&path).records()["count"], 99_u64.to_le_bytes());
}

#[test]
fn a_commit_creates_and_removes_contents() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    let mut committer = Committer::new(drive.clone()).unwrap();
    let two = Contents { nsid: 2, name: "two".into(), bytes: 8192 };
    let records = vec![("a".into(), Some(b"2".into()))];
    committer.start(Commit { create: Some(two.clone()), ..records_alone(1, records) });
    let (id, media) = committer.wait().unwrap();
    let media = media.unwrap().expect("its media");
    assert_eq!((id, media.size()), (1, 8192));
    // Contents of this name exist already: no change is applied.
    let records = vec![("a".into(), Some(b"3".into()))];
    committer.start(Commit { create: Some(two.clone()), ..records_alone(2, records) });
    assert!(matches!(committer.wait(), Some((2, Err(_)))));
    assert_eq!(drive.records()["a"], b"2");
    committer.start(Commit { remove: vec![two], ..records_alone(3, Vec::new()) });
    assert!(matches!(committer.wait(), Some((3, Ok(None)))));
    assert!(!path.join("contents/two").exists());
    committer.close_media(Box::new(media));
    committer.close();
}

#[test]
fn showing_a_drive_that_is_being_changed_shows_some_commit() {
    let scratch = Scratch::new();
    let (path, drive) = created(&scratch);
    let mut committer = Committer::new(drive.clone()).unwrap();
    for id in 0..200_u64 {
        let value = vec![id as u8; 5000];
        let records = vec![("a".into(), Some(value.clone())), ("b".into(), Some(value))];
        committer.start(records_alone(id, records));
    }
    let mut seen = 0;
    while committer.poll_completion().is_none_or(|(id, _)| id < 199) {
        // The drive may change too fast to be read.
        if let Ok(shown) = DriveFolder::show(&path) {
            assert!(shown.in_use && shown.version == VERSION);
            assert_eq!(shown.records.get("a"), shown.records.get("b"));
            seen += 1;
        }
    }
    assert!(seen > 0);
    committer.close();
    drop((committer, drive));
    let shown = DriveFolder::show(&path).unwrap();
    assert_eq!((shown.in_use, &shown.records["a"]), (false, &vec![199; 5000]));
    assert_eq!(shown.contents().unwrap()[0].name, "one");
}
