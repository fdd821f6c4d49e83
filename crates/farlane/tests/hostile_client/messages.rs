//! A client does not read the messages of its device.

use super::{Nodes, is_undisturbed};
use crate::support::Drive;

/// Address of a range that the device accesses by messages. The client does not answer them.
const ADDRESS: u64 = 0x10_0000_0000;
/// Number of reads of 128 KiB: more than the controller executes at the same time.
const READS: u16 = 512;
/// Number of rounds of the working client in the meantime.
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
