//! A client like SPDK's initiator against `farlane host` and `farlane device`:
//! no JSON, message number 0, doorbells stored in a shared page, its memory
//! mapped by the host node at virtual addresses, no interrupts.
//!
//! What it does was taken from the behaviour of SPDK 24.09
//! (`lib/vfio_user/host`, `lib/nvme/nvme_vfio_user.c`); the bytes are built here
//! by hand, so that no codec of ours stands on both sides.

mod client;
mod drive;

#[path = "../guest/folder.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod folder;
#[path = "../guest/node.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod node;
#[path = "../guest/process.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod process;
#[path = "../guest/transcript.rs"]
#[allow(dead_code, reason = "the guest tests use the rest of it")]
mod transcript;

use drive::{BLOCK, Drive};
use node::{DeviceNode, HostNode};

/// Bytes that differ from block to block and from `seed` to `seed`.
fn pattern(seed: u64, bytes: usize) -> Vec<u8> {
    let words = (0..bytes as u64 / 8).map(|word| (seed << 32 | word).wrapping_mul(0x9e37_79b9));
    words.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn a_polled_client_reads_what_it_wrote() {
    let folder = folder::kept("polled");
    let device = DeviceNode::start(&folder, "device", &["ram=16M"]);
    let host = HostNode::start(&folder, "host", &[device.address()], &["--mmap-doorbells"]);

    let mut drive = Drive::attach(&host.socket(0));
    assert_eq!(drive.identify_namespace(1), (16 << 20) / BLOCK as u64);
    // One block, one page across a page boundary, PRP lists, the largest
    // transfer; often enough for every queue to wrap.
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
    // Gone without a word, and back at once.
    drop(drive);
    let mut drive = Drive::attach(&host.socket(0));
    for (at, blocks) in pieces {
        assert!(drive.read(at, blocks) == pattern(3 << 16 | at, blocks * BLOCK), "block {at}");
    }
    drive.detach();
    assert!(host.stop().success());
    assert!(device.stop().success());
}
