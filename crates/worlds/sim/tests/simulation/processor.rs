//! Stations with a processor, as live nodes: costs of commands by hand, throughput, batches.

use crate::simulation::worlds::*;
use node::push::Mode;
use sim::network::{CableConfig, CableEnd, StationConfig};
use sim::pcie::{Generation, LinkConfig, PortLatency};
use sim::processor::ProcessorConfig;
use sim::transport::{TcpConfig, TransportConfig};
use sim::workload::CompletionMode;

const TX: u64 = 3_000;
const RX: u64 = 4_000;
const WAKE: u64 = 2_000;
const TLP: u64 = 500;
const PACKET: u64 = 60;
const FRAME: u64 = 100;
const MMIO: u64 = 70;
const SUBMIT: u64 = 900;
const COMPLETE: u64 = 800;
const INTERRUPT: u64 = 600;
const PROPAGATION: u64 = 50;
/// Links inside of the nodes and bits on the line, which the formulas leave out.
const NEGLIGIBLE: u64 = 600;

const fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

const COSTS: ProcessorConfig = ProcessorConfig {
    copy: 1_000,
    frame: ns(FRAME),
    wake: ns(WAKE),
    tlp: ns(TLP),
    packet: ns(PACKET),
};

/// Hosts whose drive is on the last station, at a bridge of their own.
fn live(workloads: &[Workload], push: Mode) -> Config {
    let station = StationConfig {
        tx_delay: ns(TX),
        rx_delay: ns(RX),
        processor: Some(COSTS),
        ..StationConfig::new(Rate::G100, Duration::ZERO, 1024)
    };
    let port = PortLatency { transmit: Duration::ZERO, receive: Duration::ZERO };
    let mut network = NetworkConfig::default();
    let mut hosts = Vec::new();
    for (number, workload) in workloads.iter().enumerate() {
        let stations = [2 * number, 2 * number + 1];
        network.stations.extend([station.clone(), station.clone()]);
        let [a, b] = stations.map(CableEnd::station);
        network.cables.push(CableConfig::new(a, b, ns(PROPAGATION)));
        let transport = TransportConfig::Tcp(TcpConfig { stations, priority: 0, burst: 32 << 10 });
        let drive = DriveConfig::new("RAM", Timing::NULL).as_in_farlane();
        let mut host = host(workload.clone(), vec![(transport, drive)]);
        host.root.push = push;
        (host.root.mmio, host.root.memory_read) = (ns(MMIO), Duration::ZERO);
        (host.root.max_payload, host.root.completion_size) = (512, 4096);
        host.software.completions = CompletionMode::Interrupt { latency: ns(INTERRUPT) };
        (host.software.submit, host.software.complete) = (ns(SUBMIT), ns(COMPLETE));
        (host.software.max_payload, host.software.max_read_request) = (512, 4096);
        let near = |link: LinkConfig| LinkConfig {
            generation: Generation::Gen5,
            width: 16,
            propagation: Duration::ZERO,
            downstream_port: port,
            upstream_port: port,
            ..link
        };
        host.link = near(host.link);
        let Attached::Switch(switch) = &mut host.attached else { panic!("a switch") };
        switch.max_payload = 512;
        switch.ports[0].link = near(switch.ports[0].link);
        hosts.push(host);
    }
    config(hosts, network)
}

fn drive_of(config: &mut Config) -> &mut DriveConfig {
    &mut switch(config).ports[0].drive
}

fn dd() -> Workload {
    Workload::Dd { write: false, bs: 4096, count: 50 }
}

/// The median latency of the first host's commands in ns.
#[track_caller]
fn median(config: &Config) -> u64 {
    twice(config).0.hosts[0].latency.quantile_ns(0.5)
}

/// The time from a frame with `bytes` payload bytes in one node to its turn in the other.
fn way(bytes: usize) -> u64 {
    let further = (bytes.div_ceil(1_460) as u64 - 1) * FRAME;
    TX + PROPAGATION + WAKE + RX + 2 * (further + bytes as u64)
}

#[track_caller]
fn is_near(found: u64, expected: u64) {
    assert!((expected..expected + NEGLIGIBLE).contains(&found), "{found}, by hand {expected}");
}

#[test]
fn configuration_read_takes_the_sum_of_its_costs() {
    let reads = Workload::ConfigReads { count: 20, gap: Duration::from_us(100) };
    let [request, answer] = [12, 12 + 4].map(|tlp| wire::frame::HEADER + tlp);
    let host = MMIO + TLP + TLP + MMIO;
    is_near(median(&live(&[reads], Mode::All)), host + way(request) + 2 * TLP + way(answer));
}

#[test]
fn pushed_read_takes_the_sum_of_its_costs() {
    let found = median(&live(&[dd()], Mode::All));
    // Head doorbell of the previous command; message and doorbell.
    let submission = MMIO + SUBMIT + TLP + MMIO + 2 * TLP;
    let down = wire::frame::HEADER + (12 + 4) + (16 + 64 + 8) + (12 + 4);
    // Message, two doorbells, fetch and its answer, data, completion entry, interrupt.
    let device = 3 * TLP + 2 * TLP + (TLP + 7 * PACKET) + 2 * TLP;
    let up = wire::frame::HEADER + 8 * (12 + 512) + (12 + 16) + (12 + 4);
    let completion = (TLP + 7 * PACKET) + 2 * TLP + INTERRUPT + COMPLETE;
    is_near(found, submission + way(down) + device + way(up) + completion);
}

/// The firmware on the device's processor limits the rate. What arrives while the processor is busy
/// is handled together, so that turns cost little.
#[test]
fn the_busier_processor_limits_the_throughput() {
    let work = Fio { size: 4 << 20, ..fio(Rw::RandRead, 4096, 32) };
    let mut plan = live(&[Workload::Fio(work.clone())], Mode::All);
    drive_of(&mut plan).timing.firmware_read = ns(20_000);
    let rate = |plan: &Config| {
        let report = twice(plan).0;
        let host = &report.hosts[0];
        host.commands as f64 * 1e9 / host.span.as_ns() as f64
    };
    // Firmware, data, completion entry, interrupt; copies of data and headers.
    let bytes = 8 * (12 + 512) + (12 + 16) + (12 + 4);
    let least = 20_000 + (TLP + 7 * PACKET) + 2 * TLP + bytes;
    let (found, most) = (rate(&plan), 1e9 / least as f64);
    assert!(found <= most && found >= 0.9 * most, "{found} of {most}");
    // Two hosts with device nodes of their own share no processor.
    let two = live(&[Workload::Fio(work.clone()), Workload::Fio(work)], Mode::All);
    let mut one = two.clone();
    one.hosts.truncate(1);
    assert_eq!(rate(&two), rate(&one));
    for push in [Mode::Off, Mode::All] {
        for (rw, bs) in [(Rw::RandWrite, 4096), (Rw::RandRw, 128 << 10)] {
            let work = Fio { numjobs: 2, ..fio(rw, bs, 8) };
            let work = Fio { size: 1 << 20, ..work };
            twice(&live(&[Workload::Fio(work)], push));
        }
    }
}
