//! Wires with frame preemption, decoded from mPackets to TCP.

use crate::support::tshark::number;
use crate::support::{Tshark, folder};
use crate::wireshark::simulated::{READS, reads, run};
use sim::Config;
use sim::ethernet::port::{self, Preemption};
use sim::ethernet::traffic::Pattern;
use sim::ethernet::{Rate, bridge};
use sim::network::{BridgeConfig, CableConfig, CableEnd, TrafficConfig};
use sim::workload::Workload;
use tsn::gates::HoldAdvance;
use tsn::preemption::FragmentSize;
use tsn::preemption::verification::Config as Verify;
use wire::{Duration, Instant};

/// Returns a network with a host, a drive and a third station at a bridge. A stream of the third
/// station interrupts the data frames towards the host, up to three times per frame.
fn preempting() -> Config {
    let work = Workload::Dd { write: false, bs: 4096, count: READS };
    let mut config = Config::nvme_tsn_tsn(work, Rate::G1);
    let (express, fragment, advance) = (0x80, FragmentSize::default(), HoldAdvance::default());
    let preemption = Preemption { express, fragment, advance, verify: Verify::default() };
    let port = port::Config { preemption: Some(preemption), ..port::Config::new(Rate::G1) };
    let network = &mut config.network;
    network.stations.push(network.stations[0].clone());
    network.stations.iter_mut().for_each(|station| station.ports[0] = port.clone());
    let stream = TrafficConfig::new(0, 64, 7, Pattern::Periodic(Duration::from_us(4)));
    let stop = Some(Instant::from_ns(20_000_000));
    network.stations[2].traffic = vec![TrafficConfig { stop, ..stream }];
    network.bridges = vec![BridgeConfig {
        ports: vec![port; 3],
        mode: bridge::Mode::StoreAndForward,
        delay: Duration::from_ns(1_500),
        jitter: Duration::ZERO,
    }];
    let cable =
        |n| CableConfig::new(CableEnd::station(n), CableEnd::Bridge(0, n), Duration::from_ns(50));
    network.cables = (0..3).map(cable).collect();
    config
}

#[test]
fn fragments_are_put_together() {
    let folder = folder::kept("simulated-preemption");
    let capture = folder.join("wires.pcapng");
    run(&preempting(), &capture);
    let options = [
        "-2",
        "-o",
        "ip.check_checksum:TRUE",
        "-o",
        "tcp.check_checksum:TRUE",
        "-o",
        "tcp.analyze_sequence_numbers:FALSE",
    ];
    let fields =
        |filter: &str, fields: &[&str]| Tshark::ready().fields(&capture, &options, filter, fields);
    let all = fields("frame", &["frame.number"]);
    assert!(all.len() > 1_000);
    assert_eq!(fields("fpp", &["frame.number"]).len(), all.len(), "every packet is an mPacket");
    let wrong = "fpp.crc32_bad || fpp.mcrc32_bad || fpp.checksum.status == 0 || _ws.malformed || \
                 ip.checksum.status == 0 || tcp.checksum.status == 0";
    assert_eq!(fields(wrong, &["frame.number", "_ws.col.info"]), Vec::<Vec<Vec<String>>>::new());

    // Both ends of three cables send one verify and one respond mPacket.
    for smd in ["0x07", "0x19"] {
        assert_eq!(fields(&format!("fpp.preamble.smd == {smd}"), &["frame.number"]).len(), 6);
    }
    let towards_host = "frame.interface_name == \"bridge 0 port 0 to station 0\"";
    let whole = fields(&format!("{towards_host} && fpp.fragment.count"), &["fpp.fragment.count"]);
    let fragments: Vec<u64> = whole.iter().map(|row| number(&row[0][0])).collect();
    assert!(fragments.len() > 30, "{} frames in fragments", fragments.len());
    assert!(fragments.iter().any(|count| *count > 2), "{fragments:?}");
    let inside = fields("fpp.fragment.count", &["vlan.etype", "tcp.checksum.status"]);
    assert!(inside.iter().all(|row| row[0] == ["0x0800"] && row[1] == ["1"]), "tagged TCP");
    // The frames of the stream have the EtherType for experiments, and pass two wires.
    assert!(!fields("fpp && vlan.priority == 7", &["frame.number"]).is_empty());
    // All frames pass two wires. The entries that the drive fetches begin on the host's wire.
    let from_host = "frame.interface_name == \"station 0 to bridge 0 port 0\"";
    let entries = format!("{from_host} && nvme_pcie.sqe.sqid == 1");
    assert_eq!(reads(&fields(&entries, &["nvme_pcie.sqe.opcode"])), READS);
}
