//! Huge pages as SPDK uses them, and huge pages that the client removes while the device uses them.

use super::Nodes;
use crate::support::client::Memory;
use crate::support::huge::{FileSystem, PAGE, reserve};
use crate::support::{ADDRESS, BLOCK, Drive};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, ftruncate};
use std::fs::File;

fn attach(nodes: &Nodes, file: &File) -> Drive {
    let memory = Memory::huge(file.try_clone().unwrap(), ADDRESS, PAGE);
    Drive::attach_with(&nodes.socket(), memory)
}

/// Writes and reads 128 KiB through the data buffer.
fn use_it(drive: &mut Drive) {
    let data: Vec<u8> = (0..256 * BLOCK).map(|at| (at / 7) as u8).collect();
    drive.write(100, &data);
    assert!(drive.read(100, 256) == data);
}

#[test]
fn unsealed_huge_pages_work() {
    let Some((_pool, system)) = reserve("unsealed huge pages", 2) else { return };
    let nodes = Nodes::start("huge-pages");
    // As with SPDK: a file on hugetlbfs, or a memfd without seals.
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let memfd = File::from(rustix::fs::memfd_create("client", flags).unwrap());
    ftruncate(&memfd, PAGE).unwrap();
    for file in [&system.file("client", 1), &memfd] {
        let mut drive = attach(&nodes, file);
        use_it(&mut drive);
        drive.detach();
    }
    nodes.stop();
}

/// Runs a client whose memory is a file of huge pages. `harm` damages the file, and then the device
/// accesses the memory.
fn harm(name: &str, harm: impl FnOnce(&FileSystem, &File)) {
    let Some((_pool, system)) = reserve(name, 2) else { return };
    let mut nodes = Nodes::start(name);
    let file = system.file("client", 1);
    let socket = nodes.socket();
    nodes.beside_a_working_client(|host| {
        let memory = Memory::huge(file.try_clone().unwrap(), ADDRESS, PAGE);
        let mut drive = Drive::attach_with(&socket, memory);
        use_it(&mut drive);
        harm(&system, &file);
        // The controller fetches a command from memory that no longer exists.
        drive.ring();
        host.process.line("endpoint 1: VMM gone: the client removed memory");
        drop(drive);
        // The endpoint serves the next client.
        let mut drive = Drive::attach(&socket);
        use_it(&mut drive);
        drive.detach();
    });
    nodes.stop();
}

#[test]
fn truncated_huge_page_file_drops_only_its_client() {
    harm("hostile-cut", |_, file| ftruncate(file, 0).unwrap());
}

#[test]
fn unfillable_hole_drops_only_its_client() {
    harm("hostile-hole", |system, file| {
        // Another file takes all pages of the file system.
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(file, punch, 0, PAGE).unwrap();
        fallocate(system.file("thief", 2), FallocateFlags::empty(), 0, 2 * PAGE).unwrap();
    });
}
