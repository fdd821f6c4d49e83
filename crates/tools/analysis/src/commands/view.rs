//! Commands as text, as a protocol analyser shows them: in logical order and in link order. Lines
//! have at most 100 columns.

use super::command::{Command, Transfer};
use super::step::{Direction, Step, StepKind};
use report::span::micros;
use std::fmt::Write;
use wire::Instant;
use wire::tlp::Status;

/// Options of the views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether to print only the first and the last of many equal TLPs in a row.
    pub fold: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { fold: true }
    }
}

/// Runs of at most this many TLPs are printed in full.
const SHORT_RUN: usize = 4;

/// Kinds of one group, in logical order (figures 9 and 10 of the NVMe/TSN paper).
const GROUPS: [&[StepKind]; 7] = [
    &[StepKind::Push, StepKind::SqDoorbell],
    &[StepKind::SqeFetch, StepKind::SqeData],
    &[StepKind::ListFetch, StepKind::ListData],
    &[StepKind::DataRead, StepKind::DataCompletion, StepKind::DataWrite],
    &[StepKind::CqeWrite],
    &[StepKind::MsiX],
    &[StepKind::CqDoorbell],
];

/// A step. In views of several commands, also its command.
struct Entry<'a> {
    step: &'a Step,
    owner: String,
}

enum Row<'a> {
    Entry(&'a Entry<'a>),
    /// Left-out repetitions of the rows above: number of repetitions, TLPs per repetition, and
    /// bytes of the first TLP of each repetition.
    Repeated(usize, usize, u32),
}

/// Prints the **NVMe transaction view**: the TLPs of a command in logical order, each request with
/// its completions. For the order on the link see [`link`].
pub fn transaction(command: &Command, options: Options) -> String {
    let mut out = headline(command);
    out += &format!("  {:<16}{COLUMNS}  packet\n", "step");
    let mut last = None;
    for group in GROUPS {
        let steps = command.steps.iter().filter(|step| group.contains(&step.kind));
        let entries: Vec<Entry> = steps.map(|step| Entry { step, owner: String::new() }).collect();
        for row in fold(&units(&entries), options) {
            let _ = match row {
                Row::Entry(Entry { step, .. }) => {
                    let title = if last == Some(step.kind) { "" } else { step.kind.name() };
                    last = Some(step.kind);
                    let columns = columns(step, command.start);
                    writeln!(out, "  {title:<16}{columns}  {:>6}", step.number)
                }
                Row::Repeated(units, tlps, bytes) => {
                    writeln!(out, "{}", repeated(16, units, tlps, bytes))
                }
            };
        }
    }
    footline(&[command], &mut out);
    out
}

/// Prints the **link view** (figure 11 of the NVMe/TSN paper): the TLPs of commands in link order.
/// A TLP that serves several commands is printed once. Each line has the time since the first TLP
/// and since the previous TLP.
pub fn link(commands: &[&Command], options: Options) -> String {
    let mut out = String::new();
    commands.iter().for_each(|command| out.push_str(&headline(command)));
    let entries = merge(commands);
    let Some(start) = entries.first().map(|entry| entry.step.at) else { return out };
    let owner = if commands.len() > 1 { "command" } else { "" };
    let head = format!("  packet{COLUMNS}   since  {:<16} {owner}", "step");
    out += &format!("{}\n", head.trim_end());
    let mut last = start;
    for row in fold(&entries.iter().map(|entry| vec![entry]).collect::<Vec<_>>(), options) {
        let line = match row {
            Row::Entry(Entry { step, owner }) => {
                // The printed differences add up to the printed times.
                let since = ns(step.at, start) - ns(last, start);
                last = step.at;
                let (since, columns, kind) = (micros(since), columns(step, start), step.kind);
                format!("  {:>6}{columns}{since:>8}  {kind:<16} {owner}", step.number)
            }
            Row::Repeated(units, tlps, bytes) => repeated(6, units, tlps, bytes),
        };
        out += &format!("{}\n", line.trim_end());
    }
    footline(commands, &mut out);
    out
}

/// Merges the steps of all commands in link order, each step once.
fn merge<'a>(commands: &[&'a Command]) -> Vec<Entry<'a>> {
    let mut steps: Vec<(&Step, &Command)> = Vec::new();
    for command in commands {
        steps.extend(command.steps.iter().map(|step| (step, *command)));
    }
    let key = |step: &Step| (step.number, step.address);
    steps.sort_by_key(|(step, _)| key(step));
    let same = steps.chunk_by(|(a, _), (b, _)| key(a) == key(b));
    let entry = |same: &[(&'a Step, &Command)]| {
        let (step, command) = same[0];
        let owner = match same.len() {
            _ if commands.len() == 1 => String::new(),
            1 => format!("{}:{}", command.queue, command.entry.cid),
            n => format!("{n} share"),
        };
        Entry { step, owner }
    };
    same.map(entry).collect()
}

const COLUMNS: &str = "   time us        TLP               address  bytes  tag   ";

fn columns(step: &Step, start: Instant) -> String {
    let arrow = match (step.direction, step.from_push) {
        (Direction::Down, false) => "-->",
        (Direction::Up, false) => "<--",
        (Direction::Down, true) => "|->",
        (Direction::Up, true) => "|<-",
    };
    let time = micros(ns(step.at, start));
    let tag = step.tag.map_or_else(|| "-".to_owned(), |tag| tag.to_string());
    let (tlp, address, bytes) = (step.tlp, format!("{:#x}", step.address), step.bytes);
    let status = match step.status {
        Status::Success => "",
        Status::UnsupportedRequest => "UR",
        Status::ConfigRetry => "CRS",
        Status::CompleterAbort => "CA",
        Status::Reserved(_) => "?",
    };
    format!("{time:>10}  {arrow}  {tlp:<6}{address:>18} {bytes:>6} {tag:>4} {status:<3}")
}

fn repeated(indent: usize, units: usize, tlps: usize, bytes: u32) -> String {
    let each = if tlps > 1 { format!(", {tlps} TLPs each") } else { String::new() };
    format!("  {:indent$}{:>10}  {units} more of {bytes} bytes{each}", "", "...")
}

fn ns(at: Instant, start: Instant) -> u64 {
    at.ns_since(start)
}

/// Groups requests with their completions. A posted request is alone.
fn units<'a>(entries: &'a [Entry<'a>]) -> Vec<Vec<&'a Entry<'a>>> {
    let mut units: Vec<Vec<&Entry>> = Vec::new();
    for entry in entries {
        let is_request = |unit: &&mut Vec<&Entry>| {
            unit[0].step.tag == entry.step.tag && !unit[0].step.kind.is_answer()
        };
        match units.iter_mut().rev().find(is_request).filter(|_| entry.step.kind.is_answer()) {
            Some(unit) => unit.push(entry),
            None => units.push(vec![entry]),
        }
    }
    units
}

/// Converts units to rows. With folding, a run of equal units becomes its first and its last unit
/// and a row with the number between. Equal TLPs within a unit are folded in the same way.
fn fold<'a>(units: &[Vec<&'a Entry<'a>>], options: Options) -> Vec<Row<'a>> {
    let equal = |a: &Vec<&Entry>, b: &Vec<&Entry>| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
    };
    let rows = units.chunk_by(equal).flat_map(|run| {
        let one = |unit: &Vec<_>| fold_unit(unit, options);
        fold_run(run, options, one, |first, n| Row::Repeated(n, first.len(), first[0].step.bytes))
    });
    rows.collect()
}

fn fold_unit<'a>(unit: &[&'a Entry<'a>], options: Options) -> Vec<Row<'a>> {
    let rows = unit.chunk_by(|a, b| alike(a, b)).flat_map(|run| {
        let one = |entry: &&'a Entry<'a>| vec![Row::Entry(entry)];
        fold_run(run, options, one, |first, n| Row::Repeated(n, 1, first.step.bytes))
    });
    rows.collect()
}

/// Returns the rows of equal elements: all of them, or the first, the number between, and the last.
fn fold_run<'a, T>(
    run: &[T],
    options: Options,
    one: impl Fn(&T) -> Vec<Row<'a>>,
    repeated: impl Fn(&T, usize) -> Row<'a>,
) -> Vec<Row<'a>> {
    match run {
        [first, middle @ .., last] if options.fold && run.len() > SHORT_RUN => {
            let mut rows = one(first);
            rows.push(repeated(first, middle.len()));
            rows.extend(one(last));
            rows
        }
        _ => run.iter().flat_map(one).collect(),
    }
}

fn alike(a: &Entry, b: &Entry) -> bool {
    let shape = |step: &Step| (step.kind, step.tlp, step.bytes, step.status, step.from_push);
    shape(a.step) == shape(b.step) && a.owner == b.owner
}

fn headline(command: &Command) -> String {
    let mut out = command.name().into_owned();
    match command.transfer {
        Transfer::None => {}
        Transfer::ToDevice(bytes) => out += &format!(" of {bytes} bytes to the drive"),
        Transfer::ToHost(bytes) => out += &format!(" of {bytes} bytes to the host"),
    }
    out += &command.range();
    let status = match command.status {
        None => "no completion".to_owned(),
        Some(status) => status.code.to_string(),
    };
    let took = command.duration_ns().map(|took| format!(" in {} us", micros(took)));
    out += &format!(": {status}{}\n", took.unwrap_or_default());
    out += &format!("  {}; --> from the host, <-- from the drive\n", command.place());
    for text in command.push_texts() {
        out += &format!("  {text}\n");
    }
    if command.steps.iter().any(|step| step.from_push) {
        out += "  |<- read of the drive that the port in front of it answered by |->\n";
    }
    out
}

fn footline(commands: &[&Command], out: &mut String) {
    let dropped: u64 = commands.iter().map(|command| command.steps_dropped).sum();
    if dropped > 0 {
        *out += &format!("  {dropped} more TLPs were not kept\n");
    }
    for command in commands.iter().filter(|command| command.unrecorded > 0) {
        let hash = command.data_hash().map(|hash| format!(", hash {hash:016x}"));
        let (bytes, hash) = (command.unrecorded, hash.unwrap_or_default());
        *out += &format!("  {bytes} bytes of data not recorded{hash}\n");
    }
}
