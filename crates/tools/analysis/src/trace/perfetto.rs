//! Writes commands as Chrome trace events, which Perfetto and `chrome://tracing` open: one track
//! per stage, one slice per command with its intervals inside, and counters of the queues.

use super::drive_timing::DriveTiming;
use super::path::{Leg, Stage};
use super::stats;
use crate::commands::intervals::{self, Segment};
use crate::commands::{Command, Ring, RingState};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// Maximum number of parallel tracks for overlapping slices; further slices share the last track.
const MOST_TRACKS: usize = 1024;

/// Rows in which no slices overlap.
#[derive(Debug, Default)]
struct Rows {
    /// For each row, the time from which it is free.
    free_at: Vec<i64>,
}

impl Rows {
    /// Returns a row that is free from `from` on, and occupies it until `to`.
    fn take(&mut self, from: i64, to: i64) -> usize {
        let row = match self.free_at.iter().position(|free| *free <= from) {
            Some(row) => row,
            None if self.free_at.len() < MOST_TRACKS => {
                self.free_at.push(0);
                self.free_at.len() - 1
            }
            None => MOST_TRACKS - 1,
        };
        self.free_at[row] = to.max(self.free_at[row]);
        row
    }
}

/// Process number of the stages; the numbers of drives follow.
const STAGES: u64 = 1;
const DRIVES: u64 = 100;
/// A track number is the number of the stage or queue times this value, plus the row.
const ROWS: u64 = 10_000;

/// Writer of a document of Chrome trace events.
pub struct Writer<W: Write> {
    out: W,
    first: bool,
    /// Processes and tracks whose names were written.
    named: BTreeSet<(u64, Option<u64>)>,
    /// Commands, kept until they are sorted by start.
    commands: Vec<(i64, Entry)>,
    /// The last value of each counter, by drive and name.
    counters: BTreeMap<(u64, String), i64>,
    /// The first error of writing a counter.
    fault: Option<io::Error>,
}

struct Entry {
    number: u64,
    command: Command,
    path: Vec<Leg>,
    timing: Option<DriveTiming>,
}

impl<W: Write> Writer<W> {
    /// Begins a document.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        let (named, commands) = (BTreeSet::new(), Vec::new());
        Ok(Self { out, first: true, named, commands, counters: BTreeMap::new(), fault: None })
    }

    /// Adds a command with its number, its path, and the drive's record of it.
    pub fn add(
        &mut self,
        number: u64,
        command: &Command,
        path: &[Leg],
        timing: Option<DriveTiming>,
    ) {
        let mut command = command.clone();
        command.data = None;
        let start = command.start.as_ns() as i64;
        self.commands.push((start, Entry { number, command, path: path.to_vec(), timing }));
    }

    /// Adds ring positions as counters. Errors are returned by `finish`.
    pub fn ring(&mut self, state: &RingState) {
        let number = |position: Option<u32>| position.map(i64::from);
        let counters = match state.ring {
            Ring::Submission { outstanding, tail, head, .. } => vec![
                ("depth", Some(outstanding as i64)),
                ("SQ tail", number(tail)),
                ("SQ head", number(head)),
            ],
            Ring::Completion { tail, head, phase, .. } => vec![
                ("CQ tail", number(tail)),
                ("CQ head", number(head)),
                ("CQ phase", Some(i64::from(phase))),
            ],
            Ring::Gone => vec![("depth", Some(0))],
        };
        let drive = DRIVES + u64::from(state.device.bits());
        for (name, value) in counters {
            let Some(value) = value else { continue };
            let name = format!("queue {} {name}", state.queue);
            let written = self.counter(drive, name, state.at.as_ns() as i64, value);
            self.fault = self.fault.take().or_else(|| written.err());
        }
    }

    fn counter(&mut self, process: u64, name: String, at: i64, value: i64) -> io::Result<()> {
        let event = json!({
            "ph": "C", "name": name, "pid": process, "ts": micros(at), "args": { "value": value },
        });
        if self.counters.insert((process, name), value) == Some(value) {
            return Ok(());
        }
        self.event(&event)
    }

    /// Writes all events and ends the document.
    ///
    /// # Errors
    /// Errors of the output.
    pub fn finish(mut self) -> io::Result<()> {
        self.fault.take().map_or(Ok(()), Err)?;
        let mut commands = std::mem::take(&mut self.commands);
        commands.sort_by_key(|(start, _)| *start);
        self.drives(&commands)?;
        self.stages(&commands)?;
        self.media(&commands)?;
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if std::mem::take(&mut self.first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut self.out, event)?;
        Ok(())
    }

    /// Writes the name of a process, or of one of its tracks, if it was not written before.
    fn name(&mut self, process: u64, track: Option<u64>, name: &str) -> io::Result<()> {
        if !self.named.insert((process, track)) {
            return Ok(());
        }
        let event_name = if track.is_some() { "thread_name" } else { "process_name" };
        self.event(&json!({
            "ph": "M", "name": event_name, "pid": process, "tid": track.unwrap_or(0),
            "args": { "name": name },
        }))
    }

    /// Writes one slice per command on the tracks of its queue, with its intervals inside.
    fn drives(&mut self, commands: &[(i64, Entry)]) -> io::Result<()> {
        let mut rows: BTreeMap<(wire::Bdf, u16), Rows> = BTreeMap::new();
        for (start, Entry { number, command, .. }) in commands {
            let intervals = intervals::split(command);
            let total: u64 = intervals.iter().map(|interval| interval.ns).sum();
            let queue = rows.entry((command.device, command.queue)).or_default();
            let row = queue.take(*start, start + total as i64);
            let process = DRIVES + u64::from(command.device.bits());
            let track = u64::from(command.queue) * ROWS + row as u64;
            self.name(process, None, &format!("drive {}", command.device))?;
            self.name(process, Some(track), &format!("queue {} row {row}", command.queue))?;
            let status = command.status.map(|status| status.code.to_string());
            let details = json!({
                "number": number, "cid": command.entry.cid, "nsid": command.entry.nsid,
                "slba": command.slba(), "bytes": command.transfer.bytes(), "status": status,
                "push": command.push_texts(),
            });
            let kind = stats::kind(command);
            self.event(&slice(&kind, process, track, *start, total, details))?;
            let mut at = *start;
            for Segment { name, ns } in intervals {
                self.event(&slice(name, process, track, at, ns, json!({})))?;
                at += ns as i64;
            }
        }
        Ok(())
    }

    /// Writes one slice per leg on the tracks of its stage.
    fn stages(&mut self, commands: &[(i64, Entry)]) -> io::Result<()> {
        let legs = |(_, entry): &(i64, Entry)| {
            let named = (entry.number, stats::kind(&entry.command));
            entry.path.iter().map(move |leg| (*leg, named.clone())).collect::<Vec<_>>()
        };
        let mut legs: Vec<(Leg, (u64, String))> = commands.iter().flat_map(legs).collect();
        legs.sort_by_key(|(leg, _)| leg.from_ns);
        let mut rows: BTreeMap<Stage, Rows> = BTreeMap::new();
        for (leg, (number, kind)) in legs {
            let row = rows.entry(leg.stage).or_default().take(leg.from_ns, leg.to_ns);
            let stage = Stage::ALL.iter().position(|stage| *stage == leg.stage).unwrap_or(0) as u64;
            let track = stage * ROWS + row as u64;
            self.name(STAGES, None, "stages, on the critical paths")?;
            self.name(STAGES, Some(track), &numbered(leg.stage.name(), row))?;
            let details = json!({ "number": number, "command": kind });
            let ns = leg.to_ns.abs_diff(leg.from_ns);
            let name = match leg.part {
                Some(part) => format!("{kind}: {part}, {}", leg.step),
                None => format!("{kind}: {}", leg.step),
            };
            self.event(&slice(&name, STAGES, track, leg.from_ns, ns, details))?;
        }
        Ok(())
    }

    /// Writes one slice per access to the media on tracks below the stages.
    fn media(&mut self, commands: &[(i64, Entry)]) -> io::Result<()> {
        let mut rows = Rows::default();
        for (_, Entry { number, command, timing, .. }) in commands {
            for access in timing.iter().flat_map(|timing| &timing.media) {
                let Some(to) = access.to_ns else { continue };
                let row = rows.take(access.from_ns, to);
                let track = Stage::ALL.len() as u64 * ROWS + row as u64;
                self.name(STAGES, Some(track), &numbered("media", row))?;
                let name = format!("{}: media {}", stats::kind(command), access.operation);
                let details = json!({ "number": number, "access": access });
                let ns = to.abs_diff(access.from_ns);
                self.event(&slice(&name, STAGES, track, access.from_ns, ns, details))?;
            }
        }
        Ok(())
    }
}

/// Returns `name` for the first row; further rows have a number.
fn numbered(name: &str, row: usize) -> String {
    if row == 0 { name.to_owned() } else { format!("{name} {row}") }
}

fn slice(name: &str, process: u64, track: u64, from: i64, ns: u64, details: Value) -> Value {
    json!({
        "ph": "X", "cat": "nvme", "name": name, "pid": process, "tid": track,
        "ts": micros(from), "dur": ns as f64 / 1000.0, "args": details,
    })
}

fn micros(ns: i64) -> f64 {
    ns as f64 / 1000.0
}
