//! Block devices of the device node, here loop devices. They need root and `losetup`.

use crate::support::drive::Drive;
use crate::support::node::{HostNode, Node};
use crate::support::process::cannot;
use crate::support::program::{device, fails, scratch};
use bytes::Bytes;
use nvme::block::{Completion, Error, Operation, Request};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use storage::media::{FileMedia, FileOptions, Media};

const MIB: u64 = 1 << 20;

/// A loop device on an empty image. The device is detached on drop.
struct Disk {
    node: String,
    image: PathBuf,
}

impl Disk {
    /// Creates a disk of 8 MiB. Returns `None`, and prints a line, if the machine permits no disk.
    fn new(test: &str, options: &[&str]) -> Option<Self> {
        let image = scratch(&format!("disks-{test}")).join("disk.img");
        std::fs::File::create(&image).unwrap().set_len(8 * MIB).unwrap();
        let mut command = Command::new("losetup");
        let output = command.args(["--find", "--show"]).args(options).arg(&image).output();
        let why = match output {
            Ok(output) if output.status.success() => {
                let node = String::from_utf8(output.stdout).unwrap().trim().to_owned();
                return Some(Self { node, image });
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
        cannot(&format!("a block device ({test})"), format!("losetup: {why}"));
        None
    }

    fn store(&self, offset: u64, bytes: &[u8]) {
        let file = std::fs::OpenOptions::new().write(true).open(&self.node).unwrap();
        file.write_all_at(bytes, offset).unwrap();
        file.sync_all().unwrap();
    }

    fn load(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        std::fs::File::open(&self.image).unwrap().read_exact_at(&mut bytes, offset).unwrap();
        bytes
    }

    #[track_caller]
    fn is_refused(&self, options: &str, parts: &[&str]) {
        let namespace = format!("file={}{options}", self.node);
        let arguments = ["device", "--listen", "127.0.0.1:0", "--namespace", &namespace];
        fails(&arguments, &[&[self.node.as_str()], parts].concat());
    }

    #[track_caller]
    fn is_served(&self, options: &str, more: &[&str]) {
        let (mut node, _) = device(&format!("file={}{options}", self.node), more);
        assert!(node.interrupt().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Otherwise the next image on the same device node would be read-only too.
        let _ = Command::new("blockdev").args(["--setrw", &self.node]).status();
        let _ = Command::new("losetup").args(["--detach", &self.node]).status();
        // The record of the disk is in the folder of the device node.
        let _ = std::fs::remove_file(format!("{}.farlane", self.node));
    }
}

fn run(media: &mut FileMedia, operation: Operation) -> Completion {
    if let Some(outcome) = media.start(Request { id: 7, command: None, nsid: 1, operation }) {
        return outcome;
    }
    loop {
        if let Some((7, outcome)) = media.poll_completion() {
            return outcome;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_disk_is_written_zeroed_and_read() {
    let Some(disk) = Disk::new("io", &[]) else { return };
    let options = FileOptions { use_existing_data: true, ..FileOptions::default() };
    let mut media = FileMedia::open(Path::new(&disk.node), options).unwrap();
    media.begin();
    assert_eq!(media.size(), 8 * MIB);
    let data = Bytes::from(vec![0xa5; 64 << 10]);
    run(&mut media, Operation::Write { offset: MIB, data: data.clone() }).unwrap();
    run(&mut media, Operation::WriteZeroes { offset: MIB, length: 4096 }).unwrap();
    run(&mut media, Operation::Discard { offset: 2 * MIB, length: MIB }).unwrap();
    let read = run(&mut media, Operation::Read { offset: MIB, length: data.len() }).unwrap();
    assert!(read[..4096].iter().all(|byte| *byte == 0) && read[4096..] == data[4096..]);
    run(&mut media, Operation::Flush).unwrap();
    assert_eq!(disk.load(MIB, data.len()), read);
    disk.is_refused("", &["in use by another program"]);
    let beyond = Operation::Write { offset: 8 * MIB, data };
    assert_eq!(run(&mut media, beyond), Err(Error::NoSpace), "no device grows");
    media.close().unwrap();
}

#[test]
fn block_device_is_served_for_writing_only_when_that_is_asked_for() {
    let Some(disk) = Disk::new("existing", &[]) else { return };
    disk.store(12345, b"something that no table knows");
    disk.is_refused("", &["a block device", "use-existing-data"]);
    disk.is_served(",use-existing-data", &[]);
    disk.is_served("", &["--use-existing-data"]);
    disk.is_served(",ro", &[]);
    disk.is_refused(",use-existing-data,size=16M", &["8388608", "a block device"]);
    assert_eq!(disk.load(12345, 9), b"something");
}

#[test]
fn a_mounted_disk_is_refused_by_the_place_of_its_mount() {
    let Some(disk) = Disk::new("mounted", &[]) else { return };
    let script = r#"
        mkfs.ext4 -q "$1" && mkdir "$2/here" && mount "$1" "$2/here" || exit 90
        "$3" device --listen 127.0.0.1:0 --namespace "file=$1,use-existing-data""#;
    let folder = scratch("disks-mount");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", &disk.node]).arg(&folder);
    let output = command.arg(env!("CARGO_BIN_EXE_farlane")).output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.code() == Some(90) {
        return cannot("a mounted disk", log);
    }
    assert_eq!(output.status.code(), Some(1), "{log}");
    let place = folder.join("here");
    assert!(log.contains(&format!("{}: is mounted at {}", disk.node, place.display())), "{log}");
}

#[test]
fn large_blocks_need_a_namespace_with_large_blocks() {
    let Some(disk) = Disk::new("4kn", &["--sector-size", "4096"]) else { return };
    disk.is_refused("", &["4096 bytes", "512", "block=4096"]);
    disk.is_served(",block=4096,use-existing-data", &[]);
}

#[test]
fn disk_turned_read_only_is_reported_to_host() {
    let Some(disk) = Disk::new("becomes-read-only", &[]) else { return };
    let folder = scratch("disks-nodes");
    let node = Node::device(&folder, "device", &[&format!("file={},use-existing-data", disk.node)]);
    let host = HostNode::start(&folder, "host", &[node.address()], &[]);
    let mut drive = Drive::attach_to(&host.socket(0), false);
    drive.write(0, &[7; 512]);
    assert_eq!(drive.critical_warning(), 0);
    let set = Command::new("blockdev").args(["--setro", &disk.node]).status();
    assert!(set.unwrap().success());
    // Attempted Write to Read Only Range (NVMe 1.4, figure 129), before and after the node has
    // found that the disk is read-only.
    assert_eq!(drive.try_write(0, &[8; 512]), 0x182);
    node.process.line("read-only until the node is restarted");
    assert_eq!(drive.try_write(8, &[8; 512]), 0x182);
    // The media are read-only (figure 196, bit 3).
    assert_eq!(drive.critical_warning(), 1 << 3);
    assert_eq!(drive.read(0, 1), [7; 512]);
}

#[test]
fn a_disk_that_cannot_be_written_is_served_read_only() {
    let Some(disk) = Disk::new("read-only", &["--read-only"]) else { return };
    let mut media = FileMedia::open(Path::new(&disk.node), FileOptions::default()).unwrap();
    assert!(media.read_only());
    assert!(media.take_notice().unwrap().contains("served read-only"));
    let write = Operation::Write { offset: 0, data: Bytes::from(vec![1; 512]) };
    assert_eq!(run(&mut media, write), Err(Error::ReadOnly));
    let read = run(&mut media, Operation::Read { offset: 0, length: 512 }).unwrap();
    assert_eq!(read, vec![0; 512]);
}
