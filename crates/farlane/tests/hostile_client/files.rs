//! Memory in a file whose reads and writes hang.

use super::Nodes;
use crate::hostile_client::fuse::{self, FileSystem};
use crate::support::client::Client;
use crate::support::{Drive, READ, WRITE, cannot, wait_until};
use std::path::Path;

/// Where the device finds the file.
const ADDRESS: u64 = 0x10_0000_0000;
/// Threads that one endpoint may leave behind.
const MOST: usize = 16;

/// Comes with such a file, has the device read it, and goes; whether it was let in.
fn visit(socket: &Path, system: &FileSystem, time: usize) -> bool {
    let Some(mut drive) = Drive::try_attach(socket) else { return false };
    let before = system.reads();
    drive.client.map(Some(system.file(time)), ADDRESS, fuse::SIZE);
    drive.begin(WRITE, ADDRESS);
    wait_until("the device does not read", || system.reads() > before);
    true
}

#[test]
fn a_file_that_hangs_stops_nobody() {
    let mut nodes = Nodes::start("hostile-files");
    // Behind the nodes, so that it is dropped first: they cannot end before.
    let system = match FileSystem::new(MOST + 1) {
        Ok(system) => system,
        Err(error) => return cannot("a file that hangs", format!("mounting FUSE: {error}")),
    };
    system.fall_silent();
    let socket = nodes.socket();
    nodes.beside_a_working_client(|host| {
        let mut drive = Drive::attach(&socket);
        drive.client.map(Some(system.file(MOST)), ADDRESS, fuse::SIZE);
        // The controller writes there in vain: no completion entry may tell the
        // client that its data are there.
        drive.begin(READ, ADDRESS);
        host.process.line("endpoint 1: VMM gone: the client's file did not take");
        assert!(!drive.has_completed());
        drop(drive);
        // It comes again and again, and each time leaves a thread that hangs,
        // until there may be no more.
        let visits = (0..MOST).take_while(|time| visit(&socket, &system, *time)).count();
        assert_eq!(visits, MOST - 1);
        host.process.line("still wait for files of clients before");
    });
    // Whoever releases the threads makes room again.
    drop(system);
    wait_until("no room for a client", || Client::try_attach(&socket).is_some());
    Drive::attach(&socket).detach();
    nodes.stop();
}
