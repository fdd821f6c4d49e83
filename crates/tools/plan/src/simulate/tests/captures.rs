//! Captures of simulated wires. `tests/wireshark` checks them with tshark.

use super::{PRIORITY, gated, mixed, observed, run};
use crate::Plan;
use crate::simulate::limits::Assumptions;
use crate::simulate::{Observers, OutputFiles, Outputs, Shared};
use report::target::Target;
use sim::Config;
use sim::ethernet::port::{self, Preemption};
use sim::ethernet::traffic::Pattern;
use sim::ethernet::{Rate, bridge};
use sim::measure::{Observer, Point};
use sim::network::{BridgeConfig, CableConfig, CableEnd, TrafficConfig};
use sim::world::Report;
use std::collections::BTreeMap;
use std::path::Path;
use tsn::gates::HoldAdvance;
use tsn::preemption::verification::Config as Verify;
use tsn::preemption::{FragmentSize, Reassembler, Received};
use wire::{Duration, Instant};

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Captures a whole run; returns its report, and the blocks of the file with their types.
fn captured(config: &Config, named: &dyn Fn(&str) -> String) -> (Report, Vec<(u32, Vec<u8>)>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wires.pcapng");
    let files = OutputFiles { pcapng: Some(Target::File(path.clone())), ..OutputFiles::default() };
    let (report, ..) = observed(config, &files, named);
    (report.unwrap(), blocks(&path))
}

/// Returns the blocks of a file, each with its type.
fn blocks(path: &Path) -> Vec<(u32, Vec<u8>)> {
    let bytes = std::fs::read(path).unwrap();
    let (mut rest, mut blocks) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (block, more) = rest.split_at(word(rest, 4) as usize);
        blocks.push((word(block, 0), block.to_vec()));
        rest = more;
    }
    blocks
}

#[test]
fn frames_of_all_wires_are_in_order_with_their_tags() {
    let config = gated(mixed(2), Duration::from_us(300), Duration::from_us(500));
    let (report, blocks) = captured(&config, &str::to_owned);
    let (mut interfaces, mut frames, mut last) = (0, [0u64; 4], 0);
    for (kind, block) in blocks {
        match kind {
            1 => interfaces += 1,
            6 => {
                let time = u64::from(word(&block, 12)) << 32 | u64::from(word(&block, 16));
                assert!(time >= last);
                last = time;
                frames[word(&block, 8) as usize] += 1;
                assert_eq!(block[28 + 12..28 + 14], [0x81, 0x00], "a tag");
                assert!([0, PRIORITY].contains(&(block[28 + 14] >> 5)));
            }
            _ => assert_eq!(kind, 0x0a0d_0d0a),
        }
    }
    assert_eq!(interfaces, 4, "two cables, both ways");
    assert!(last <= report.time.as_ns());
    // The frames that the links carried since the workload began, and the frames before.
    let names = ["station 0 to bridge 0 port 0", "bridge 0 port 0 to station 0"];
    for (wire, name) in names.into_iter().enumerate() {
        let link = report.links.iter().find(|link| link.name == name).unwrap();
        assert!(frames[wire] > link.load.packets, "{name}: {frames:?}");
    }
}

/// Interfaces have the plan's names, as in tables.
#[test]
fn interfaces_have_the_names_of_the_plan() {
    let text = "[hosts.ecu]\n[nodes.store]\n[bridges.br1]\n[workload]\nconfigreads = 5\n";
    let planned = Plan::parse("p.toml", text).unwrap().build().unwrap();
    let (_, blocks) = captured(&planned.config, &|words| planned.link_name(words));
    let mut names = Vec::new();
    for (_, block) in blocks.iter().filter(|(kind, _)| *kind == 1) {
        // The options: if_name is 2 (pcapng, section 4.2).
        assert_eq!(u16::from_le_bytes([block[16], block[17]]), 2);
        let size = usize::from(u16::from_le_bytes([block[18], block[19]]));
        names.push(String::from_utf8(block[20..20 + size].to_vec()).unwrap());
    }
    assert_eq!(
        names,
        ["ecu to br1 port 0", "br1 port 0 to ecu", "store to br1 port 1", "br1 port 1 to store"]
    );
}

#[test]
fn without_ethernet_there_is_nothing_to_capture() {
    let config = Config::nvme_tsn_direct(mixed(1));
    let folder = tempfile::tempdir().unwrap();
    let files = OutputFiles {
        pcapng: Some(Target::File(folder.path().join("x.pcapng"))),
        ..OutputFiles::default()
    };
    let failure =
        Outputs::begin(&config, &files, Assumptions::default(), &str::to_owned).err().unwrap();
    assert!(failure.0.contains("no Ethernet"), "{failure}");
}

/// Frames on a wire by priority, each in the order of the first bits.
type Frames = BTreeMap<(u32, u8), Vec<Vec<u8>>>;

fn note(frames: &mut Frames, wire: u32, frame: &[u8]) {
    frames.entry((wire, frame[14] >> 5)).or_default().push(frame.to_vec());
}

#[derive(Default)]
struct Started(Frames);

impl Observer for Started {
    fn ethernet_frame(&mut self, _: Instant, point: Point, bytes: &[u8]) {
        if let Point::Wire(wire) = point {
            note(&mut self.0, wire.into(), bytes);
        }
    }
}

/// The NVMe/TSN paper's stations at a bridge, and a third one without preemption whose stream
/// interrupts the tunnel's frames towards the host.
fn preempting() -> Config {
    let mut config = Config::nvme_tsn_tsn(mixed(4), Rate::G1);
    let verify = Verify { time: Duration::from_ms(1), ..Verify::default() };
    let (express, fragment, advance) = (0x80, FragmentSize::default(), HoldAdvance::default());
    let preemption = Some(Preemption { express, fragment, advance, verify });
    let port = port::Config { preemption, ..port::Config::new(Rate::G1) };
    let network = &mut config.network;
    let mut third = network.stations[0].clone();
    network.stations.iter_mut().for_each(|station| station.ports[0] = port.clone());
    let pattern = Pattern::Periodic(Duration::from_us(5));
    third.traffic = vec![TrafficConfig::new(0, 64, 7, pattern)];
    network.stations.push(third);
    let (ports, mode) = (vec![port; 3], bridge::Mode::StoreAndForward);
    let (delay, jitter) = (Duration::from_ns(1_500), Duration::ZERO);
    network.bridges = vec![BridgeConfig { ports, mode, delay, jitter }];
    let cable =
        |n| CableConfig::new(CableEnd::station(n), CableEnd::Bridge(0, n), Duration::from_ns(50));
    network.cables = (0..3).map(cable).collect();
    config
}

/// The receiver of each wire reassembles from mPackets exactly the frames that the sender began.
#[test]
fn reassembled_mpackets_equal_the_sent_frames() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wires.pcapng");
    let files = OutputFiles { pcapng: Some(Target::File(path.clone())), ..OutputFiles::default() };
    let config = preempting();
    let mut outputs =
        Outputs::begin(&config, &files, Assumptions::default(), &str::to_owned).unwrap();
    let started = Shared::new(Started::default());
    run(&config, Box::new(Observers(vec![outputs.observer(), Box::new(started.clone())])));
    outputs.close(&config, Instant::ZERO, true).unwrap();

    let (mut links, mut receivers) = (Vec::new(), Vec::new());
    let mut received = Frames::new();
    let mut questions = [0; 6];
    let mut fragments = [0; 6];
    for (kind, block) in blocks(&path) {
        match kind {
            1 => {
                links.push(u16::from_le_bytes([block[8], block[9]]));
                receivers.push(Reassembler::new(2_000));
            }
            6 => {
                let wire = word(&block, 8);
                let data = &block[28..][..word(&block, 20) as usize];
                let at = wire as usize;
                if links[at] == 1 {
                    note(&mut received, wire, data);
                    continue;
                }
                match receivers[at].receive(data).unwrap() {
                    Received::Frame { bytes, .. } => note(&mut received, wire, &bytes),
                    Received::Fragment => fragments[at] += 1,
                    Received::Verify | Received::Respond => questions[at] += 1,
                }
            }
            _ => {}
        }
    }
    // Only the third station has no preemption. The other MACs send verify mPackets; four respond.
    // The MAC at the third station sends three and gets no response.
    assert_eq!(links, [274, 274, 274, 274, 1, 274]);
    assert_eq!(questions, [2, 2, 2, 2, 0, 3]);
    assert!(fragments[1] > 100, "{fragments:?}");
    assert_eq!([0, 2, 3, 4, 5].map(|wire| fragments[wire]), [0; 5], "nothing else is express");
    for (place, mut started) in std::mem::take(&mut started.0.borrow_mut().0) {
        let received = received.remove(&place).unwrap_or_default();
        // The last frame may still be on the line at the end.
        let open = started.len() - received.len();
        assert!(open <= 1, "{open} frames of {place:?} are missing");
        started.truncate(received.len());
        assert!(received == started, "frames of {place:?}");
    }
    assert!(received.is_empty());
}
