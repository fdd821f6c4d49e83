//! Tests of the behaviour of all implementations of files, and of the errors of the machine's
//! files.

use super::*;
use std::io::ErrorKind;
use testkit::Folder as Scratch;

/// Checks the behaviour that the traits require, without failures.
fn keeps_the_promises(root: &dyn Folder) {
    let kind = |result: io::Result<Box<dyn File>>| result.map(|_| ()).unwrap_err().kind();
    assert_eq!(kind(root.open("a", Access::Write)), ErrorKind::NotFound);
    let file = root.open("a", Access::CreateNew).unwrap();
    assert_eq!(kind(root.open("a", Access::CreateNew)), ErrorKind::AlreadyExists);
    file.write_at(b"farlane", 1).unwrap();
    let mut bytes = [9; 8];
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!((&bytes, file.len().unwrap()), (b"\0farlane", 8));
    assert_eq!(file.read_at(&mut bytes, 1).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    file.zero_range(2, 2).unwrap();
    file.punch_hole(5, 1).unwrap();
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"\0f\0\0l\0ne");
    file.set_len(2).unwrap();
    file.set_len(4).unwrap();
    file.allocate(4, 2).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len().unwrap(), 6);
    file.read_at(&mut bytes[..6], 0).unwrap();
    assert_eq!(&bytes[..6], b"\0f\0\0\0\0");
    // An open file keeps its contents after a rename or a replacement.
    root.rename("a", "b").unwrap();
    let other = root.open("b", Access::Read).unwrap();
    assert_eq!(other.len().unwrap(), 6);
    root.open("c", Access::Create).unwrap().write_at(b"c", 0).unwrap();
    root.rename("c", "b").unwrap();
    assert_eq!(
        (root.open("b", Access::Write).unwrap().len().unwrap(), file.len().unwrap()),
        (1, 6)
    );
    root.create_folder("sub").unwrap();
    assert_eq!(root.create_folder("sub").unwrap_err().kind(), ErrorKind::AlreadyExists);
    let sub = root.folder("sub").unwrap();
    sub.open("x", Access::CreateNew).unwrap();
    sub.sync().unwrap();
    root.sync().unwrap();
    assert_eq!(
        (root.list().unwrap(), sub.list().unwrap()),
        (vec!["b".into(), "sub".into()], vec!["x".into()])
    );
    assert_eq!(root.remove_folder("sub").unwrap_err().kind(), ErrorKind::DirectoryNotEmpty);
    sub.remove("x").unwrap();
    assert_eq!(sub.remove("x").unwrap_err().kind(), ErrorKind::NotFound);
    root.remove_folder("sub").unwrap();
    assert_eq!(root.list().unwrap(), ["b"]);
    assert_eq!(root.folder("none").unwrap_err().kind(), ErrorKind::NotFound);
    // Locks are dropped with their values.
    assert_eq!(root.lock("lock", true).unwrap_err().kind(), ErrorKind::NotFound);
    let lock = root.lock("lock", false).unwrap().unwrap();
    assert!(
        root.lock("lock", true).unwrap().is_none() && root.lock("lock", false).unwrap().is_none()
    );
    drop(lock);
    let shared =
        [root.lock("lock", true).unwrap().unwrap(), root.lock("lock", true).unwrap().unwrap()];
    assert!(root.lock("lock", false).unwrap().is_none());
    drop(shared);
    assert!(root.lock("lock", false).unwrap().is_some());
}

#[test]
fn system_folder_keeps_file_contract() {
    let scratch = Scratch::new();
    keeps_the_promises(&SystemFolder::open(&scratch).unwrap());
}

#[test]
fn model_folder_keeps_file_contract() {
    keeps_the_promises(&crash::Disk::new().root());
}

#[test]
fn a_folder_that_is_moved_while_it_is_open_stays_itself() {
    let scratch = Scratch::new();
    let (from, to) = (scratch.join("from"), scratch.join("to"));
    std::fs::create_dir(&from).unwrap();
    let folder = SystemFolder::open(&from).unwrap();
    std::fs::rename(&from, &to).unwrap();
    folder.open("file", Access::CreateNew).unwrap();
    assert!(to.join("file").exists());
}

#[test]
fn only_regular_files_of_the_folder_are_opened() {
    let scratch = Scratch::new();
    std::os::unix::fs::symlink("/dev/null", scratch.join("link")).unwrap();
    std::fs::create_dir(scratch.join("folder")).unwrap();
    let folder = SystemFolder::open(&scratch).unwrap();
    assert!(folder.open("link", Access::Write).is_err(), "it leads out of the folder");
    assert!(folder.open("folder", Access::Read).is_err());
    assert!(SystemFolder::open(&scratch.join("link")).is_err(), "no folder");
}

#[test]
fn system_errors_keep_their_kind() {
    let open = |path| {
        SystemFile::from(std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap())
    };
    let full = open("/dev/full");
    assert_eq!(full.write_at(b"x", 0).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(full.zero_range(0, 1).unwrap_err().kind(), ErrorKind::StorageFull);
    assert!(full.allocate(0, 1).is_err() && full.sync_data().is_err());
    let unsupported = io::Error::from(rustix::io::Errno::OPNOTSUPP);
    assert_eq!(unsupported.kind(), ErrorKind::Unsupported);
}
