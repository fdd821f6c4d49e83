//! Two processes and a client between them and the recorder.

use std::path::{Path, PathBuf};

use crate::check;
use crate::drive::{BLOCK, Drive};
use crate::dumpcap::Dumpcap;
use crate::folder;
use crate::node::{DeviceNode, HostNode};
use crate::relay::{Recording, Relay};
use crate::tshark::Tshark;
use wire::frame::HEADER;

/// One block, one page, across pages, with a PRP list.
const PIECES: [(u64, usize); 5] = [(0, 1), (8, 8), (100, 9), (1000, 128), (32_767, 1)];

/// Writes and reads through the tunnel; what passed, and the capture of the same
/// connection on loopback if the machine allows one.
fn session(folder: &Path) -> (Recording, Option<PathBuf>) {
    let device = DeviceNode::start(folder, "device", &["ram=16M"]);
    let relay = Relay::start(device.address(), &folder.join("relay"));
    let capture = folder.join("loopback.pcapng");
    let dumpcap = match Dumpcap::start(folder, device.address().port(), &capture) {
        Ok(dumpcap) => Some(dumpcap),
        Err(reason) => {
            eprintln!("NO REAL CAPTURE: dumpcap cannot capture on loopback here: {reason}");
            None
        }
    };
    let host = HostNode::start(folder, "host", &[relay.address()], &["--mmap-doorbells"]);
    let mut drive = Drive::attach(&host.socket(0));
    assert_eq!(drive.identify_namespace(1), (16 << 20) / BLOCK as u64);
    for (at, blocks) in PIECES {
        let data: Vec<u8> = (0..blocks * BLOCK).map(|byte| (byte / 3) as u8).collect();
        drive.write(at, &data);
        assert!(drive.read(at, blocks) == data, "block {at}");
    }
    drive.detach();
    assert!(host.stop().success());
    assert!(device.stop().success());
    let mut recordings = relay.finish();
    assert_eq!(recordings.len(), 1);
    let recording = recordings.remove(0);
    let real = dumpcap.map(|dumpcap| {
        let sent = &recording.to_target;
        // The Goodbye.
        dumpcap.stop(&sent[sent.len() - HEADER..]);
        capture
    });
    (recording, real)
}

#[test]
fn a_session_is_decoded_down_to_its_commands() {
    let folder = folder::kept("wireshark");
    let (recording, real) = session(&folder);
    let (expected, [tunnel, tlps]) = check::recorded(&folder, &recording);
    let reads = expected.commands.iter().filter(|c| c.queue == 1 && c.opcode == 2);
    assert_eq!(reads.count(), PIECES.len());
    assert!(expected.frames > 50 && expected.tlps.len() > 1000);

    // Dissected twice: then every request knows its completions.
    check::tunnel(&tunnel, &["-2"], &expected);
    check::tlps(&tlps, &["-2"], &expected);
    if let Some(real) = real {
        // Whatever else the port, which is any free one, is known for.
        check::tunnel(&real, &["-o", "tcp.try_heuristic_first:TRUE"], &expected);
    }
    info_column(&tlps);
    one_command(&tlps);
}

/// Every TLP of a command is found by its queue and identifier.
fn one_command(capture: &Path) {
    let filter = "nvme_pcie.qid == 1 && nvme_pcie.cid == 1";
    let names = Tshark::ready().fields(capture, &["-2"], filter, &["_ws.col.info"]);
    let read = " LBA 0x0 +1";
    let expected = [
        "MWr32 4 B SQ1 tail doorbell = 2".to_owned(),
        "MRd64 64 B SQE fetch q1".to_owned(),
        format!("CplD 64 B SQE q1: NVMe Read cid 1{read}"),
        format!("MWr64 512 B data +0x0: Read cid 1{read}"),
        format!("MWr64 16 B CQE q1: Read cid 1{read} Success"),
        "MWr32 4 B CQ1 head doorbell = 2".to_owned(),
    ];
    let names: Vec<_> = names.into_iter().map(|mut packet| packet[0].swap_remove(0)).collect();
    assert_eq!(names, expected);
}

/// One line a TLP, readable.
fn info_column(capture: &Path) {
    let lines = Tshark::ready().run(capture, &["-T", "fields", "-e", "_ws.col.info"]);
    for part in [
        "MWr32 4 B CC = 0x460001",
        "MWr32 4 B SQ1 tail doorbell = 1",
        "MRd64 64 B SQE fetch q1",
        "CplD 64 B SQE q1: NVMe Write cid 0 LBA 0x0 +1",
        "data +0x0: Write cid 0 LBA 0x0 +1",
        "PRP list fetch: Write cid",
        "CQE q1: Read cid 1 LBA 0x0 +1 Success",
        "MWr32 4 B CQ1 head doorbell = 1",
        "Create I/O Submission Queue cid",
    ] {
        assert!(lines.lines().any(|line| line.contains(part)), "no line with {part}");
    }
}
