//! The NVMe/TSN paper's claim that overlapping commands hide the extra latency
//! (section 4.4): time per command against queue depth.

use super::{Topology, drive};
use crate::{Runs, Section};
use report::Align::{Left, Right};
use report::{Axis, Column, Failure, Plot, Scale, Table};
use schemars::JsonSchema;
use serde::Serialize;
use sim::ethernet::Rate;
use sim::workload::{Fio, Rw, Workload};
use sim::world::Report;

const DEPTHS: [usize; 6] = [1, 2, 4, 8, 16, 32];
const RATES: [Rate; 2] = [Rate::G1, Rate::G10];
/// Commands of 4 KiB each.
const COMMANDS: u64 = 256;
/// Kind of I/O, its name, and DMA reads in flight: the NVMe/TSN paper's drive, and a drive with
/// more reads in flight.
const KINDS: [(Rw, &str, usize); 3] = [
    (Rw::RandRead, "randread", 2),
    (Rw::RandWrite, "randwrite", 2),
    (Rw::RandWrite, "randwrite", 16),
];

/// A queue depth on a network.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Depth {
    /// `randread` or `randwrite`.
    pub rw: &'static str,
    /// DMA reads that the drive keeps in flight.
    pub reads_in_flight: usize,
    /// Rate of the network.
    pub rate: String,
    /// Commands in flight.
    pub iodepth: usize,
    /// Time of the run divided by the number of commands, directly attached.
    pub direct_ns_per_io: u64,
    /// Time of the run divided by the number of commands, over TCP.
    pub tcp_ns_per_io: u64,
    /// Time of the run divided by the number of commands, over TSN.
    pub tsn_ns_per_io: u64,
}

impl Depth {
    /// Returns the time that the tunnel adds to a command, in ns.
    pub fn tunnel(&self) -> i64 {
        self.tcp_ns_per_io as i64 - self.direct_ns_per_io as i64
    }

    /// Returns the time that TSN adds to the tunnel, in ns.
    pub fn tsn(&self) -> i64 {
        self.tsn_ns_per_io as i64 - self.tcp_ns_per_io as i64
    }
}

fn per_io(report: &Report) -> u64 {
    let host = &report.hosts[0];
    host.span.as_ns() / host.latency.count().max(1)
}

/// Simulates every depth.
///
/// # Errors
/// If a simulation fails.
pub fn simulate() -> Result<Vec<Depth>, Failure> {
    let mut runs = Runs::default();
    let mut cases = Vec::new();
    for (rw, name, reads_in_flight) in KINDS {
        for iodepth in DEPTHS {
            let fio = Fio { size: 4096 * COMMANDS, ..Fio::new(rw, 4096, iodepth) };
            let mut add = |topology: Topology, rate| {
                let run_name = format!("{name} depth {iodepth} {topology:?} {rate}");
                let mut config = topology.config(Workload::Fio(fio.clone()), rate);
                drive(&mut config).reads_in_flight = reads_in_flight;
                runs.add(run_name, config)
            };
            let direct = add(Topology::Direct, Rate::G1);
            for rate in RATES {
                let (tcp, tsn) = (add(Topology::Tcp, rate), add(Topology::Tsn, rate));
                cases.push((name, reads_in_flight, rate, iodepth, [direct, tcp, tsn]));
            }
        }
    }
    let reports = runs.run()?;
    let depth = |(rw, reads_in_flight, rate, iodepth, at): (_, _, Rate, _, [usize; 3])| {
        let [direct_ns_per_io, tcp_ns_per_io, tsn_ns_per_io] = at.map(|at| per_io(&reports[at]));
        let rate = rate.name().into();
        Depth { rw, reads_in_flight, rate, iodepth, direct_ns_per_io, tcp_ns_per_io, tsn_ns_per_io }
    };
    Ok(cases.into_iter().map(depth).collect())
}

fn us(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

fn signed(ns: i64) -> String {
    format!("{:+.2}", ns as f64 / 1e3 + 0.0)
}

/// Returns the results as tables and plots.
pub fn section(depths: &[Depth]) -> Section {
    let mut section = Section {
        title: "Do overlapping commands hide the tunnel? Time per 4 KiB command against depth"
            .into(),
        ..Section::default()
    };
    for (_, rw, reads) in KINDS {
        let selected: Vec<&Depth> =
            depths.iter().filter(|one| one.rw == rw && one.reads_in_flight == reads).collect();
        let title = match rw {
            "randread" => rw.to_owned(),
            _ => format!("{rw}, {reads} DMA reads in flight"),
        };
        for rate in RATES {
            let of_rate = selected.iter().copied().filter(|one| one.rate == rate.name());
            let title = format!("{title}, {rate}b/s, us per command");
            section.tables.push((title, Table::from_rows(&COLUMNS, of_rate)));
        }
        section.plots.push(plot(&title, &selected));
        section.notes.extend(RATES.map(|rate| verdict(&title, rate, &selected)));
    }
    let first = "Per command is the time of the run divided by its commands: the inverse of IOPS.";
    section.notes.insert(0, first.into());
    section.notes.push(LIMITS.into());
    section
}

const LIMITS: &str = "What overlaps is hidden; what is the bottleneck is not. At 1 Gb/s a 4 KiB block \
    alone takes 36 us on the wire, so the tunnel cannot be hidden, but TSN's share of a read is. \
    At 10 Gb/s reads hide the tunnel. Writes hide it only if the drive fetches enough data at \
    once: with two DMA reads in flight for all commands, round trips are the bottleneck at every \
    depth.";

const COLUMNS: [Column<Depth>; 6] = [
    ("depth", Left, |one| one.iodepth.to_string()),
    ("direct", Right, |one| us(one.direct_ns_per_io)),
    ("TCP", Right, |one| us(one.tcp_ns_per_io)),
    ("TSN", Right, |one| us(one.tsn_ns_per_io)),
    ("tunnel adds", Right, |one| signed(one.tunnel())),
    ("TSN adds to TCP", Right, |one| signed(one.tsn())),
];

/// Describes the time that tunnel and TSN add with one command in flight, and with many.
fn verdict(title: &str, rate: Rate, depths: &[&Depth]) -> String {
    let mut with = depths.iter().filter(|one| one.rate == rate.name());
    let (Some(one), Some(many)) = (with.next(), with.next_back()) else { return String::new() };
    let (least, most) = (one.iodepth, many.iodepth);
    let [tunnel, tunnels] = [one, many].map(|depth| signed(depth.tunnel()));
    let [tsn, tsns] = [one, many].map(|depth| signed(depth.tsn()));
    format!(
        "{title}, {rate}b/s, depth {least} to {most}: the tunnel adds {tunnel} to {tunnels} us, \
         TSN {tsn} to {tsns} us to that."
    )
}

fn plot(title: &str, depths: &[&Depth]) -> Plot {
    let range = (1.0, 32.0);
    let x = Axis::new("commands in flight", Scale::Log, |depth| format!("{depth:.0}"), range);
    let with = |rate: Rate| depths.iter().filter(move |one| one.rate == rate.name());
    let most = with(Rate::G1).map(|one| one.tsn_ns_per_io).max().unwrap_or(1) as f64;
    let least = with(Rate::G1).map(|one| one.direct_ns_per_io).min().unwrap_or(1) as f64;
    let y = Axis::times("time per command", least * 0.8, most * 1.2);
    let mut plot = Plot::new(&format!("{title}: time per command against queue depth"), x, y);
    plot.names = with(Rate::G1).map(|one| (one.iodepth as f64, one.iodepth.to_string())).collect();
    let mut line = |name: String, rate: Rate, value: fn(&Depth) -> u64| {
        plot.line(&name, with(rate).map(|one| (one.iodepth as f64, value(one) as f64)));
    };
    line("direct".into(), Rate::G1, |one| one.direct_ns_per_io);
    for rate in RATES {
        line(format!("TCP, {rate}b/s"), rate, |one| one.tcp_ns_per_io);
        line(format!("TSN, {rate}b/s"), rate, |one| one.tsn_ns_per_io);
    }
    plot
}
