//! Elimination and policing of identified streams by nodes.

use report::Align::{Left, Right};
use report::{Column, Table};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::ethernet::streams::Counters;
use sim::world::Report;
use std::borrow::Cow;
use tsn::psfp::Reason;
use wire::Instant;

/// Replication and elimination of a stream at a node (IEEE 802.1CB-2017, 10.8 and 10.9).
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Elimination {
    /// Name of the stream. `NAME back` is the reverse direction of a stream with `both`.
    pub stream: String,
    /// Name of the station or bridge.
    pub node: String,
    /// Frames that the node numbered.
    pub numbered: u64,
    /// Copies that the node made.
    pub copies: u64,
    /// Whether the node has a recovery function, to which the counts below belong.
    pub eliminates: bool,
    /// Frames that passed.
    pub passed: u64,
    /// Frames that did not pass, `rogue` ones included.
    pub discarded: u64,
    /// Frames whose number was too far from the history.
    pub rogue: u64,
    /// Frames that passed but did not have the number after the previous frame's.
    pub out_of_order: u64,
    /// Sequence numbers that left the history although no frame with the number arrived.
    pub lost: u64,
    /// Numbers in `lost` that precede the first frame after the start or a reset. The standard
    /// counts them although no frame may have been sent.
    pub lost_before_first: u64,
    /// Frames without a number.
    pub tagless: u64,
    /// Expiries of the reset timer.
    pub resets: u64,
    /// Tests for latent errors that reported an error.
    pub latent_errors: u64,
}

/// The filter of a stream at a bridge (IEEE 802.1Q-2022, 12.31.2).
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Policing {
    /// Name of the stream.
    pub stream: String,
    /// Name of the bridge.
    pub node: String,
    /// Frames of the stream.
    pub matching: u64,
    /// Frames that passed the filter.
    pub passed: u64,
    /// Frames longer than the maximum SDU, and all frames of a stream that such a frame has
    /// blocked.
    pub not_passing_sdu: u64,
    /// Frames that the stream gate dropped.
    pub not_passing_gate: u64,
    /// Frames that the meter marked yellow.
    pub yellow: u64,
    /// Frames that the meter marked red.
    pub red: u64,
    /// Reason why the stream was blocked permanently: `too long`, `gate closed`, `octets of the
    /// gate` or `red`; null if it was not blocked.
    pub blocked: Option<Cow<'static, str>>,
    /// Time at which the stream was blocked; null if it was not blocked.
    pub blocked_at_ns: Option<u64>,
}

/// Returns both kinds of rows of a report; `streams` are the names of the streams, `named` is as in
/// [`PageLabels`](super::PageLabels).
pub fn rows(
    report: &Report,
    streams: &[String],
    named: &dyn Fn(&str) -> String,
) -> (Vec<Elimination>, Vec<Policing>) {
    let (mut eliminations, mut policings) = (Vec::new(), Vec::new());
    for handled in &report.handled {
        let Some(stream) = streams.get(handled.stream) else { continue };
        let node = named(&handled.place.to_string());
        let counters = handled.counters;
        if counters.numbered + counters.copies > 0 || counters.recovery.is_some() {
            eliminations.push(elimination(stream, &node, counters));
        }
        policings.extend(counters.filter.map(|filter| policing(stream, &node, filter)));
    }
    (eliminations, policings)
}

fn elimination(stream: &str, node: &str, counters: Counters) -> Elimination {
    let recovery = counters.recovery.unwrap_or_default();
    Elimination {
        stream: stream.to_owned(),
        node: node.to_owned(),
        numbered: counters.numbered,
        copies: counters.copies,
        eliminates: counters.recovery.is_some(),
        passed: recovery.passed,
        discarded: recovery.discarded,
        rogue: recovery.rogue,
        out_of_order: recovery.out_of_order,
        lost: recovery.lost,
        lost_before_first: recovery.lost_before_first,
        tagless: recovery.tagless,
        resets: recovery.resets,
        latent_errors: counters.latent_errors,
    }
}

fn policing(stream: &str, node: &str, filter: tsn::psfp::Counters) -> Policing {
    let blocked = filter.blocked;
    Policing {
        stream: stream.to_owned(),
        node: node.to_owned(),
        matching: filter.matching,
        passed: filter.matching - filter.dropped,
        not_passing_sdu: filter.not_passing_sdu,
        not_passing_gate: filter.not_passing,
        yellow: filter.yellow,
        red: filter.red,
        blocked: blocked.map(|(reason, _)| words(reason).into()),
        blocked_at_ns: blocked.map(|(_, at)| at.since(Instant::ZERO).as_ns()),
    }
}

fn words(reason: Reason) -> &'static str {
    match reason {
        Reason::Blocked => "blocked",
        Reason::Oversize => "too long",
        Reason::GateClosed => "gate closed",
        Reason::Octets => "octets of the gate",
        Reason::Yellow => "yellow",
        Reason::Red => "red",
    }
}

/// Returns a table of eliminations.
pub fn eliminations(rows: &[Elimination]) -> Table {
    let columns: [Column<Elimination>; 12] = [
        ("stream", Left, |row| row.stream.clone()),
        ("node", Left, |row| row.node.clone()),
        ("numbered", Right, |row| row.numbered.to_string()),
        ("copies made", Right, |row| row.copies.to_string()),
        ("passed", Right, |row| row.count(row.passed)),
        ("eliminated", Right, |row| row.count(row.discarded - row.rogue)),
        ("rogue", Right, |row| row.count(row.rogue)),
        ("out of order", Right, |row| row.count(row.out_of_order)),
        ("never seen", Right, |row| row.count(row.lost - row.lost_before_first)),
        ("tagless", Right, |row| row.count(row.tagless)),
        ("resets", Right, |row| row.count(row.resets)),
        ("latent errors", Right, |row| row.count(row.latent_errors)),
    ];
    Table::from_rows(&columns, rows)
}

impl Elimination {
    /// Formats a count of the recovery function; `–` without a recovery function.
    fn count(&self, count: u64) -> String {
        if self.eliminates { count.to_string() } else { "–".to_owned() }
    }
}

/// Returns a table of filters.
pub fn policings(rows: &[Policing]) -> Table {
    let columns: [Column<Policing>; 9] = [
        ("policed stream", Left, |row| row.stream.clone()),
        ("node", Left, |row| row.node.clone()),
        ("matching", Right, |row| row.matching.to_string()),
        ("passed", Right, |row| row.passed.to_string()),
        ("too long", Right, |row| row.not_passing_sdu.to_string()),
        ("gate closed", Right, |row| row.not_passing_gate.to_string()),
        ("yellow", Right, |row| row.yellow.to_string()),
        ("red", Right, |row| row.red.to_string()),
        ("blocked for good", Left, |row| match (&row.blocked, row.blocked_at_ns) {
            (Some(reason), Some(at)) => {
                format!("{reason} at {}", report::time(at as f64))
            }
            _ => "–".to_owned(),
        }),
    ];
    Table::from_rows(&columns, rows)
}
