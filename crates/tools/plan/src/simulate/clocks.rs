//! Clocks and edges of gates: their parts of JSON documents, and their tables in text and pages.

use super::places;
use report::Align::{Left, Right};
use report::{Column, Table, time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::Config;
use sim::network::{ClockReport, EdgeReport, TimeConfig};
use sim::world::Report;
use wire::Instant;

/// A clock. Offsets are relative to the clock of the best grandmaster with power.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Clock {
    /// Name of the station or bridge.
    pub name: String,
    /// Grandmaster of the clock at the end; null if there is none.
    pub grandmaster: Option<String>,
    /// Frequency error of the oscillator at the end, in parts per 10^9.
    pub drift_ppb: f64,
    /// Time at which the clock was first locked to the reference, or was the reference; null if
    /// never.
    pub synced_from_ns: Option<u64>,
    /// Times after `synced_from_ns` in which the clock was not locked: beginning and end in ns. The
    /// end is null if the clock was not locked at the end.
    pub unlocked_ns: Vec<(u64, Option<u64>)>,
    /// The largest offset since `synced_from_ns`; null if never locked.
    pub worst_ps: Option<u64>,
    /// Steps of the clock: time in ns, and size in picoseconds.
    pub steps: Vec<(u64, i64)>,
    /// Samples of the clock's offset: time in ns, and picoseconds that the clock was ahead.
    pub offsets: Vec<(u64, i64)>,
}

/// Errors of a port's gate edges: the difference between actual and scheduled time, after the
/// port's clock was first locked to the reference.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct GateEdges {
    /// Name of the port.
    pub port: String,
    /// Number of edges.
    pub edges: u64,
    /// Median of the errors, to three significant digits.
    pub error_p50_ns: u64,
    /// 99th percentile of the errors, to three significant digits.
    pub error_p99_ns: u64,
    /// Error of the earliest edge; negative if the edge was early.
    pub earliest_ps: i64,
    /// Error of the latest edge.
    pub latest_ps: i64,
    /// Bytes that the line carries in a time equal to the largest error.
    pub lost_bytes: u64,
}

/// Returns the names of stations, then of bridges. `named` returns the plan's name for `station 0`.
pub(super) fn names(config: &Config, named: &dyn Fn(&str) -> String) -> Vec<String> {
    let stations = (0..config.network.stations.len()).map(|number| format!("station {number}"));
    let bridges = (0..config.network.bridges.len()).map(|number| format!("bridge {number}"));
    stations.chain(bridges).map(|name| named(&name)).collect()
}

/// Returns every clock, if clocks are simulated.
pub fn clocks(config: &Config, report: &Report, named: &dyn Fn(&str) -> String) -> Vec<Clock> {
    let Some(time) = &report.time_of_nodes else { return Vec::new() };
    let names = names(config, named);
    let known = |clock: &ClockReport| {
        let master = clock.grandmaster?;
        let place = (0..names.len()).find(|place| TimeConfig::identity(*place) == master)?;
        Some(names[place].clone())
    };
    let row = |(name, clock): (&String, &ClockReport)| {
        let from = clock.synced_from();
        let pair = |(at, ps): (Instant, i64)| (at.as_ns(), ps);
        Clock {
            name: name.clone(),
            grandmaster: known(clock),
            drift_ppb: clock.drift_ppt as f64 / 1e3,
            synced_from_ns: from.map(Instant::as_ns),
            unlocked_ns: clock.unlocked().into_iter().map(in_ns).collect(),
            worst_ps: from.map(|from| clock.largest_since(from)),
            steps: clock.steps.iter().copied().map(pair).collect(),
            offsets: clock.offsets.iter().map(|s| pair((s.at, s.offset_ps))).collect(),
        }
    };
    names.iter().zip(&time.clocks).map(row).collect()
}

/// Returns the gates of every port, if clocks are simulated.
pub fn edges(config: &Config, report: &Report, named: &dyn Fn(&str) -> String) -> Vec<GateEdges> {
    let network = &config.network;
    let row = |(wire, edges): (&usize, &EdgeReport)| {
        let (place, to) = places::wire(network, *wire)?;
        Some(GateEdges {
            port: named(&places::between((place, to))),
            edges: edges.errors.count(),
            error_p50_ns: edges.errors.quantile_ns(0.5),
            error_p99_ns: edges.errors.quantile_ns(0.99),
            earliest_ps: edges.earliest_ps,
            latest_ps: edges.latest_ps,
            lost_bytes: edges.lost_bytes(network.port(place).rate.bits_per_second()),
        })
    };
    let all = report.time_of_nodes.iter().flat_map(|time| &time.edges);
    all.filter_map(row).collect()
}

fn in_ns((from, until): (Instant, Option<Instant>)) -> (u64, Option<u64>) {
    (from.as_ns(), until.map(Instant::as_ns))
}

/// Formats the times in which a clock was not locked.
fn unlocked(clock: &Clock) -> String {
    let (Some(_), [first, rest @ ..]) = (clock.synced_from_ns, &clock.unlocked_ns[..]) else {
        return String::new();
    };
    let last = rest.last().unwrap_or(first);
    let until = last.1.map_or("the end".to_owned(), |until| time(until as f64));
    let times = if rest.is_empty() { String::new() } else { format!("{} times, ", rest.len() + 1) };
    format!("{times}{} to {until}", time(first.0 as f64))
}

/// Formats a time in picoseconds that may be negative.
pub(super) fn signed(ps: i64) -> String {
    let size = time(ps.unsigned_abs() as f64 / 1e3);
    if ps < 0 { format!("-{size}") } else { size }
}

/// Returns a table with one row per clock.
pub fn clock_table(clocks: &[Clock]) -> Table {
    const CLOCKS: [Column<Clock>; 8] = [
        ("clock", Left, |clock| clock.name.clone()),
        ("grandmaster", Left, |clock| clock.grandmaster.clone().unwrap_or_else(|| "none".into())),
        ("oscillator", Right, |clock| format!("{:+.3} ppm", clock.drift_ppb / 1e3)),
        ("synchronised from", Right, |clock| match clock.synced_from_ns {
            Some(ns) => time(ns as f64),
            None => "never".to_owned(),
        }),
        ("not locked", Left, unlocked),
        ("worst since then", Right, |clock| match clock.worst_ps {
            Some(ps) => time(ps as f64 / 1e3),
            None => String::new(),
        }),
        ("at the end", Right, |clock| signed(clock.offsets.last().map_or(0, |last| last.1))),
        ("set", Right, |clock| clock.steps.len().to_string()),
    ];
    Table::from_rows(&CLOCKS, clocks)
}

/// Returns a table with one row per port with gates.
pub fn edge_table(edges: &[GateEdges]) -> Table {
    const EDGES: [Column<GateEdges>; 7] = [
        ("edges of gates", Left, |edges| edges.port.clone()),
        ("count", Right, |edges| edges.edges.to_string()),
        ("error p50", Right, |edges| time(edges.error_p50_ns as f64)),
        ("p99", Right, |edges| time(edges.error_p99_ns as f64)),
        ("earliest", Right, |edges| signed(edges.earliest_ps)),
        ("latest", Right, |edges| signed(edges.latest_ps)),
        ("window lost", Right, |edges| format!("{} B", edges.lost_bytes)),
    ];
    Table::from_rows(&EDGES, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_a_sign() {
        assert_eq!(signed(-1_500_000), "-1.5 us");
    }
}
