//! The results as text.

use latency::{Figures, Finding, SegmentReport, Slots, Source};
use latency_linux::{Document, Setting};
use report::Align::{Left, Right};
use report::{Column, Table};
use std::collections::BTreeMap;

/// Formats the whole result.
pub fn text(document: &Document) -> String {
    let mut text = format!("{}\n", title(document));
    lines(document).iter().for_each(|line| text += &format!("{line}\n"));
    text += &format!("\n{}", segments(document).text());
    cautions(document).iter().for_each(|line| text += &format!("  {line}\n"));
    let (by, stable) = (&document.analysis.stable_by, &document.analysis.stable.reason);
    text += &format!("\nstable range, by {by}: {stable}\n");
    if !document.analysis.slots.is_empty() {
        text += &format!("\n{}", slots(document).text());
    }
    if !document.settings.is_empty() {
        text += &format!("\n{}", settings(document).text());
    }
    text + "\n" + &findings(document).join("\n") + "\n"
}

/// Returns the heading of a run.
pub fn title(document: &Document) -> String {
    let Document { end, label, address, run, ended, .. } = document;
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    let suffix = if ended == "done" { String::new() } else { format!(", {ended}") };
    match end.as_str() {
        "talk" => format!("{label}talked to {address}, run {run}{suffix}"),
        _ => format!("{label}listened on {address}, run {run}{suffix}"),
    }
}

/// Formats numbers of sent and received frames, and the relation of the clocks.
pub fn lines(document: &Document) -> Vec<String> {
    let Document { interval_ns, size_bytes, cycle_ns, window_ns, faults, .. } = document;
    let mut lines =
        vec![format!("a payload of {size_bytes} bytes every {}", micros(*interval_ns as i64))];
    if *cycle_ns > 0 {
        let (cycle, window) = (micros(*cycle_ns as i64), micros(*window_ns as i64));
        lines.push(format!("windows of {window} every {cycle}"));
    }
    if let Some(counts) = &document.counts {
        let verb = if document.end == "talk" { "came back" } else { "came" };
        let latency::Counts { sent, received, lost, duplicates, reordered, longest_loss } = counts;
        lines.push(format!(
            "sent {sent}, {verb} {received}: lost {lost} (at most {longest_loss} in a row), \
             duplicates {duplicates}, out of order {reordered}"
        ));
    }
    let counted = [
        (faults.strangers, format!("frames of strangers; the first: {}", faults.first_stranger)),
        (faults.refused, format!("frames that the kernel did not take: {}", faults.refusal)),
        (faults.unreachable, "frames found no listener, as the network answered (ICMP)".to_owned()),
        (faults.launch_dropped, "frames dropped for their launch time".to_owned()),
        (faults.overslept, "frames for which the talker woke after the next was due".to_owned()),
        (faults.without_stamp, "frames without the kernel's stamp of this end".to_owned()),
        (faults.late_stamps, "stamps came after the rows of their frames were written".to_owned()),
    ];
    let counted = counted.into_iter().filter(|(n, _)| *n > 0);
    lines.extend(counted.map(|(n, name)| format!("{n} {name}")));
    lines.extend(document.tags.iter().map(|tag| {
        let came = if document.end == "talk" { "came back" } else { "came" };
        format!("{} frames {came} with priority {} in VLAN {}", tag.n, tag.priority, tag.vlan)
    }));
    lines.push(clock(document));
    lines
}

fn clock(document: &Document) -> String {
    let clocks = &document.analysis.clock;
    let (source, points) = (clocks.error.source, clocks.error.series.len());
    let line = format!("clock error: {}", source.says());
    let [proven, possible] = [clocks.proven_ns, clocks.possible_ns.unwrap_or(0)];
    let [proven_us, possible_us] = [proven, possible].map(|ns| micros(ns as i64));
    match clocks.offset_ns {
        Some(_) if source == Source::Shared && proven == 0 => {
            format!("{line}; frames that came back agree ({points} points)")
        }
        Some(_) if source == Source::Shared => {
            format!("{line}, it was said, but frames that came back prove {proven_us} between them")
        }
        Some(offset) => format!(
            "{line}; the listener is ahead by {} (median of {points} points): {proven_us} apart at \
             least, {possible_us} at most",
            micros(offset)
        ),
        None => line,
    }
}

/// A segment, the range of the run, and its figures.
type Row = (String, &'static str, Figures);

/// Returns a table with two rows per segment: all frames, and frames of the stable range.
pub fn segments(document: &Document) -> Table {
    let both = |segment: &SegmentReport| {
        [
            (segment.segment.clone(), "whole", segment.whole),
            (String::new(), "stable", segment.stable),
        ]
    };
    let rows: Vec<Row> = document.analysis.segments.iter().flat_map(both).collect();
    let all = COLUMNS.len();
    let columns = if document.band.is_some() { &COLUMNS } else { &COLUMNS[..all - 1] };
    Table::from_rows(columns, &rows)
}

/// Columns of the figures, in us. The last column is the count in a band.
const COLUMNS: [Column<Row>; 14] = [
    ("us", Left, |row| row.0.clone()),
    ("range", Left, |row| row.1.to_owned()),
    ("n", Right, |row| row.2.n.to_string()),
    ("min", Right, |row| plain(row.2.min_ns)),
    ("mean", Right, |row| plain(row.2.mean_ns)),
    ("sigma", Right, |row| plain(row.2.sigma_ns as i64)),
    ("p50", Right, |row| plain(row.2.p50_ns)),
    ("p90", Right, |row| plain(row.2.p90_ns)),
    ("p99", Right, |row| plain(row.2.p99_ns)),
    ("p99.9", Right, |row| plain(row.2.p99_9_ns)),
    ("p99.99", Right, |row| plain(row.2.p99_99_ns)),
    ("max", Right, |row| plain(row.2.max_ns)),
    ("jitter", Right, |row| plain(row.2.jitter_ns as i64)),
    ("in band", Right, |row| share(row.2.in_band.unwrap_or(0), row.2.n)),
];

/// Returns warnings about figures.
pub fn cautions(document: &Document) -> Vec<String> {
    let line = |segment: &SegmentReport| {
        let within = match segment.within_clock_error {
            Some(n) if n > 0 => {
                format!("; {n} of {} are smaller than the clock error may be", segment.whole.n)
            }
            _ => String::new(),
        };
        let negative = match segment.whole.negative {
            0 => String::new(),
            n => format!("; {n} are below zero"),
        };
        match (segment.caution.as_str(), within.is_empty()) {
            ("", true) => None,
            ("", false) => Some(format!("{}: {}", segment.segment, &within[2..])),
            (caution, _) => Some(format!("{}: {caution}{within}{negative}", segment.segment)),
        }
    };
    document.analysis.segments.iter().filter_map(line).collect()
}

/// Returns a table of frames in and outside windows. The last column exists only if frames were due
/// outside.
pub fn slots(document: &Document) -> Table {
    let late = |slots: &Slots| {
        let late: Vec<String> = slots.late.iter().map(|(by, n)| format!("{by}: {n}")).collect();
        if late.is_empty() { "none".to_owned() } else { late.join(", ") }
    };
    let columns: [Column<Slots>; 7] = [
        ("slots by", Left, |slots| slots.stamp.clone()),
        ("n", Right, |slots| slots.n.to_string()),
        ("in their slot", Right, |slots| with_share(slots.in_slot, slots.n)),
        ("in any window", Right, |slots| with_share(slots.in_window, slots.n)),
        ("cycles late: frames", Left, late),
        ("early", Right, |slots| slots.early.to_string()),
        ("of those due outside: came outside", Right, |slots| {
            format!(
                "{}: {}",
                slots.outside_due,
                with_share(slots.outside_arrived, slots.outside_due)
            )
        }),
    ];
    let all = &document.analysis.slots;
    let has_outside = all.iter().any(|slots| slots.outside_due > 0);
    Table::from_rows(&columns[..if has_outside { 7 } else { 6 }], all)
}

fn with_share(part: u64, total: u64) -> String {
    format!("{part} ({})", share(part, total))
}

/// Returns a table of the requested settings of the machine.
pub fn settings(document: &Document) -> Table {
    let columns: [Column<Setting>; 4] = [
        ("setting", Left, |setting| setting.name.clone()),
        ("value", Left, |setting| setting.value.clone()),
        ("in force", Left, |setting| if setting.in_force { "yes" } else { "no" }.to_owned()),
        ("note", Left, |setting| setting.note.clone()),
    ];
    Table::from_rows(&columns, &document.settings)
}

/// Maximum number of shown findings of one kind; the document contains all.
const SHOWN: usize = 5;

/// Formats the findings as lines.
pub fn findings(document: &Document) -> Vec<String> {
    let all = &document.analysis.findings;
    if all.is_empty() {
        return vec!["no stalls, periodic spikes, slips or swings found".to_owned()];
    }
    let mut shown: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for finding in all {
        let n = shown.entry((finding.kind.name(), &finding.segment)).or_default();
        *n += 1;
        if *n <= SHOWN {
            lines.push(sentence(finding));
        }
    }
    let more = shown.into_iter().filter(|(_, n)| *n > SHOWN);
    lines
        .extend(more.map(|((kind, segment), n)| format!("{kind} ({segment}): {} more", n - SHOWN)));
    lines
}

fn sentence(finding: &Finding) -> String {
    let Finding { kind, segment, first, last, evidence, .. } = finding;
    let frames =
        if first == last { format!("frame {first}") } else { format!("frames {first} to {last}") };
    format!("{} ({segment}, {frames}): {evidence}", kind.name())
}

/// Formats a percentage with two decimals, rounded down.
pub fn share(part: u64, total: u64) -> String {
    let hundredths = (u128::from(part) * 10_000).checked_div(total.into()).unwrap_or(0);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

/// Formats nanoseconds as microseconds with three decimals.
pub fn plain(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", report::span::micros(ns.unsigned_abs()))
}

fn micros(ns: i64) -> String {
    format!("{} us", plain(ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_times_and_shares() {
        assert_eq!(plain(-1_500), "-1.500");
        assert_eq!(micros(40_000_001), "40000.001 us");
        assert_eq!([share(959, 1000), share(2, 3), share(0, 0)], ["95.90 %", "66.66 %", "0.00 %"]);
    }
}
