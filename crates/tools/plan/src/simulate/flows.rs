//! Results of flows over TCP.

use crate::overload::megabits;
use report::Align::{Left, Right};
use report::{Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::world::Report;

/// A flow of `[flows.NAME]`, from its start.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Flow {
    /// Name of the flow.
    pub name: String,
    /// Bytes that the application of the receiver received.
    pub delivered_bytes: u64,
    /// Time to the last of these bytes.
    pub span_ns: u64,
    /// Goodput: `delivered_bytes` per second of `span_ns`.
    pub bytes_per_s: u64,
    /// Segments that the sender sent again.
    pub retransmitted: u64,
    /// Length of the intervals of `interval_bytes`.
    pub interval_ns: u64,
    /// Bytes received in each interval.
    pub interval_bytes: Vec<u64>,
}

/// Returns the results of all flows. `named` replaces `flow 0` by a name.
pub fn rows(report: &Report, named: &dyn Fn(&str) -> String) -> Vec<Flow> {
    let flow = |(number, flow): (usize, &sim::network::BulkReport)| Flow {
        name: named(&format!("flow {number}")),
        delivered_bytes: flow.delivered,
        span_ns: flow.span.as_ns(),
        bytes_per_s: per_second(flow.delivered, flow.span.as_ns()),
        retransmitted: flow.retransmitted,
        interval_ns: flow.interval.as_ns(),
        interval_bytes: flow.progress.clone(),
    };
    report.bulk.iter().enumerate().map(flow).collect()
}

fn per_second(bytes: u64, ns: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(ns.max(1))) as u64
}

impl Flow {
    /// Returns the ends of the intervals in seconds, and the goodput in each in Mb/s.
    pub fn progress(&self) -> impl Iterator<Item = (f64, f64)> {
        let point = |(at, bytes): (u64, &u64)| {
            let end = (self.interval_ns * at) as f64 / 1e9;
            (end, per_second(*bytes, self.interval_ns) as f64 * 8.0 / 1e6)
        };
        (1..).zip(&self.interval_bytes).map(point)
    }
}

/// Returns a table of flows.
pub fn table(rows: &[Flow]) -> Table {
    let columns: [Column<Flow>; 5] = [
        ("flow over TCP", Left, |row| row.name.clone()),
        ("delivered", Right, |row| format!("{} B", row.delivered_bytes)),
        ("goodput", Right, |row| megabits(row.bytes_per_s * 8)),
        ("segments sent again", Right, |row| row.retransmitted.to_string()),
        ("last byte after", Right, |row| report::time(row.span_ns as f64)),
    ];
    Table::from_rows(&columns, rows)
}
