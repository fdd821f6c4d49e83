//! A simulated wire, decoded from Ethernet to NVMe commands.

use crate::support::program::{plan_of, succeeds, text};
use crate::support::{Tshark, folder};
use plan::simulate::limits::Assumptions;
use plan::simulate::{OutputFiles, Outputs};
use report::target::Target;
use sim::ethernet::Rate;
use sim::workload::Workload;
use sim::{Config, World};
use std::path::Path;

/// Number of reads of 4 KiB.
pub const READS: u64 = 20;

/// Runs a simulation and captures its wires.
pub fn run(config: &Config, capture: &Path) {
    let files =
        OutputFiles { pcapng: Some(Target::File(capture.to_owned())), ..OutputFiles::default() };
    let mut outputs =
        Outputs::begin(config, &files, Assumptions::default(), &str::to_owned).unwrap();
    let mut world = World::new(config).unwrap();
    world.observe(outputs.observer());
    world.run().unwrap();
    outputs.close(config, world.now(), true).unwrap();
}

/// Returns the number of reads among these opcodes.
pub fn reads(commands: &[Vec<Vec<String>>]) -> u64 {
    commands.iter().flat_map(|row| &row[0]).filter(|op| op.ends_with('2')).count() as u64
}

/// Segments in raw Ethernet frames are decoded to NVMe commands.
#[test]
fn raw_frames_are_decoded() {
    let folder = folder::kept("simulated-raw");
    let capture = folder.join("wires.pcapng");
    let settings = switch::raw::Settings::new(0);
    let raw = sim::transport::RawConfig { stations: [0, 1], priority: 0, settings };
    let work = Workload::Dd { write: false, bs: 4096, count: READS };
    let mut config = Config::nvme_tsn_tsn(work, Rate::G1);
    let sim::world::Attached::Switch(switch) = &mut config.hosts[0].attached else {
        unreachable!("a tunnel")
    };
    switch.ports[0].transport = sim::transport::TransportConfig::Raw(raw);
    run(&config, &capture);
    let fields =
        |filter: &str, fields: &[&str]| Tshark::ready().fields(&capture, &["-2"], filter, fields);
    let all = fields("frame", &["vlan.etype"]);
    assert!(all.len() > 500 && all.iter().all(|row| row[0] == ["0x88b5"]), "tagged raw frames");
    assert_eq!(fields("farlane_raw", &["frame.number"]).len(), all.len());
    for kind in 1..=4 {
        assert!(!fields(&format!("farlane_raw.kind == {kind}"), &["frame.number"]).is_empty());
    }
    assert!(fields("_ws.expert || _ws.malformed", &["frame.number"]).is_empty());
    assert_eq!(reads(&fields("nvme_pcie.sqe.sqid == 1", &["nvme_pcie.sqe.opcode"])), READS);
}

/// The cable is cut in the middle of a transfer, and the session goes on over another connection.
#[test]
fn a_session_is_followed_over_its_connections() {
    let folder = folder::kept("wireshark-cut");
    let capture = text(&folder.join("cut.pcapng"));
    let plan = plan_of("tcp");
    let cut = "link.cuts=[\"5ms..1200ms\"]";
    succeeds(&["sim", &plan, "--set", cut, "--pcapng", &capture]);
    let tshark = Tshark::ready();
    let capture = Path::new(&capture);
    let fields = |filter: &str, fields: &[&str]| tshark.fields(capture, &["-2"], filter, fields);
    for error in ["farlane.sequence_error", "farlane.acknowledged_error", "farlane.malformed"] {
        assert_eq!(fields(error, &["frame.number"]).len(), 0, "{error}");
    }
    let goes_on = "_ws.col.info contains \"session goes on, expects\"";
    assert_eq!(fields(goes_on, &["frame.number"]).len(), 2);
    // The dissector knows the queues of the first connection.
    let late = "tcp.stream == 1 && _ws.col.info contains \"SQE q1: NVMe Read\"";
    let reads = fields(late, &["frame.number"]).len();
    assert!(reads > 40, "{reads} entries after the cut");
}

#[test]
fn simulated_frames_are_real_frames() {
    let folder = folder::kept("simulated");
    let capture = folder.join("wires.pcapng");
    let config =
        Config::nvme_tsn_tsn(Workload::Dd { write: false, bs: 4096, count: READS }, Rate::G1);
    run(&config, &capture);

    let checked = ["-2", "-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
    let fields =
        |filter: &str, fields: &[&str]| Tshark::ready().fields(&capture, &checked, filter, fields);
    let all = fields("frame", &["vlan.id", "vlan.etype", "frame.interface_name"]);
    assert!(all.len() > 500);
    assert!(all.iter().all(|row| row[0] == ["1"] && row[1] == ["0x0800"]), "tagged IPv4");
    assert!(all.iter().any(|row| row[2] == ["station 0 to station 1"]));
    assert!(all.iter().any(|row| row[2] == ["station 1 to station 0"]));
    let wrong = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0 || \
                 tcp.analysis.retransmission || tcp.analysis.out_of_order || \
                 tcp.analysis.lost_segment || tcp.analysis.ack_lost_segment || \
                 tcp.analysis.duplicate_ack";
    assert_eq!(fields(wrong, &["frame.number", "_ws.col.info"]), Vec::<Vec<Vec<String>>>::new());
    let good = fields("ip.checksum.status == 1 && tcp.checksum.status == 1", &["frame.number"]);
    assert_eq!(good.len(), all.len(), "every checksum was looked at");
    assert_eq!(reads(&fields("nvme_pcie.sqe.sqid == 1", &["nvme_pcie.sqe.opcode"])), READS);
}
