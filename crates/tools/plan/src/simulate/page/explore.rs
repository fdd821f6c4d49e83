//! Data for the script of the page, with which readers look at one stream, node or port.

use super::topology::mark;
use super::{StreamRow, Subject};
use crate::simulate::places;
use crate::simulate::stream_hops::{Along, Behind, Cause, Causes, ListenerHops, Sums, Worst};
use report::{Page, colour};
use serde::Serialize;
use sim::ethernet::traffic::StreamId;
use sim::measure::Latency;
use std::collections::{BTreeMap, BTreeSet};

/// Number of bars of a histogram.
const BARS: u64 = 40;

/// Number of streams from which fewer frames are listed, so that the page stays small.
const MANY: usize = 500;

/// Pairs of the number of a cause and nanoseconds.
type Pairs = Vec<(usize, u64)>;

/// A hop: wire, number of frames, longest and mean time.
type Hop = (usize, u64, u64, Pairs);

/// A hop of the worst frame: wire, times, and the frames in front, each with the index of its name,
/// number, class and time.
type WorstHop = (usize, Pairs, Vec<(usize, u64, u8, u64)>);

/// Number, time of sending, latency and hops of the worst frame.
type WorstFrame = (u64, u64, u64, Vec<WorstHop>);

/// Length of a bin; minimum, mean and maximum of each bin.
type Course = (u64, Vec<u64>, Vec<u64>, Vec<u64>);

/// A stream at a listener: name, hops, worst frame, histogram (least, width, counts), latency along
/// time.
type Row = (String, Vec<Hop>, Option<WorstFrame>, Vec<u64>, Course);

#[derive(Serialize)]
struct Data<'a> {
    causes: Vec<String>,
    colours: Vec<&'static str>,
    /// By wire; empty for wires that no stream uses.
    ports: Vec<String>,
    /// The nodes at both ends of each cable.
    cables: Vec<[String; 2]>,
    /// Names of the streams, then of what sends frames of no stream.
    names: Vec<&'a str>,
    rows: Vec<Row>,
}

/// Adds the script, and the data of the streams.
pub(super) fn script(page: &mut Page, subject: &Subject<'_>, is_map: bool) {
    let rows = subject.words.stream_rows(subject);
    if let Some(hops) = subject.hops.filter(|_| !rows.is_empty()) {
        let json = serde_json::to_string(&data(subject, &rows, |row| {
            hops.listener(row.stream.stream, row.listener)
        }));
        let json = json.unwrap_or_default().replace('<', "\\u003c");
        page.html(&format!(
            "<script type=\"application/json\" id=\"stream-data\">{json}</script>\n"
        ));
    } else if !is_map {
        return;
    }
    page.html(include_str!("explore.html"));
}

fn data<'a, 'h>(
    subject: &'a Subject<'_>,
    rows: &[StreamRow<'_>],
    hops: impl Fn(&StreamRow<'_>) -> Option<&'h ListenerHops>,
) -> Data<'a> {
    let network = &subject.config.network;
    let streams = subject.words.streams.iter();
    let numbers: BTreeMap<StreamId, usize> = streams.clone().map(|(_, id)| *id).zip(0..).collect();
    let used: BTreeSet<usize> = rows
        .iter()
        .filter_map(&hops)
        .flat_map(|own| own.hops.iter().map(|(wire, _)| *wire))
        .collect();
    let port = |wire: usize| match (used.contains(&wire), places::wire(network, wire)) {
        (true, Some(ends)) => (subject.words.named)(&places::between(ends)),
        _ => String::new(),
    };
    let listed = if rows.len() > MANY { 6 } else { usize::MAX };
    let row = |row: &StreamRow<'_>| {
        let own = hops(row).filter(|own| own.all.count > 0);
        (
            row.name.clone(),
            own.map_or_else(Vec::new, |own| own.hops.iter().map(hop).collect()),
            own.and_then(|own| own.worst.as_ref()).map(|frame| worst(frame, &numbers, listed)),
            histogram(&row.own.latency),
            own.map_or_else(Course::default, |own| course(&own.along)),
        )
    };
    Data {
        causes: Cause::ALL.iter().map(|cause| cause.name().replace('_', " ")).collect(),
        colours: (0..Cause::COUNT).map(colour).collect(),
        ports: (0..2 * network.cables.len()).map(port).collect(),
        cables: network
            .cables
            .iter()
            .map(|one| [one.a, one.b].map(|end| mark(end.node())))
            .collect(),
        names: streams.map(|(name, _)| name.as_str()).chain(Behind::SENDERS).collect(),
        rows: rows.iter().map(row).collect(),
    }
}

fn pairs(ns: [u64; Cause::COUNT]) -> Pairs {
    ns.into_iter().enumerate().filter(|(_, ns)| *ns > 0).collect()
}

fn hop((wire, sums): &(usize, Sums)) -> Hop {
    (*wire, sums.count, sums.longest / 1000, pairs(sums.mean_ns()))
}

fn worst(worst: &Worst, numbers: &BTreeMap<StreamId, usize>, listed: usize) -> WorstFrame {
    let behind = |frame: &Behind| {
        let id = StreamId::of_frame(frame.frame);
        let known = id.and_then(|id| Some((*numbers.get(&id)?, frame.frame - id.first_frame())));
        let (stream, number) = known.unwrap_or((numbers.len() + frame.sender(), 0));
        (stream, number, frame.class, frame.ps / 1000)
    };
    let ns = |causes: &Causes| pairs(crate::run::in_ns(causes.0.map(u128::from), 1));
    let hops = worst.hops.iter();
    let hops = hops.map(|hop| {
        let left_out = hop.behind.len().saturating_sub(listed);
        (hop.wire, ns(&hop.causes), hop.behind[left_out..].iter().map(behind).collect())
    });
    (worst.number, worst.sent.as_ns(), worst.latency / 1000, hops.collect())
}

/// Returns the least latency, the width of a bar, and the number of frames in each bar.
fn histogram(latency: &Latency) -> Vec<u64> {
    let summary = latency.summary();
    let width = (summary.max_ns - summary.min_ns) / BARS + 1;
    let mut counts = vec![0; ((summary.max_ns - summary.min_ns) / width + 1) as usize];
    let last = counts.len() - 1;
    for (least, _, count) in latency.bins().used() {
        counts[((least.saturating_sub(summary.min_ns) / width) as usize).min(last)] += count;
    }
    [summary.min_ns, width].into_iter().chain(counts).collect()
}

fn course(along: &Along) -> Course {
    let bins = || along.bins.iter();
    (
        along.width / 1000,
        bins().map(|bin| bin.least / 1000).collect(),
        bins().map(|bin| bin.mean() / 1000).collect(),
        bins().map(|bin| bin.most / 1000).collect(),
    )
}
