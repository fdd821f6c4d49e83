//! A device node is killed, or its machine crashes, while its file is being written.

use crate::support::{BLOCK, Drive, HostNode, Node, folder, pattern};
use std::path::Path;

/// Returns the value of a key in the record of the file `disk`.
fn recorded(disk: &Path, key: &str) -> String {
    let text = std::fs::read_to_string(disk.with_extension("img.farlane")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
    line.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
}

#[test]
fn a_killed_node_keeps_the_incarnation_and_a_crash_does_not() {
    let folder = folder::kept("killed");
    let disk = folder.join("disk.img");
    let namespace = format!("file={},size=16M", disk.display());
    let mut device = Node::device(&folder, "device", &[&namespace]);
    let address = device.address();
    let state = || recorded(&disk, "state");
    let incarnation = recorded(&disk, "incarnation");
    assert_eq!(state(), "clean", "nothing was written yet");
    let host = HostNode::start(&folder, "host", &[address], &["--mmap-doorbells"]);
    let mut drive = Drive::attach(&host.socket(0));
    drive.read(0, 8);
    assert_eq!(state(), "clean", "reads change nothing");
    let data = pattern(9, 64 * BLOCK);
    drive.write(1000, &data);
    assert_eq!(state(), "dirty", "before the write was acknowledged");
    device.process.kill();
    drop(drive);
    assert_eq!(state(), "dirty");
    let device = Node::device_at(address, &folder, "again", &[&namespace], &[]);
    host.process.line("endpoint 0: attached again");
    assert_eq!(recorded(&disk, "incarnation"), incarnation, "the page cache has all of it");
    let mut drive = Drive::attach(&host.socket(0));
    assert!(drive.read(1000, 64) == data);
    drive.detach();
    host.stop();
    device.stop();
    assert_eq!((state(), recorded(&disk, "incarnation")), ("clean".into(), incarnation.clone()));

    // A crash of the machine while the file was being written leaves this record.
    let record = disk.with_extension("img.farlane");
    let text = std::fs::read_to_string(&record).unwrap();
    let boot = recorded(&disk, "boot");
    let earlier = "00000000-0000-4000-8000-000000000000";
    let text = text.replace("state = clean", "state = dirty").replace(&boot, earlier);
    std::fs::write(&record, text).unwrap();
    let device = Node::device(&folder, "crashed", &[&namespace]);
    device.process.line("machine went down");
    device.stop();
    assert_ne!(recorded(&disk, "incarnation"), incarnation);
    assert_eq!(recorded(&disk, "boot"), boot);
}
