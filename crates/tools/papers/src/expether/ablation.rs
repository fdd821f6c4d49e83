//! Comparison of the aggregation policies, and of aggregation in the bridge in front of the
//! bottleneck.

use super::setup::{self, Interconnect, Setup};
use crate::{Runs, Section};
use report::Align::{Left, Right};
use report::{Column, Failure};
use schemars::JsonSchema;
use serde::Serialize;
use sim::world::Report;
use switch::aggregate::Policy;
use wire::Duration;

/// Rate of the bridge's ports in bits per second: less than one SSD.
const BOTTLENECK: u64 = 3_000_000_000;
/// Bytes of one sequential transfer.
const BYTES: usize = 2_048_000;

/// Name of each case, with the policy of the nodes and the network.
const CASES: [(&str, Policy, Interconnect); 4] = [
    ("per-tlp", Policy::PerTlp, Interconnect::Bridge),
    ("wait=1us", Policy::Wait(Duration::from_us(1)), Interconnect::Bridge),
    ("hop", Policy::PerTlp, Interconnect::Hop),
    ("adaptive", Policy::Adaptive, Interconnect::Bridge),
];

/// Figures of a policy. Throughputs are in 10^6 bytes per second.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Ablation {
    /// `per-tlp`, `wait=1us`, `hop` or `adaptive`.
    pub aggregation: &'static str,
    /// Sequential read through the bottleneck.
    pub read_mb_per_s: f64,
    /// Sequential write through the bottleneck.
    pub write_mb_per_s: f64,
    /// TLPs per frame after the bottleneck, reading.
    pub read_tlps_per_frame: f64,
    /// TLPs per frame after the bottleneck, writing.
    pub write_tlps_per_frame: f64,
    /// Mean latency of 4 KiB reads at 10 Gb/s.
    pub read_4k_us: f64,
    /// Mean latency of 4 KiB writes at 10 Gb/s.
    pub write_4k_us: f64,
}

/// Returns TLPs per frame on the last cable in the direction of the data. Acknowledgements that
/// travel alone are frames too.
fn behind(report: &Report, write: bool) -> f64 {
    let tlps = report.tunnels[usize::from(!write)].tlps;
    let to = if write { "to station 1" } else { "to station 0" };
    let cable = report.links.iter().find(|link| link.name.ends_with(to));
    let frames = cable.map_or(1, |link| link.load.packets.max(1));
    (tlps as f64 / frames as f64 * 100.0).round() / 100.0
}

/// Runs the policies.
///
/// # Errors
/// If a simulation fails.
pub fn simulate() -> Result<Vec<Ablation>, Failure> {
    let mut runs = Runs::default();
    for (name, policy, interconnect) in CASES {
        for write in [false, true] {
            let setup = Setup { limit: BOTTLENECK, interconnect, ..Setup::new(policy, 1) };
            runs.add(setup.name(name), setup.config(setup::transfer(write, BYTES)));
            let setup = Setup { interconnect, ..Setup::new(policy, 1) };
            runs.add(setup.name(name), setup.config(setup::small(write)));
        }
    }
    let reports = runs.run()?;
    let case =
        |((name, ..), reports): (&(&'static str, Policy, Interconnect), &[Report])| Ablation {
            aggregation: name,
            read_mb_per_s: setup::throughput(&reports[0]),
            write_mb_per_s: setup::throughput(&reports[2]),
            read_tlps_per_frame: behind(&reports[0], false),
            write_tlps_per_frame: behind(&reports[2], true),
            read_4k_us: setup::latency(&reports[1]),
            write_4k_us: setup::latency(&reports[3]),
        };
    Ok(CASES.iter().zip(reports.chunks(4)).map(case).collect())
}

/// Returns the figures as a table.
pub fn section(cases: &[Ablation]) -> Section {
    let columns: [Column<Ablation>; 7] = [
        ("aggregation", Left, |case| case.aggregation.to_owned()),
        ("read, MB/s", Right, |case| format!("{:.1}", case.read_mb_per_s)),
        ("TLPs a frame", Right, |case| format!("{:.2}", case.read_tlps_per_frame)),
        ("write, MB/s", Right, |case| format!("{:.1}", case.write_mb_per_s)),
        ("TLPs a frame", Right, |case| format!("{:.2}", case.write_tlps_per_frame)),
        ("4 KiB read, us", Right, |case| format!("{:.2}", case.read_4k_us)),
        ("4 KiB write, us", Right, |case| format!("{:.2}", case.write_4k_us)),
    ];
    Section::from_rows("The policies side by side, through a bridge", &columns, cases, &NOTES)
}

const NOTES: [&str; 2] = [
    "One SSD behind a bridge. Throughput where the bridge's ports let 3 Gb/s through, 4 KiB where \
     they let 10 Gb/s through. The nodes' congestion control knows the bottleneck's rate, but for \
     hop: there the nodes send a frame a TLP at 10 Gb/s, and the bridge merges what waits before its \
     port. TLPs a frame are counted behind the bottleneck, frames with acknowledgements alone \
     included.",
    "A bridge knows nothing of what is in the frames: each frame that it merges keeps the headers \
     behind its EtherType, and what is saved is Ethernet's own share. So hop gains less than \
     aggregation behind the congestion control, and needs another bridge. wait=1us pays for the \
     same frames with time, most where one TLP waits for the next: each DMA read of a write, its \
     completion, and every doorbell.",
];
