//! Anomalies in a trace, and their places.

mod refusals;
mod written;

use super::drive::StateChange;
use super::run::{Finding, Run};
use crate::commands::{AnalyserCounters, Command, Event, HostRequestKind};
use refusals::{Refusals, Settled};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use wire::nvme::opcode::admin::ASYNC_EVENT_REQUEST;
use wire::tlp::Status;
use wire::trace::{ControllerState, LinkState, Tap};
use written::Written;

/// Maximum number of stored places per kind.
const PLACES: usize = 5;

/// One kind of anomaly.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Anomaly {
    /// Number of occurrences.
    pub count: u64,
    /// The first five places: time in ns, number of the current packet, description.
    pub places: Vec<(u64, u64, String)>,
}

/// All anomalies by kind.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Anomalies {
    /// Anomalies that need an explanation, in the whole trace, by name. Names are words, such as
    /// `link down`, `command failed`, `command without a completion entry`, `records missing in the
    /// trace`, `request without a completion (timeout)`, `data transferred once more (retry)`,
    /// `payload differs between two nodes`, `read returned other data than was written`, `orphan: a
    /// memory request that nothing explains`.
    #[serde(rename = "troubles")]
    pub unexplained: BTreeMap<&'static str, Anomaly>,
    /// Anomalies that are normal in every run, in the whole trace, by name.
    pub notes: BTreeMap<&'static str, Anomaly>,
    #[serde(skip)]
    before: AnalyserCounters,
    /// Refusals whose kind depends on later commands.
    #[serde(skip)]
    refusals: Refusals,
    /// Known contents of blocks.
    #[serde(skip)]
    written: Written,
    /// TLPs whose payload differs at another node, by number.
    #[serde(skip)]
    differing: BTreeMap<u64, Differing>,
    /// Time and number of the current packet.
    #[serde(skip)]
    last: (u64, u64),
    /// Type of the current TLP.
    #[serde(skip)]
    tlp: &'static str,
    /// Doorbells and identifiers of commands whose refusal is normal.
    #[serde(skip)]
    refused: BTreeSet<(u64, u16)>,
    /// Links that are down.
    #[serde(skip)]
    down: BTreeSet<Tap>,
    /// Whether the trace was cut off: open commands ended only because of the cut.
    #[serde(skip)]
    cut: bool,
    /// Whether records are missing just before the current item.
    #[serde(skip)]
    missing: bool,
}

/// A TLP whose payload differs at two nodes.
#[derive(Clone, Debug)]
struct Differing {
    at: u64,
    /// Index of the other node in [`Run::nodes`].
    other: usize,
    tlp: &'static str,
    /// Role of the TLP, and its command.
    command: Option<String>,
}

/// Maximum number of stored TLPs.
const MOST_DIFFERING: usize = 1 << 16;

/// Maximum number of stored normal refusals.
const MOST_REFUSED: usize = 1 << 12;

type Count = fn(&AnalyserCounters) -> u64;

/// Counters of the analyser that count anomalies.
const WATCHED: [(&str, Count); 21] = [
    (ORPHAN, |c| c.orphans),
    ("unexpected completion", |c| c.unexpected_completions),
    ("completer abort (CA)", |c| c.completer_aborts),
    ("poisoned TLP", |c| c.poisoned),
    ("push that is not valid", |c| c.malformed_pushes),
    (UNANSWERED, |c| c.unanswered),
    ("tag used again before its completion", |c| c.reused_tags),
    (BAD_DOORBELL, |c| c.bad_doorbells),
    ("submission entry passed over", |c| c.skipped_entries),
    (UNFETCHED, |c| c.unfetched_entries),
    (UNRECORDED, |c| c.blank_entries),
    (UNKNOWN, |c| c.unknown_completions),
    ("completion entry acknowledged but never seen", |c| c.unseen_completions),
    (REUSED, |c| c.reused_ids),
    ("data transferred once more (retry)", |c| c.repeated_transfers),
    ("configuration retry (CRS)", |c| c.config_retries),
    ("pointers that are not followed (SGL segments)", |c| c.unfollowed_pointers),
    (FORGOTTEN, |c| c.dropped),
    ("unsupported request (UR)", |c| c.unsupported_requests),
    ("interrupt without a completion entry", |c| c.idle_interrupts),
    ("controller reset", |c| c.resets),
];

const NORMAL: [&str; 2] = ["interrupt without a completion entry", "controller reset"];
/// Counters of expected events that did not happen.
const OPEN: [&str; 2] = [UNANSWERED, UNFETCHED];
const UNANSWERED: &str = "request without a completion (timeout)";
const UNFETCHED: &str = "submission entry rung for and never fetched (timeout)";
const YOUNG: &str = "request that the end of the trace left without a completion";
const CUT: &str = "on its way when the recording was cut off";
const MISSING: &str = "on its way where records are missing";
const UNACKNOWLEDGED: &str = "completion entry whose head doorbell was never rung";
const ORPHAN: &str = "orphan: a memory request that nothing explains";
const BAD_DOORBELL: &str = "bad doorbell";
const UNKNOWN: &str = "completion entry of an unknown command";
const UNRECORDED: &str = "submission entry that was not recorded (cut)";
const REUSED: &str = "command identifier used twice";
const FORGOTTEN: &str = "forgotten by the analyser: too much at once";
/// Counters after which some commands may be unknown.
const BLIND: [&str; 6] = [UNKNOWN, UNRECORDED, REUSED, FORGOTTEN, ORPHAN, BAD_DOORBELL];
const FAILED: &str = "command failed";
const FAULT: &str = "planned fault";
const REFUSED: &str = "optional admin command refused, before the first I/O and not repeated";
const DIFFERS: &str = "payload differs between two nodes";
const OTHER_DATA: &str = "read returned other data than was written";
const UR: &str = "unsupported request (UR)";
const ABSENT: &str = "configuration read of an absent function (UR)";

impl Anomalies {
    /// Counts one finding of an analysis.
    pub fn observe(&mut self, found: &Finding<'_>) {
        match found {
            Finding::Tlp(number, _, tlp, at) => {
                self.last = (*at, *number);
                self.tlp = tlp.mnemonic();
                self.missing = false;
            }
            Finding::Differs { number, other } => {
                let (at, tlp) = (self.last.0, self.tlp);
                let differing = Differing { at, other: *other, tlp, command: None };
                if self.differing.len() < MOST_DIFFERING {
                    self.differing.insert(*number, differing);
                }
            }
            Finding::Gap(lost) => {
                self.written.gap();
                self.missing = true;
                let count = lost.map_or("an unknown number of records".to_owned(), |lost| {
                    format!("{lost} records")
                });
                self.add("records missing in the trace", 1, &count);
            }
            Finding::End { cut, young } => {
                self.cut = *cut && self.down.is_empty();
                if *young > 0 {
                    self.note(YOUNG, *young, "the end of the trace");
                }
            }
            Finding::Link(tap, LinkState::Connected, _) => {
                self.down.remove(tap);
            }
            Finding::Link(_, LinkState::Returned, _) => {}
            Finding::Link(tap, LinkState::Interrupted(why), _) => {
                self.add("link interrupted", 1, &format!("{tap}: {why}"));
            }
            Finding::Link(tap, LinkState::Down(why), at) => {
                self.last.0 = *at;
                self.down.insert(*tap);
                self.add("link down", 1, &format!("{tap}: {why}"));
            }
            Finding::Reset(tap, at) => {
                self.last.0 = *at;
                self.note("hot reset", 1, &tap.to_string());
            }
            Finding::Event(Event::Request(request)) => {
                let absent = request.status == Status::UnsupportedRequest
                    && request.kind == HostRequestKind::ConfigRead;
                if absent {
                    self.retract(request.target.map_or_else(String::new, |bdf| bdf.to_string()));
                }
            }
            Finding::Event(Event::Command(command)) => self.observe_command(command),
            Finding::Event(Event::Reset(device)) => {
                self.written.reset(*device);
                let normal = self.refusals.reset(*device);
                self.settle(Settled { normal, ..Settled::default() });
            }
            Finding::Event(Event::Ring(_)) => {}
        }
    }

    fn observe_command(&mut self, command: &Command) {
        let description = format!("queue {} command {}", command.queue, command.entry.cid);
        self.written.observe(command, self.last);
        self.name_differing(command, &description);
        let mut failed = None;
        match command.status {
            None if command.is_admin() && command.entry.opcode == ASYNC_EVENT_REQUEST => {
                self.note("Asynchronous Event Request that waits", 1, &description);
            }
            None => {
                let description = format!("{} {description}", command.name());
                self.open("command without a completion entry", 1, &description);
            }
            Some(status) if !status.is_success() => {
                let description = format!("{} {description}: {}", command.name(), status.code);
                failed = Some(description);
            }
            Some(_) => {}
        }
        let settled = self.refusals.observe(command, self.last, failed);
        self.settle(settled);
        if command.is_unacknowledged() {
            self.open(UNACKNOWLEDGED, 1, &format!("{} {description}", command.name()));
        }
    }

    fn settle(&mut self, Settled { normal, trouble }: Settled) {
        for refusal in trouble {
            put(&mut self.unexplained, refusal.last, FAILED, 1, &refusal.description);
        }
        for refusal in normal {
            if self.refused.len() < MOST_REFUSED {
                self.refused.insert((refusal.begun, refusal.cid));
            }
            put(&mut self.notes, refusal.last, REFUSED, 1, &refusal.description);
        }
    }

    fn name_differing(&mut self, command: &Command, description: &str) {
        if self.differing.is_empty() {
            return;
        }
        for step in &command.steps {
            if let Some(differing) = self.differing.get_mut(&step.number) {
                differing.command =
                    Some(format!("{} of {} {description}", step.kind, command.name()));
            }
        }
    }

    /// Counts expected events that did not happen. They are only a note if the events may not have
    /// been recorded.
    fn open(&mut self, name: &'static str, more: u64, description: &str) {
        match (self.cut, self.missing) {
            (true, _) => self.note(CUT, more, description),
            (_, true) => self.note(MISSING, more, description),
            _ => self.add(name, more, description),
        }
    }

    /// Compares the analyser's counters with the previous ones, after each TLP. Returns the names
    /// of new anomalies.
    pub fn count(&mut self, now: &AnalyserCounters, tlp: &str) -> Vec<&'static str> {
        let before = std::mem::replace(&mut self.before, *now);
        let mut fresh = Vec::new();
        for (name, counter) in WATCHED {
            let more = counter(now).saturating_sub(counter(&before));
            if more == 0 {
                continue;
            }
            if BLIND.contains(&name) {
                self.written.distrust();
            }
            if NORMAL.contains(&name) {
                self.note(name, more, tlp);
            } else if OPEN.contains(&name) {
                self.open(name, more, tlp);
            } else {
                self.add(name, more, tlp);
                fresh.push(name);
            }
        }
        fresh
    }

    /// Removes an unsupported request that was a probe of an absent function.
    fn retract(&mut self, target: String) {
        if let Some(anomaly) = self.unexplained.get_mut(UR) {
            anomaly.count -= 1;
            let last = self.last;
            anomaly.places.retain(|(at, number, _)| (*at, *number) != last);
            if anomaly.count == 0 {
                self.unexplained.remove(UR);
            }
            self.note(ABSENT, 1, &target);
        }
    }

    /// Ends the recording: decides the open cases, and counts the state changes that drives
    /// recorded.
    pub fn finish(&mut self, run: &Run) {
        let normal = self.refusals.finish();
        self.settle(Settled { normal, ..Settled::default() });
        for (last, description) in self.written.finish() {
            put(&mut self.unexplained, last, OTHER_DATA, 1, &description);
        }
        let name = |node: usize| run.nodes[node].file.path.display();
        for (number, differing) in std::mem::take(&mut self.differing) {
            let Differing { at, other, tlp, command } = differing;
            let description = command.map_or_else(String::new, |command| format!(", {command}"));
            let description = format!("{tlp}{description}: {} and {}", name(run.root), name(other));
            put(&mut self.unexplained, (at, number), DIFFERS, 1, &description);
        }
        self.observe_drives(run);
        for (node, at, tap, text) in run.faults() {
            self.last = (at.max(0) as u64, 0);
            self.add(FAULT, 1, &format!("{text} ({}, {tap})", name(node)));
        }
    }

    /// Returns whether the command was refused as in every start of a host. Complete only after
    /// [`finish`](Self::finish).
    pub fn is_normal_refusal(&self, command: &Command) -> bool {
        let doorbell = command.steps.first().map(|step| step.number);
        doorbell.is_some_and(|begun| self.refused.contains(&(begun, command.entry.cid)))
    }

    fn observe_drives(&mut self, run: &Run) {
        run.state_changes()
            .into_iter()
            .for_each(|(_, at, change)| self.observe_state_change(at, change));
    }

    fn observe_state_change(&mut self, at: i64, StateChange { state, open, .. }: StateChange) {
        self.last.0 = at.max(0) as u64;
        if state == ControllerState::Fatal {
            self.add("fatal status of a drive (CSTS.CFS)", 1, "the controller fetches no more");
        } else if state.is_reset() && open > 0 {
            self.add(
                "drive reset with commands on their way",
                1,
                &format!("{state}, {open} of them"),
            );
        } else if state.is_reset() {
            self.note("drive reset", 1, state.name());
        }
    }

    fn add(&mut self, name: &'static str, more: u64, description: &str) {
        put(&mut self.unexplained, self.last, name, more, description);
    }

    fn note(&mut self, name: &'static str, more: u64, description: &str) {
        put(&mut self.notes, self.last, name, more, description);
    }

    /// Returns the anomalies as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.before.up + self.before.down == 0 {
            out += "there are no TLPs\n";
        } else if self.unexplained.is_empty() {
            out += "nothing: every TLP is explained\n";
        }
        for (name, anomaly) in &self.unexplained {
            out += &format!("! {:>6}  {name}\n", anomaly.count);
            for (at, number, description) in &anomaly.places {
                let at = report::span::micros(*at);
                out += &format!("            at {at} us, packet {number}: {description}\n");
            }
            if anomaly.count > anomaly.places.len() as u64 {
                out += "            ...\n";
            }
        }
        for (name, note) in &self.notes {
            out += &format!("  {:>6}  {name} (normal)\n", note.count);
        }
        out
    }
}

fn put(
    all: &mut BTreeMap<&'static str, Anomaly>,
    (at, number): (u64, u64),
    name: &'static str,
    more: u64,
    description: &str,
) {
    let anomaly = all.entry(name).or_default();
    anomaly.count += more;
    // Some anomalies are decided later, so the places are not added in order of time.
    let index = anomaly.places.partition_point(|place| (place.0, place.1) <= (at, number));
    if index < PLACES {
        anomaly.places.insert(index, (at, number, description.to_owned()));
        anomaly.places.truncate(PLACES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resets_that_end_commands_and_fatal_status_stand_out() {
        let mut anomalies = Anomalies::default();
        for (at, state, open) in [
            (10, ControllerState::HotReset, 0),
            (20, ControllerState::Enabled, 0),
            (30, ControllerState::FunctionReset, 3),
            (40, ControllerState::Fatal, 0),
        ] {
            anomalies.observe_state_change(at, StateChange { at: 0, state, open });
        }
        let text = anomalies.text();
        assert!(text.contains("!      1  drive reset with commands on their way"), "{text}");
        assert!(text.contains("at 0.030 us, packet 0: function level reset, 3 of them"), "{text}");
        assert!(text.contains("!      1  fatal status of a drive (CSTS.CFS)"), "{text}");
        assert!(text.contains("1  drive reset (normal)"), "{text}");
        assert_eq!((anomalies.unexplained.len(), anomalies.notes.len()), (2, 1));
    }
}
