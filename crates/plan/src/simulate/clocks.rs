//! Clocks and the edges of gates: what documents have of them, and the tables of texts and pages.

use super::places;
use report::Align::{Left, Right};
use report::{Column, Table, time};
use serde::Serialize;
use sim::Config;
use sim::network::{ClockReport, EdgeReport, TimeConfig};
use sim::world::Report;
use wire::Instant;

/// A clock of a station or bridge.
#[derive(Clone, Debug, Serialize)]
pub struct Clock {
    /// Its name in the plan.
    pub name: String,
    /// Its grandmaster at the end.
    pub grandmaster: Option<String>,
    /// Its oscillator against true time at the end, parts per 10^9.
    pub drift_ppb: f64,
    /// When it first followed a grandmaster, or was one.
    pub synced_from_ns: Option<u64>,
    /// The largest offset since then.
    pub worst_ps: Option<u64>,
    /// When somebody, or its servo, set it: nanoseconds, and by how many picoseconds.
    pub steps: Vec<(u64, i64)>,
    /// Along time: nanoseconds, and how many picoseconds it is ahead.
    pub offsets: Vec<(u64, i64)>,
}

/// The gates of a port.
#[derive(Clone, Debug, Serialize)]
pub struct Edges {
    /// The port.
    pub port: String,
    /// Edges since its clock first followed a grandmaster.
    pub edges: u64,
    /// Median of their errors.
    pub error_p50_ns: u64,
    /// 99th percentile of their errors.
    pub error_p99_ns: u64,
    /// The edge that came first before its time, negative.
    pub earliest_ps: i64,
    /// The edge that came last behind its time.
    pub latest_ps: i64,
    /// What the line carries in the worst error.
    pub lost_bytes: u64,
}

/// Names of stations, then of bridges. `named` puts the plan's name for `station 0`.
pub(super) fn names(config: &Config, named: &dyn Fn(&str) -> String) -> Vec<String> {
    let stations = (0..config.network.stations.len()).map(|number| format!("station {number}"));
    let bridges = (0..config.network.bridges.len()).map(|number| format!("bridge {number}"));
    stations.chain(bridges).map(|name| named(&name)).collect()
}

/// Every clock, if clocks are simulated.
pub fn clocks(config: &Config, report: &Report, named: &dyn Fn(&str) -> String) -> Vec<Clock> {
    let Some(time) = &report.time_of_nodes else { return Vec::new() };
    let names = names(config, named);
    let known = |clock: &ClockReport| {
        let master = clock.grandmaster?;
        let place = (0..names.len()).find(|place| TimeConfig::identity(*place) == master)?;
        Some(names[place].clone())
    };
    let of = |(name, clock): (&String, &ClockReport)| {
        let from = clock.synced_from();
        let pair = |(at, ps): (Instant, i64)| (at.as_ns(), ps);
        Clock {
            name: name.clone(),
            grandmaster: known(clock),
            drift_ppb: clock.drift_ppt as f64 / 1e3,
            synced_from_ns: from.map(Instant::as_ns),
            worst_ps: from.map(|from| clock.largest_since(from)),
            steps: clock.steps.iter().copied().map(pair).collect(),
            offsets: clock.offsets.iter().map(|s| pair((s.at, s.offset_ps))).collect(),
        }
    };
    names.iter().zip(&time.clocks).map(of).collect()
}

/// The gates of every port, if clocks are simulated.
pub fn edges(config: &Config, report: &Report, named: &dyn Fn(&str) -> String) -> Vec<Edges> {
    let network = &config.network;
    let of = |(wire, edges): (&usize, &EdgeReport)| {
        let (place, _) = places::wire(network, *wire)?;
        Some(Edges {
            port: named(&places::way(network, place)),
            edges: edges.errors.count(),
            error_p50_ns: edges.errors.quantile_ns(0.5),
            error_p99_ns: edges.errors.quantile_ns(0.99),
            earliest_ps: edges.earliest_ps,
            latest_ps: edges.latest_ps,
            lost_bytes: edges.lost_bytes(network.port(place).rate.bits_per_second()),
        })
    };
    let all = report.time_of_nodes.iter().flat_map(|time| &time.edges);
    all.filter_map(of).collect()
}

/// A time in picoseconds that may be negative.
pub(super) fn signed(ps: i64) -> String {
    let size = time(ps.unsigned_abs() as f64 / 1e3);
    if ps < 0 { format!("-{size}") } else { size }
}

/// Clocks, one a row.
pub fn clock_table(clocks: &[Clock]) -> Table {
    const CLOCKS: [Column<Clock>; 7] = [
        ("clock", Left, |clock| clock.name.clone()),
        ("grandmaster", Left, |clock| clock.grandmaster.clone().unwrap_or_else(|| "none".into())),
        ("oscillator", Right, |clock| format!("{:+.3} ppm", clock.drift_ppb / 1e3)),
        ("synchronised from", Right, |clock| match clock.synced_from_ns {
            Some(ns) => time(ns as f64),
            None => "never".to_owned(),
        }),
        ("worst since then", Right, |clock| match clock.worst_ps {
            Some(ps) => time(ps as f64 / 1e3),
            None => String::new(),
        }),
        ("at the end", Right, |clock| signed(clock.offsets.last().map_or(0, |last| last.1))),
        ("set", Right, |clock| clock.steps.len().to_string()),
    ];
    Table::of(&CLOCKS, clocks)
}

/// Ports with gates, one a row.
pub fn edge_table(edges: &[Edges]) -> Table {
    const EDGES: [Column<Edges>; 7] = [
        ("edges of gates", Left, |edges| edges.port.clone()),
        ("count", Right, |edges| edges.edges.to_string()),
        ("error p50", Right, |edges| time(edges.error_p50_ns as f64)),
        ("p99", Right, |edges| time(edges.error_p99_ns as f64)),
        ("earliest", Right, |edges| signed(edges.earliest_ps)),
        ("latest", Right, |edges| signed(edges.latest_ps)),
        ("window lost", Right, |edges| format!("{} B", edges.lost_bytes)),
    ];
    Table::of(&EDGES, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_a_sign() {
        assert_eq!(signed(-1_500_000), "-1.5 µs");
    }
}
