//! The three experiments at the rates that the NVMe/TSN paper announces: 1, 10, 25, 50 and 100
//! Gb/s.

use super::{Experiment, Topology, ns, us};
use crate::{Runs, Section};
use report::Align::{Left, Right};
use report::{Axis, Column, Failure, Plot, Scale};
use schemars::JsonSchema;
use serde::Serialize;
use sim::ethernet::Rate;
use wire::Duration;

pub(super) const RATES: [Rate; 5] = [Rate::G1, Rate::G10, Rate::G25, Rate::G50, Rate::G100];
pub(super) const TUNNELS: [Topology; 2] = [Topology::Tcp, Topology::Tsn];

/// A topology at a rate.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Speed {
    /// Rate of the network; `-` for direct.
    pub rate: String,
    /// `direct`, `tcp` or `tsn`.
    pub topology: &'static str,
    /// Mean of configuration reads.
    pub config_read_ns: u64,
    /// Half of the difference between the configuration reads of this topology and of the direct
    /// one.
    pub t_tunnel_ns: u64,
    /// Mean of 4 KiB reads.
    pub read_4k_us: f64,
    /// Mean of 4 KiB writes.
    pub write_4k_us: f64,
}

/// Simulates the three experiments at every rate.
///
/// # Errors
/// If a simulation fails.
pub fn simulate() -> Result<Vec<Speed>, Failure> {
    let mut runs = Runs::default();
    let mut cases = vec![(Topology::Direct, Rate::G1)];
    cases.extend(TUNNELS.into_iter().flat_map(|tunnel| RATES.map(|rate| (tunnel, rate))));
    for (topology, rate) in &cases {
        for experiment in Experiment::ALL {
            let name = format!("{experiment:?} {topology:?} {rate}");
            runs.add(name, topology.config(experiment.workload(), *rate));
        }
    }
    let reports = runs.run()?;
    let times = |at: usize| {
        let reports_of_case = &reports[3 * at..3 * at + 3];
        [0, 1, 2].map(|number| Experiment::ALL[number].mean(&reports_of_case[number]))
    };
    let [direct, ..] = times(0);
    let speed = |(at, (topology, rate)): (usize, &(Topology, Rate))| {
        let [config, read, write] = times(at);
        let rate = if *topology == Topology::Direct { "-" } else { rate.name() };
        Speed {
            rate: rate.to_owned(),
            topology: topology.name(),
            config_read_ns: ns(config),
            t_tunnel_ns: ns(Duration::from_ps((config - direct).as_ps() / 2)),
            read_4k_us: us(read),
            write_4k_us: us(write),
        }
    };
    Ok(cases.iter().enumerate().map(speed).collect())
}

/// Returns the results as a table and a plot.
pub fn section(speeds: &[Speed]) -> Section {
    let columns: [Column<Speed>; 6] = [
        ("", Left, |speed| speed.topology.to_owned()),
        ("Ethernet", Right, |speed| speed.rate.clone()),
        ("configuration read, ns", Right, |speed| speed.config_read_ns.to_string()),
        ("T_tunnel, ns", Right, |speed| speed.t_tunnel_ns.to_string()),
        ("4 KiB read, us", Right, |speed| format!("{:.2}", speed.read_4k_us)),
        ("4 KiB write, us", Right, |speed| format!("{:.2}", speed.write_4k_us)),
    ];
    let note = "Predicted, nothing published to compare with. Only the line rate differs: the \
                pipelines of the nodes stay those calibrated at 1 Gb/s, though faster cores have \
                shorter ones; PCIe stays Gen2. What remains at 100 Gb/s is pipelines, not bits.";
    let section =
        Section::from_rows("The same at 10, 25, 50 and 100 Gb/s", &columns, speeds, &[note]);
    Section { plots: vec![plot(speeds)], ..section }
}

fn plot(speeds: &[Speed]) -> Plot {
    let gigabits = |bits: f64| format!("{bits:.0}");
    let x = Axis::new("Ethernet, Gb/s", Scale::Log, gigabits, (1.0, 100.0));
    let mut y = Axis::times("latency", 0.0, 160_000.0);
    (y.scale, y.range) = (Scale::Linear, (0.0, 160_000.0));
    let mut plot = Plot::new("4 KiB reads and writes against the rate of the network", x, y);
    let rate = |speed: &Speed| speed.rate.trim_end_matches('G').parse().unwrap_or(1.0);
    let over_tcp = speeds.iter().filter(|speed| speed.topology == "tcp");
    plot.names = over_tcp.map(|speed| (rate(speed), gigabits(rate(speed)))).collect();
    type Value = fn(&Speed) -> f64;
    let series: [(&str, &str, Value); 4] = [
        ("read over TCP", "tcp", |speed| speed.read_4k_us),
        ("read over TSN", "tsn", |speed| speed.read_4k_us),
        ("write over TCP", "tcp", |speed| speed.write_4k_us),
        ("write over TSN", "tsn", |speed| speed.write_4k_us),
    ];
    for (name, topology, value) in series {
        let of_topology = speeds.iter().filter(|speed| speed.topology == topology);
        plot.line(name, of_topology.map(|speed| (rate(speed), value(speed) * 1e3)));
    }
    plot
}
