//! A client like SPDK's initiator on `farlane host` and `farlane device`: no JSON, message number
//! 0, doorbells in a shared page, memory that the host node maps at virtual addresses, no
//! interrupts.
//!
//! The client behaves as SPDK 24.09 (`lib/vfio_user/host`, `lib/nvme/nvme_vfio_user.c`). It builds
//! its bytes by hand, so that no codec of farlane is on both sides.

mod killed;
mod returns;
mod waiting;

use crate::support::program::succeeds;
use crate::support::{ANY, BLOCK, Drive, HostNode, Node, SetOnDrop, folder, pattern, work};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn data_written_before_ctrl_c_are_in_the_file() {
    let folder = folder::kept("interrupted");
    let disk = folder.join("disk.img");
    let namespace = format!("file={},size=16M", disk.display());
    let device = Node::device(&folder, "device", &[&namespace]);
    let address = device.address();
    let options = ["--mmap-doorbells", "--ecrc"];
    let host = HostNode::start(&folder, "host", &[address], &options);
    let mut drive = Drive::attach(&host.socket(0));
    let data = pattern(5, 256 * BLOCK);
    drive.write(1000, &data);
    // Neither a flush nor a shutdown precedes the end of the node.
    device.stop();
    let bytes = std::fs::read(&disk).unwrap();
    assert_eq!(bytes.len(), 16 << 20);
    assert!(bytes[1000 * BLOCK..][..data.len()] == data, "the file is not what was written");
    drop(drive);
    // A new node has the same file and the same name for the host that waits.
    let device = Node::device_at(address, &folder, "again", &[&namespace], &[]);
    host.process.line("endpoint 0: attached again");
    let mut drive = Drive::attach(&host.socket(0));
    assert!(drive.read(1000, 256) == data);
    drive.detach();
    host.stop();
    device.stop();
}

#[test]
fn a_polled_client_reads_what_it_wrote() {
    let folder = folder::kept("polled");
    let device = Node::device(&folder, "device", &["ram=16M"]);
    let host = HostNode::start(&folder, "host", &[device.address()], &["--mmap-doorbells"]);

    let mut drive = Drive::attach(&host.socket(0));
    assert_eq!(drive.identify_namespace(1), (16 << 20) / BLOCK as u64);
    // One block; one page across a page boundary; PRP lists; the largest transfer. With four
    // rounds, every queue wraps.
    let pieces = [(0, 1), (8, 8), (100, 9), (1000, 128), (2000, 256), (32_767, 1)];
    for round in 0..4 {
        for (at, blocks) in pieces {
            drive.write(at, &pattern(round << 16 | at, blocks * BLOCK));
        }
        for (at, blocks) in pieces {
            let expected = pattern(round << 16 | at, blocks * BLOCK);
            assert!(drive.read(at, blocks) == expected, "round {round}, block {at}");
        }
    }
    // The client disconnects without a shutdown, and connects again at once.
    drop(drive);
    let mut drive = Drive::attach(&host.socket(0));
    for (at, blocks) in pieces {
        assert!(drive.read(at, blocks) == pattern(3 << 16 | at, blocks * BLOCK), "block {at}");
    }
    drive.detach();
    host.stop();
    device.stop();
}

/// Moves a device to a group by `farlane move`.
fn give(device: SocketAddr, group: &str) {
    succeeds(&["move", &device.to_string(), "--group", group]);
}

#[test]
fn moving_a_device_leaves_other_links_up() {
    let folder = folder::kept("moved");
    let device = |name| Node::device_at(ANY, &folder, name, &["ram=16M"], &["--group", "1"]);
    let (stays, goes) = (device("stays"), device("goes"));
    let both = [stays.address(), goes.address()];
    let one = HostNode::start(&folder, "one", &both, &["--mmap-doorbells", "--group", "1"]);
    let options = ["--mmap-doorbells", "--group", "2", "--hot-plug"];
    let two = HostNode::start(&folder, "two", &[goes.address()], &options);
    let data = pattern(7, 64 * BLOCK);
    let mut drive = Drive::attach(&one.socket(1));
    drive.write(1000, &data);

    let (stop, stays_socket) = (AtomicBool::new(false), one.socket(0));
    // At least ten rounds, also on a busy machine.
    let goes_on = |rounds| !stop.load(Ordering::Relaxed) || rounds <= 10;
    std::thread::scope(|threads| {
        // A client works on the other drive of the first host all the time.
        let busy = threads.spawn(|| work(&stays_socket, &goes_on));
        let stopping = SetOnDrop(&stop);
        give(goes.address(), "2");
        two.process.line("endpoint 0: offered");
        let mut moved = Drive::attach(&two.socket(0));
        assert!(moved.read(1000, 64) == data, "data stay when the device moves");
        moved.write(5000, &data);
        moved.detach();
        drop(stopping);
        busy.join().unwrap();
    });
    drop(drive);
    // The device moves back to the host that had it before.
    one.process.line("port 1: link down");
    give(goes.address(), "1");
    one.process.line("endpoint 1: attached again");
    let mut drive = Drive::attach(&one.socket(1));
    assert!(drive.read(1000, 64) == data && drive.read(5000, 64) == data);
    drive.detach();
    let log = one.process.stderr.text();
    assert!(!log.contains("port 0: link down"), "the other link was lost: {log}");
    one.stop();
    two.stop();
    stays.stop();
    goes.stop();
}
