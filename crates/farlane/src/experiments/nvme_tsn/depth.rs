//! The brief's claim that overlapping commands hide the extra latency
//! (section 4.4): time per command against queue depth.

use super::Topology;
use crate::experiments::{Failed, Grid, Runs, Section};
use crate::report::{Axis, Plot, Scale, Series};
use serde::Serialize;
use sim::ethernet::Rate;
use sim::workload::{Fio, Rw, Workload};
use sim::world::Report;

const DEPTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const RATES: [Rate; 2] = [Rate::G1, Rate::G10];
/// Commands of 4 KiB each.
const COMMANDS: u64 = 2048;

/// One depth on one network.
#[derive(Clone, Debug, Serialize)]
pub struct Depth {
    /// `randread` or `randwrite`.
    pub rw: &'static str,
    /// Rate of the network.
    pub rate: String,
    /// Commands in flight.
    pub iodepth: usize,
    /// Time of the run divided by its commands, directly attached.
    pub direct_ns_per_io: u64,
    /// The same over TCP.
    pub tcp_ns_per_io: u64,
    /// The same over TSN.
    pub tsn_ns_per_io: u64,
}

impl Depth {
    /// What the tunnel adds to a command.
    pub fn tunnel(&self) -> i64 {
        self.tcp_ns_per_io as i64 - self.direct_ns_per_io as i64
    }

    /// What TSN adds to that.
    pub fn tsn(&self) -> i64 {
        self.tsn_ns_per_io as i64 - self.tcp_ns_per_io as i64
    }
}

fn per_io(report: &Report) -> u64 {
    let host = &report.hosts[0];
    host.span.as_ns() / host.latency.count().max(1)
}

/// Sweeps the depth.
///
/// # Errors
/// If a simulation fails.
pub fn simulate() -> Result<Vec<Depth>, Failed> {
    let mut runs = Runs::default();
    let mut cases = Vec::new();
    for (rw, name) in [(Rw::RandRead, "randread"), (Rw::RandWrite, "randwrite")] {
        for iodepth in DEPTHS {
            let fio = Fio { size: 4096 * COMMANDS, ..Fio::new(rw, 4096, iodepth) };
            let mut add = |topology: Topology, rate| {
                let what = format!("{name} depth {iodepth} {topology:?} {rate}");
                runs.add(what, topology.config(Workload::Fio(fio.clone()), rate))
            };
            let direct = add(Topology::Direct, Rate::G1);
            for rate in RATES {
                let (tcp, tsn) = (add(Topology::Tcp, rate), add(Topology::Tsn, rate));
                cases.push((name, rate, iodepth, [direct, tcp, tsn]));
            }
        }
    }
    let reports = runs.run()?;
    let depth = |(rw, rate, iodepth, at): (_, Rate, _, [usize; 3])| {
        let [direct, tcp, tsn] = at.map(|at| per_io(&reports[at]));
        Depth {
            rw,
            rate: rate.name().into(),
            iodepth,
            direct_ns_per_io: direct,
            tcp_ns_per_io: tcp,
            tsn_ns_per_io: tsn,
        }
    };
    Ok(cases.into_iter().map(depth).collect())
}

fn us(ns: u64) -> String {
    format!("{:.2}", ns as f64 / 1e3)
}

fn signed(ns: i64) -> String {
    format!("{:+.2}", ns as f64 / 1e3 + 0.0)
}

/// As tables and plots.
pub fn section(depths: &[Depth]) -> Section {
    let mut section = Section {
        title: "Do overlapping commands hide the tunnel? Time per 4 KiB command against depth".into(),
        ..Section::default()
    };
    for rw in ["randread", "randwrite"] {
        for rate in RATES {
            let of: Vec<&Depth> =
                depths.iter().filter(|one| one.rw == rw && one.rate == rate.name()).collect();
            section.grids.push(grid(rw, rate, &of));
        }
        section.plots.push(plot(rw, depths));
    }
    section.notes = verdict(depths);
    section
}

fn grid(rw: &str, rate: Rate, depths: &[&Depth]) -> Grid {
    let title = format!("{rw}, {rate}b/s, us per command");
    let columns = ["depth", "direct", "TCP", "TSN", "tunnel adds", "TSN adds to TCP"];
    let mut grid = Grid::new(&title, &columns);
    for one in depths {
        grid.row(vec![
            one.iodepth.to_string(),
            us(one.direct_ns_per_io),
            us(one.tcp_ns_per_io),
            us(one.tsn_ns_per_io),
            signed(one.tunnel()),
            signed(one.tsn()),
        ]);
    }
    grid
}

/// What TSN and the tunnel add with one command, and with many.
fn verdict(depths: &[Depth]) -> Vec<String> {
    let find = |rw: &str, rate: Rate, depth: usize| {
        let of = |one: &&Depth| one.rw == rw && one.rate == rate.name() && one.iodepth == depth;
        depths.iter().find(of).expect("a depth of the sweep")
    };
    let mut notes = vec![
        "Per command is the time of the run divided by its commands: the inverse of IOPS.".to_owned(),
    ];
    for rate in RATES {
        let [r1, r32] = [1, 32].map(|depth| find("randread", rate, depth));
        let [w1, w32] = [1, 32].map(|depth| find("randwrite", rate, depth));
        notes.push(format!(
            "At {rate}b/s, from depth 1 to 32: the tunnel adds {} to {} us to a read, {} to {} us \
             to a write; TSN adds {} to {} us to the read over TCP, {} to {} us to the write.",
            signed(r1.tunnel()),
            signed(r32.tunnel()),
            signed(w1.tunnel()),
            signed(w32.tunnel()),
            signed(r1.tsn()),
            signed(r32.tsn()),
            signed(w1.tsn()),
            signed(w32.tsn()),
        ));
    }
    notes
}

fn plot(rw: &str, depths: &[Depth]) -> Plot {
    let x = Axis {
        label: "commands in flight".into(),
        scale: Scale::Log,
        format: |depth| format!("{depth:.0}"),
        range: (1.0, 64.0),
    };
    let of = |rate: Rate| depths.iter().filter(move |one| one.rw == rw && one.rate == rate.name());
    let most = of(Rate::G1).map(|one| one.tsn_ns_per_io).max().unwrap_or(1) as f64;
    let least = of(Rate::G1).map(|one| one.direct_ns_per_io).min().unwrap_or(1) as f64;
    let y = Axis::times("time per command", least * 0.8, most * 1.2);
    let mut plot = Plot::new(&format!("{rw}: time per command against queue depth"), x, y);
    let mut line = |name: String, rate: Rate, value: fn(&Depth) -> u64| {
        let points = of(rate).map(|one| (one.iodepth as f64, value(one) as f64)).collect();
        plot.series.push(Series { name, points });
    };
    line("direct".into(), Rate::G1, |one| one.direct_ns_per_io);
    for rate in RATES {
        line(format!("TCP, {rate}b/s"), rate, |one| one.tcp_ns_per_io);
        line(format!("TSN, {rate}b/s"), rate, |one| one.tsn_ns_per_io);
    }
    plot
}
