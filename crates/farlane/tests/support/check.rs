//! Writes a recorded connection as capture files, and compares the findings of tshark in these
//! files with the findings of the analyser in the recording.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::thread;

use analysis::commands::stream::{Decoder, Item, LinkAnalyser, Payload};
use analysis::commands::{AnalyserSettings, Direction, Event};
use analysis::export::pcapng::{Connection, Tap, TcpFile, TlpFile};

use crate::support::tshark::number;
use crate::support::{Recording, Tshark};

/// The analyser's findings in a recording.
pub struct Expected {
    pub frames: usize,
    /// Mnemonics of the TLPs, in the order of the capture.
    pub tlps: Vec<String>,
    /// Number of completions. `unsupported`: number of completions with status UR, as from absent
    /// functions.
    pub completions: usize,
    pub unsupported: usize,
    /// Queue, identifier, opcode, namespace, and command dwords 10 to 12 (SLBA and NLB of reads and
    /// writes) of the submission queue entries, sorted.
    pub commands: Vec<[u64; 7]>,
    /// Queue, identifier and status of the completion queue entries, sorted.
    pub ends: Vec<[u64; 3]>,
    items: Vec<Item>,
}

impl Expected {
    /// Analyses a recording.
    pub fn new(recording: &Recording) -> Self {
        let mut decoder = Decoder::new();
        let mut items = Vec::new();
        for range in &recording.ranges {
            let stream = match range.direction {
                Direction::Down => &recording.down,
                Direction::Up => &recording.up,
            };
            let bytes = &stream[range.bytes.clone()];
            decoder.push(range.at, range.direction, bytes, |item| items.push(item)).unwrap();
        }
        decoder.finish().unwrap();

        let mut commands = Vec::new();
        let mut ends = Vec::new();
        let mut keep = |event| {
            let Event::Command(command) = event else { return };
            let (queue, cid) = (u64::from(command.queue), u64::from(command.entry.cid));
            let e = command.entry;
            let [nsid, cdw10, cdw11, cdw12] = [e.nsid, e.cdw10, e.cdw11, e.cdw12].map(u64::from);
            commands.push([queue, cid, e.opcode.into(), nsid, cdw10, cdw11, cdw12]);
            if let Some(status) = command.status {
                ends.push([queue, cid, u64::from(status.bits() & 0x7ff)]);
            }
        };
        let mut link = LinkAnalyser::new(AnalyserSettings::default());
        link.run(&recording.down, &recording.up, recording.ranges.clone(), &mut keep).unwrap();
        link.finish().unwrap();
        std::iter::from_fn(|| link.analyser.next_event()).for_each(keep);
        commands.sort();
        ends.sort();

        // Consecutive items of a frame have the same offset.
        let mut frames: Vec<_> =
            items.iter().map(|i| (i.direction == Direction::Up, i.offset)).collect();
        frames.sort();
        frames.dedup();
        let names = |item: &Item| match &item.payload {
            Payload::Tlp(tlp) => Some(tlp.mnemonic().to_owned()),
            Payload::Control(_) => None,
        };
        let tlps: Vec<String> = items.iter().filter_map(names).collect();
        let completions = tlps.iter().filter(|name| name.starts_with("Cpl")).count();
        let unsupported = link.analyser.counters().unsupported_requests as usize;
        Self { frames: frames.len(), tlps, completions, unsupported, commands, ends, items }
    }
}

/// Writes the recording as a capture of a TCP connection from a host to `device`.
pub fn write_tcp(path: &Path, device: &str, recording: &Recording) {
    let connection =
        Connection { host: "192.0.2.1:50000".parse().unwrap(), device: device.parse().unwrap() };
    let mut file = TcpFile::begin(create(path), 0).unwrap();
    file.connection(connection, &recording.down, &recording.up, &recording.ranges).unwrap();
    file.finish().unwrap();
}

fn create(path: &Path) -> BufWriter<File> {
    BufWriter::new(File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// Writes the recording as `tunnel.pcapng` (TCP) and `tlps.pcapng` (USER0).
fn export(folder: &Path, recording: &Recording, expected: &Expected) -> [PathBuf; 2] {
    let [tunnel, tlps] = ["tunnel.pcapng", "tlps.pcapng"].map(|name| folder.join(name));
    write_tcp(&tunnel, "192.0.2.2:4420", recording);
    let mut file = TlpFile::begin(create(&tlps), 0).unwrap();
    for item in &expected.items {
        if let Payload::Tlp(tlp) = &item.payload {
            file.tlp(item.at, Tap::HostTunnel, item.direction, tlp, "").unwrap();
        }
    }
    file.finish().unwrap();
    [tunnel, tlps]
}

/// Fields that tshark prints, in this order.
const FIELDS: [&str; 20] = [
    "frame.number",
    "farlane.kind",
    "pcie_tlp.fmt_type",
    "pcie_tlp.request_in",
    "pcie_tlp.completion_in",
    "nvme_pcie.sqe.sqid",
    "nvme_pcie.sqe.cid",
    "nvme_pcie.sqe.opcode",
    "nvme_pcie.sqe.nsid",
    "nvme_pcie.sqe.cdw10",
    "nvme_pcie.sqe.cdw11",
    "nvme_pcie.sqe.cdw12",
    "nvme_pcie.cqe.sqid",
    "nvme_pcie.cqe.cid",
    "nvme_pcie.cqe.sct",
    "nvme_pcie.cqe.sc",
    "_ws.expert.severity",
    "_ws.expert.message",
    "_ws.malformed",
    "pcie_tlp.cut",
];

/// Severity of tshark's expert messages from which a packet is yellow or red.
const WARNING: u64 = 0x0060_0000;

/// Expected warning about completions with status UR.
const UNSUPPORTED: &str = "Unsupported Request";

/// The values of [`FIELDS`] in each packet of a capture.
struct Decoded {
    packets: Vec<Vec<Vec<String>>>,
}

impl Decoded {
    /// Returns the values of a field in all packets.
    fn all(&self, field: &str) -> Vec<&str> {
        let index = FIELDS.iter().position(|known| *known == field).unwrap();
        self.packets.iter().flat_map(|packet| &packet[index]).map(String::as_str).collect()
    }

    /// Returns the values of several fields of one structure, with one row per structure, sorted.
    fn rows<const N: usize>(&self, prefix: &str, fields: [&str; N]) -> Vec<[u64; N]> {
        let columns = fields.map(|field| self.all(&format!("nvme_pcie.{prefix}.{field}")));
        assert!(columns.iter().all(|column| column.len() == columns[0].len()), "{fields:?}");
        let row = |i: usize| columns.each_ref().map(|column| number(column[i]));
        let mut rows: Vec<_> = (0..columns[0].len()).map(row).collect();
        rows.sort();
        rows
    }

    /// Compares commands and completion entries with the expected ones.
    fn commands(&self, name: &str, expected: &Expected) {
        assert!(self.all("_ws.malformed").is_empty(), "{name}: malformed packets");
        let fields = ["sqid", "cid", "opcode", "nsid", "cdw10", "cdw11", "cdw12"];
        assert_eq!(self.rows("sqe", fields), expected.commands, "{name}: commands");
        let ends = self.rows("cqe", ["sqid", "cid", "sct", "sc"]).into_iter();
        let ends: Vec<_> = ends.map(|[queue, cid, sct, sc]| [queue, cid, sct << 8 | sc]).collect();
        assert_eq!(ends, expected.ends, "{name}: completion entries");
    }

    /// Returns the messages with severity warning or error.
    fn warnings(&self) -> Vec<&str> {
        let severities = self.all("_ws.expert.severity");
        let messages = severities.into_iter().zip(self.all("_ws.expert.message"));
        messages.filter(|(severity, _)| number(severity) >= WARNING).map(|(_, text)| text).collect()
    }
}

/// Compares tshark's findings in a capture with the expected ones.
fn compare(path: &Path, options: &[&str], expected: &Expected) -> Decoded {
    let packets = Tshark::ready().fields(path, options, "farlane || farlane_tap", &FIELDS);
    let decoded = Decoded { packets };
    let name = path.display().to_string();

    let tlps = decoded.all("pcie_tlp.fmt_type");
    let tlps: Vec<&str> = tlps.into_iter().map(|value| mnemonic(number(value))).collect();
    assert_eq!(tlps.len(), expected.tlps.len(), "{name}: TLPs");
    assert!(tlps == expected.tlps, "{name}: the TLPs are others");
    let answers = decoded.all("pcie_tlp.request_in").len();
    assert_eq!(answers, expected.completions, "{name}: answers with their request");
    if options.contains(&"-2") {
        let answered = decoded.all("pcie_tlp.completion_in").len();
        assert_eq!(answered, expected.completions, "{name}: requests with their answers");
    }
    decoded.commands(&name, expected);

    let failed = expected.ends.iter().filter(|[.., status]| *status != 0).count();
    let count = |text| decoded.warnings().into_iter().filter(|message| *message == text).count();
    assert_eq!(count(UNSUPPORTED), expected.unsupported, "{name}: {UNSUPPORTED}");
    assert_eq!(count("Command failed"), failed, "{name}: failed commands");
    let warnings = decoded.warnings();
    assert_eq!(warnings.len(), expected.unsupported + failed, "{name}: {warnings:?}");
    decoded
}

/// Compares a capture of TCP, including the number of frames.
pub fn tunnel(path: &Path, options: &[&str], expected: &Expected) {
    let decoded = compare(path, options, expected);
    let frames = decoded.all("farlane.kind").len();
    assert_eq!(frames, expected.frames, "{}: frames", path.display());
}

/// Compares a capture with one TLP per packet, including the number of packets.
pub fn tlps(path: &Path, options: &[&str], expected: &Expected) {
    let decoded = compare(path, options, expected);
    assert_eq!(decoded.packets.len(), expected.tlps.len(), "{}: packets", path.display());
}

/// Compares the NVMe commands in a capture of TLPs at another point, where configuration requests
/// differ. Returns the number of missing bytes of each cut packet.
pub fn commands(path: &Path, expected: &Expected) -> Vec<u64> {
    let packets = Tshark::ready().fields(path, &[], "farlane_tap", &FIELDS);
    let decoded = Decoded { packets };
    decoded.commands(&path.display().to_string(), expected);
    decoded.all("pcie_tlp.cut").into_iter().map(number).collect()
}

/// Writes a recorded connection into `folder` as captures of TCP and of TLPs, and compares tshark's
/// findings with the analyser's. Runs `also` at the same time. Returns the analyser's findings and
/// the paths of the captures.
pub fn recorded(
    folder: &Path,
    recording: &Recording,
    also: impl FnOnce(&Expected),
) -> (Expected, [PathBuf; 2]) {
    let expected = Expected::new(recording);
    let [as_tcp, as_tlps] = export(folder, recording, &expected);
    Tshark::ready();
    thread::scope(|scope| {
        // One run of tshark uses one core.
        scope.spawn(|| tunnel(&as_tcp, &[], &expected));
        scope.spawn(|| tlps(&as_tlps, &[], &expected));
        also(&expected);
    });
    (expected, [as_tcp, as_tlps])
}

/// Returns the mnemonic of Fmt and Type (PCIe Base 4.0, table 2-3).
fn mnemonic(fmt_type: u64) -> &'static str {
    match fmt_type {
        0x00 => "MRd32",
        0x20 => "MRd64",
        0x40 => "MWr32",
        0x60 => "MWr64",
        0x04 => "CfgRd0",
        0x05 => "CfgRd1",
        0x44 => "CfgWr0",
        0x45 => "CfgWr1",
        0x0a => "Cpl",
        0x4a => "CplD",
        0x30..=0x37 => "Msg",
        0x70..=0x77 => "MsgD",
        other => panic!("Fmt/Type {other:#x}"),
    }
}
