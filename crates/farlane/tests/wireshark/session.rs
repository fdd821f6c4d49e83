//! Two nodes and a client, with a recording relay between the nodes.

use std::path::{Path, PathBuf};

use crate::support::program::{succeeds, text};
use crate::support::{ANY, BLOCK, Drive, HostNode, Node, Recording, Relay, Tshark, check, folder};
use crate::wireshark::dumpcap::Dumpcap;
use wire::frame::HEADER;

/// First block and number of blocks of each transfer: one block, one page, several pages, PRP
/// lists.
const PIECES: [(u64, usize); 5] = [(0, 1), (8, 8), (100, 9), (1000, 128), (32_767, 1)];

/// The recorded bytes, the capture of the same connection on loopback, and the traces of host and
/// device.
type Session = (Recording, Option<PathBuf>, [PathBuf; 2]);

/// Writes and reads a drive through a tunnel whose host pushes `push`.
fn session(folder: &Path, push: &str) -> Session {
    let traces = ["host.trace", "device.trace"].map(|name| folder.join(name));
    let [host_trace, device_trace] = traces.each_ref().map(|path| path.display().to_string());
    // The host records whole TLPs. The device records no user data, and 64 bytes of other payloads.
    let (whole, short) = (format!("{host_trace},payload=all"), format!("{device_trace},snap=64"));
    let options = ["--trace", &short];
    let device = Node::device_at(ANY, folder, "device", &["ram=16M"], &options);
    let relay = Relay::start(device.address());
    let capture = folder.join("loopback.pcapng");
    let dumpcap = match Dumpcap::start(folder, device.address().port(), &capture) {
        Ok(dumpcap) => Some(dumpcap),
        Err(reason) => {
            eprintln!("NO REAL CAPTURE: dumpcap cannot capture on loopback here: {reason}");
            None
        }
    };
    let options = ["--mmap-doorbells", "--push", push, "--trace", &whole];
    let host = HostNode::start(folder, "host", &[relay.address()], &options);
    let mut drive = Drive::attach(&host.socket(0));
    assert_eq!(drive.identify_namespace(1), (16 << 20) / BLOCK as u64);
    for (at, blocks) in PIECES {
        let data: Vec<u8> = (0..blocks * BLOCK).map(|byte| (byte / 3) as u8).collect();
        drive.write(at, &data);
        assert!(drive.read(at, blocks) == data, "block {at}");
    }
    drive.detach();
    host.stop();
    device.stop();
    let mut recordings = relay.finish();
    assert_eq!(recordings.len(), 1);
    let recording = recordings.remove(0);
    let real = dumpcap.map(|dumpcap| {
        let sent = &recording.down;
        // The last bytes are the Goodbye.
        dumpcap.stop(&sent[sent.len() - HEADER..]);
        capture
    });
    (recording, real, traces)
}

#[test]
fn a_session_is_decoded_down_to_its_commands() {
    session_is_decoded(&folder::kept("wireshark"), "off");
}

#[test]
fn a_session_with_push_is_decoded_down_to_its_commands() {
    session_is_decoded(&folder::kept("wireshark-pushed"), "all");
}

fn session_is_decoded(folder: &Path, push: &str) {
    let (recording, real, traces) = session(folder, push);
    let (expected, [tunnel, tlps]) = check::recorded(folder, &recording, |_| {});
    let reads =
        expected.commands.iter().filter(|[queue, _, opcode, ..]| (*queue, *opcode) == (1, 2));
    assert_eq!(reads.count(), PIECES.len());
    assert!(expected.frames > 50 && expected.tlps.len() > 1000);

    // With two passes, requests refer to their completions in the second pass.
    check::tunnel(&tunnel, &["-2"], &expected);
    check::tlps(&tlps, &["-2"], &expected);
    if let Some(real) = real {
        // The port is any free port, which may belong to another protocol. The heuristic comes
        // first.
        check::tunnel(&real, &["-o", "tcp.try_heuristic_first:TRUE"], &expected);
    }
    info_column(&tlps, push);
    one_command(&tlps, push);
    let [host, device] = traces;
    let whole = check::commands(&exported(&host), &expected);
    assert_eq!(whole.len(), 0, "nothing was cut");
    let cut = check::commands(&exported(&device), &expected);
    // Data of 512 bytes are cut. Of PRP lists the trace has 64 bytes.
    assert!(cut.len() > 20 && cut.contains(&512), "{} packets are cut", cut.len());
    comments(&exported(&host));
}

/// Returns a capture of a trace by `farlane trace --pcapng`.
fn exported(trace: &Path) -> PathBuf {
    let out = trace.with_extension("pcapng");
    succeeds(&["trace", "--limit", "0", "--pcapng", &text(&out), &text(trace)]);
    out
}

/// Checks that farlane's comments and the dissector describe TLPs in the same way.
fn comments(capture: &Path) {
    let fields = ["frame.comment", "_ws.col.info"];
    let filter = "frame.comment contains \"Read \"";
    let packets = Tshark::ready().fields(capture, &["-2"], filter, &fields);
    let mut compared = 0;
    for packet in &packets {
        let [comment, info] = [&packet[0][0], &packet[1][0]];
        let cid = comment.split("cid ").nth(1).and_then(|rest| rest.split([',', ')']).next());
        let cid = cid.unwrap_or_else(|| panic!("no identifier in {comment}"));
        if comment.starts_with("data write of Read ") && comment.contains("queue 1 ") {
            assert!(info.contains(&format!("Read cid {cid} ")), "{comment}: {info}");
            compared += 1;
        }
    }
    // The reads have at least one data write per block, page or piece of 4096 bytes.
    assert!(compared > 20, "{compared}");
}

/// Checks that the filter for queue and identifier finds every TLP of a command.
fn one_command(capture: &Path, push: &str) {
    let filter = "nvme_pcie.qid == 1 && nvme_pcie.cid == 1";
    let names = Tshark::ready().fields(capture, &["-2"], filter, &["_ws.col.info"]);
    let read = " LBA 0x0 +1";
    let doorbell = "MWr32 4 B SQ1 tail doorbell = 2".to_owned();
    let pushed = format!("MsgD Vendor_Defined Type 1 push: SQE q1: NVMe Read cid 1{read}");
    let fetched = format!("CplD 64 B SQE q1: NVMe Read cid 1{read}");
    let begin = match push {
        "off" => vec![doorbell, "MRd64 64 B SQE fetch q1".to_owned(), fetched],
        _ => vec![pushed, doorbell],
    };
    let rest = [
        format!("MWr64 512 B data +0x0: Read cid 1{read}"),
        format!("MWr64 16 B CQE q1: Read cid 1{read} Success"),
        "MWr32 4 B CQ1 head doorbell = 2".to_owned(),
    ];
    let names: Vec<_> = names.into_iter().map(|mut packet| packet[0].swap_remove(0)).collect();
    assert_eq!(names, [&begin[..], &rest].concat());
}

/// Checks the lines of the info column, one per TLP.
fn info_column(capture: &Path, push: &str) {
    let lines = Tshark::ready().run(capture, &["-T", "fields", "-e", "_ws.col.info"]);
    let fetched = [
        "MRd64 64 B SQE fetch q1",
        "CplD 64 B SQE q1: NVMe Write cid 0 LBA 0x0 +1",
        "data +0x0: Write cid 0 LBA 0x0 +1",
        "PRP list fetch: Write cid",
    ];
    let pushed = [
        "push: SQE q1: NVMe Write cid 0 LBA 0x0 +1, data: Write cid 0 LBA 0x0 +1",
        "push: SQE q1: NVMe Read cid 1 LBA 0x0 +1",
        "PRP list: Read cid",
    ];
    let of_push = if push == "off" { &fetched[..] } else { &pushed };
    let all = [
        "MWr32 4 B CC = 0x460001",
        "MWr32 4 B SQ1 tail doorbell = 1",
        "CQE q1: Read cid 1 LBA 0x0 +1 Success",
        "MWr32 4 B CQ1 head doorbell = 1",
        "Create I/O Submission Queue cid",
    ];
    for part in all.iter().chain(of_push) {
        assert!(lines.lines().any(|line| line.contains(part)), "no line with {part}");
    }
}
