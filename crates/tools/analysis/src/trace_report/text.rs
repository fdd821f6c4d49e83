//! The text on stdout. Lines have at most 100 columns where names permit.

use super::{Report, Shown, View, queues};
use crate::commands::Command;
use crate::commands::intervals::{self, Segment};
use crate::commands::view::{self, Options};
use crate::trace::{Anomalies, Run, by_part, by_stage, listed};
use report::span::micros;
use std::io::{self, Write};
use wire::trace::NodeRole;

/// Writes the whole text.
pub fn text(report: &Report, view: View, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}", nodes(&report.run))?;
    let options = Options { fold: !view.unfold };
    if view.stats {
        heading(out, "Statistics, medians of intervals and stages below each type")?;
        write!(out, "{}", report.statistics.table())?;
        let push = report.run.push_totals(&report.counters);
        if push.is_some() {
            heading(out, "Push, of the whole trace")?;
            push.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        heading(out, "Queues, while a command was outstanding, weighted by time")?;
        write!(out, "{}", queues::table(&report.rings).text())?;
    } else if view.list {
        heading(out, &format!("Commands, {}", view.sort.order()))?;
        writeln!(out, "{HEAD}")?;
        report
            .shown
            .iter()
            .try_for_each(|shown| writeln!(out, "{}", line(shown, &report.anomalies)))?;
    } else {
        for shown in &report.shown {
            heading(out, &format!("NVMe transaction view of command {}", shown.number))?;
            write!(out, "{}", view::transaction(&shown.command, options))?;
            write!(out, "{}", in_drive(shown))?;
            write!(out, "{}", breakdown(shown, &report.anomalies))?;
        }
        if !report.shown.is_empty() {
            heading(out, "Link view")?;
            let commands: Vec<&Command> = report.shown.iter().map(|s| &s.command).collect();
            write!(out, "{}", view::link(&commands, options))?;
        }
    }
    write!(out, "{}", state_changes(&report.run))?;
    writeln!(out)?;
    if !view.stats && (report.shown.len() as u64) < report.selected {
        let more = report.selected - report.shown.len() as u64;
        writeln!(out, "{more} more of {} commands that fit; --limit shows more", report.selected)?;
    } else {
        writeln!(out, "{} of {} commands", report.selected, report.all)?;
    }
    if let Some(captured) = report.captured {
        writeln!(out, "{} TLPs in the capture, {} of them cut", captured.tlps, captured.cut)?;
    }
    heading(out, "What stands out")?;
    write!(out, "{}", report.anomalies.text())?;
    if report.unreadable > 0 {
        writeln!(out, "! {:>6}  TLPs that cannot be read", report.unreadable)?;
    }
    out.flush()
}

fn heading(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "\n{text}\n{}", "-".repeat(text.chars().count()))
}

fn nodes(run: &Run) -> String {
    let mut out = String::new();
    for (number, node) in run.nodes.iter().enumerate() {
        let (first, last) = node.index.span.unwrap_or_default();
        let span = micros(last - first);
        let port = if node.file.header.role == NodeRole::Host { "root port" } else { "function" };
        out += &format!(
            "{:<7} {}: {span}us, {} TLPs at the {port}, {} frames\n",
            node.file.header.role,
            node.file.path.display(),
            node.index.tlps(),
            node.index.frames().len(),
        );
        if let Some(parent) = &node.parent {
            let clock = &parent.clock;
            let drift = match clock.drift_ns_per_s.round() {
                0.0 => String::new(),
                gain => format!(", gaining {gain:+} ns/s"),
            };
            let bad =
                if clock.contradictory { ", CONTRADICTORY: some times are wrong" } else { "" };
            out += &format!(
                "        on {} of {}; clock {:+} ns against it, +/- {} ns, from {} frames{drift}{bad}\n",
                parent.tap,
                run.nodes[parent.node].file.header.role,
                clock.offset_ns,
                run.uncertainty_ns(number),
                clock.samples,
            );
        }
        out += &flaws(node);
    }
    out
}

fn flaws(node: &crate::trace::Node) -> String {
    flaws_of(node).iter().map(|text| format!("      ! {text}\n")).collect()
}

/// Returns the defects of a file.
pub(super) fn flaws_of(node: &crate::trace::Node) -> Vec<String> {
    let mut out = Vec::new();
    let mut flaw = |present: bool, text: String| out.extend(present.then_some(text));
    flaw(node.file.cut, "cut off in the middle: its node was killed".into());
    flaw(node.file.damaged > 0, format!("{} bytes are damaged", node.file.damaged));
    flaw(node.index.bad > 0, format!("{} records make no sense", node.index.bad));
    flaw(node.index.beyond > 0, format!("{} TLPs at its end are left out", node.index.beyond));
    let (gaps, lost) = (node.index.gaps, node.index.lost);
    flaw(gaps > 0, format!("records are missing in {gaps} places, {lost} of them counted"));
    out
}

const HEAD: &str = "       #      start us    total us  drive   queue:cid command          LBA       \
                    blocks  TLPs   bytes";

/// Formats a command as one line; `!` marks a problem.
fn line(shown: &Shown, anomalies: &Anomalies) -> String {
    let command = &shown.command;
    let total = command.duration_ns().map_or("-".into(), micros);
    let number = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let (mark, problem) = problem(command, anomalies);
    let pushed = command.answered_from_push();
    let pushed =
        if pushed.sum() > 0 { format!("from push: {}", pushed.names()) } else { "".into() };
    let notes = [pushed, problem].into_iter().filter(|note| !note.is_empty());
    let notes = notes.collect::<Vec<_>>().join("; ");
    let text = format!(
        "{mark}{:>7} {:>13} {total:>11}  {:<7} {:<9} {:<16} {:<9} {:>6} {:>5} {:>7} {notes}",
        shown.number,
        micros(command.start.as_ns()),
        command.device.to_string(),
        format!("{}:{}", command.queue, command.entry.cid),
        command.name(),
        number(command.slba()),
        number(command.blocks().map(u64::from)),
        command.traffic.tlps(),
        command.traffic.bytes(),
    );
    text.trim_end().to_owned()
}

/// Returns the problem of a command after `!`, or a normal refusal after a space.
fn problem(command: &Command, anomalies: &Anomalies) -> (char, String) {
    let mut all = Vec::new();
    match command.status {
        None => all.push("no completion".to_owned()),
        Some(status) if !status.is_success() => all.push(status.code.to_string()),
        Some(_) if !command.is_whole() => {
            all.push(format!("{} of {} bytes seen", command.moved, command.transfer.bytes()));
        }
        Some(_) => {}
    }
    if command.is_unacknowledged() {
        all.push("head doorbell never rung".to_owned());
    }
    let bad = |step: &&crate::commands::Step| step.status != wire::tlp::Status::Success;
    if let Some(step) = command.steps.iter().find(bad) {
        all.push(format!("{} {:?}", step.kind, step.status));
    }
    let text = all.join(", ");
    match all.len() {
        0 => (' ', text),
        1 if anomalies.is_normal_refusal(command) => (' ', text + " (normal)"),
        _ => ('!', text),
    }
}

/// Formats the times of a command in the drive, aligned with its TLPs.
fn in_drive(shown: &Shown) -> String {
    let Some(timing) = &shown.timing else { return String::new() };
    let start = shown.command.start.as_ns() as i64;
    let mut out = String::new();
    let mut line = |step: &str, at: i64, rest: &str| {
        let time = micros(at.saturating_sub(start).max(0) as u64);
        out += format!("  {step:<16}{time:>10}  in the drive  {rest}").trim_end();
        out.push('\n');
    };
    line("entry fetched", timing.fetched_ns, "");
    for access in &timing.media {
        let name = format!("media {}", access.operation);
        let place = format!("namespace {}, byte {:#x}", access.nsid, access.offset);
        line(&name, access.from_ns, &format!("{place}, {} bytes", access.bytes));
        if let Some(to) = access.to_ns {
            line("media done", to, if access.ok { "" } else { "FAILED" });
        }
    }
    if let Some(at) = timing.completed_ns {
        line("entry posted", at, "");
    }
    out
}

/// Maximum number of listed state changes.
const MOST_STATE_CHANGES: usize = 20;

/// Formats the recorded state changes of the controllers.
fn state_changes(run: &Run) -> String {
    let state_changes = run.state_changes();
    if state_changes.is_empty() {
        return String::new();
    }
    let mut out = "\nLife of the drives\n------------------\n".to_owned();
    for (node, at, change) in state_changes.iter().take(MOST_STATE_CHANGES) {
        let path = run.nodes[*node].file.path.display();
        let file = if run.nodes.len() > 2 { format!(", {path}") } else { String::new() };
        out += &format!("{:>16} us  {}{file}\n", micros((*at).max(0) as u64), change.state);
    }
    if state_changes.len() > MOST_STATE_CHANGES {
        out += &format!("{:>19}  {} more\n", "...", state_changes.len() - MOST_STATE_CHANGES);
    }
    out
}

fn breakdown(shown: &Shown, anomalies: &Anomalies) -> String {
    let intervals = intervals::split(&shown.command);
    let total: u64 = intervals.iter().map(|interval| interval.ns).sum();
    let share = |ns: u64| ns * 100 / total.max(1);
    let mut out = String::new();
    for Segment { name, ns } in &intervals {
        out += &format!("{:>14} us {:>3} %  {name}\n", micros(*ns), share(*ns));
    }
    let ended = if shown.command.end.is_some() { "" } else { ", no head doorbell" };
    out += &format!("{:>14} us 100 %  total{ended}\n", micros(total));
    let stages = by_stage(&shown.path);
    if !stages.is_empty() {
        out += &format!("  by stage, in us: {}\n", listed(&stages, " + "));
    }
    let parts = by_part(&shown.path);
    if !parts.is_empty() {
        out += &format!("  in the drive, in us: {}\n", listed(&parts, " + "));
    }
    let (mark, problem) = problem(&shown.command, anomalies);
    if !problem.is_empty() {
        out += &format!("{mark} {problem}\n");
    }
    out
}
