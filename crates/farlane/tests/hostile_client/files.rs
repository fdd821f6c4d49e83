//! A client's memory is in a file whose reads and writes hang.

use super::Nodes;
use crate::hostile_client::fuse::{self, FileSystem};
use crate::support::{Drive, WRITE, cannot, wait_until};

/// DMA address of the file.
const ADDRESS: u64 = 0x10_0000_0000;
/// Number of clients, one after the other: more than the number of hanging threads that an endpoint
/// permits.
const CLIENTS: usize = 20;

#[test]
fn hanging_memory_file_blocks_only_its_client() {
    let mut nodes = Nodes::start("hostile-files");
    // Declared after the nodes, so that it is dropped first. The nodes cannot end before.
    let system = match FileSystem::new(CLIENTS) {
        Ok(system) => system,
        Err(error) => return cannot("a file that hangs", format!("mounting FUSE: {error}")),
    };
    system.fall_silent();
    let socket = nodes.socket();
    nodes.beside_a_working_client(|_| {
        for client in 0..CLIENTS {
            let mut drive = Drive::attach(&socket);
            drive.client.map(Some(system.file(client)), ADDRESS, fuse::SIZE);
            drive.begin(WRITE, ADDRESS);
            wait_until("no message", || !drive.client.is_quiet());
            assert!(!drive.has_completed());
        }
    });
    assert_eq!(system.reads(), 0, "nobody touches the file");
    drop(system);
    Drive::attach(&socket).detach();
    nodes.stop();
}
