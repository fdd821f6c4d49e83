//! A client that never reads the messages of its device.

use super::{Nodes, is_undisturbed};
use crate::support::Drive;

/// A range that is accessed by messages, which the client does not answer.
const ADDRESS: u64 = 0x10_0000_0000;
/// Reads of 128 KiB, more than the controller carries out at the same time.
const READS: u16 = 512;
/// Rounds of the working client meanwhile.
const ROUNDS: u64 = 1000;

#[test]
fn stalled_client_blocks_only_its_device() {
    let mut nodes = Nodes::start("hostile-messages");
    let (socket, rounds) = (nodes.socket(), nodes.rounds.clone());
    nodes.beside_a_working_client(|_| {
        let mut drive = Drive::attach(&socket);
        drive.client.map(None, ADDRESS, 1 << 20);
        drive.begin_reads_to(ADDRESS, READS);
        is_undisturbed(&rounds, ROUNDS);
    });
    nodes.stop();
}
