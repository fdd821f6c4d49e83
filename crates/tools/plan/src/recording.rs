//! A recorded trace as a list of operations: every NVMe I/O command, when it
//! was submitted, and how long it took then.

use analysis::commands::{Command, Event};
use analysis::trace::{Finding, Run};
use sim::measure::{Latency, Op};
use sim::workload::Operation;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use wire::nvme::{DsmRange, opcode};
use wire::trace::NodeRole;
use wire::{Bdf, Duration, Instant};

/// Namespaces of a recorded drive lie on the simulated one behind each other,
/// each from a multiple of this on.
const ALIGNMENT: u64 = 4096;
/// NLB has 16 bits, and blocks of simulated drives 512 bytes.
const LONGEST: u64 = 65_536 * 512;

/// What a host replays.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Where the TLPs were seen.
    pub at: &'static str,
    /// The commands, by the time of their doorbell.
    pub operations: Arc<[Operation]>,
    /// By drive and queue: the most commands that were in flight.
    pub depths: Vec<Vec<u16>>,
    /// By drive and queue: the entries of the queue.
    pub queue_entries: Vec<Vec<u16>>,
    /// Bytes needed of each drive.
    pub needs: Vec<u64>,
    /// Submission doorbell to completion head doorbell, of commands that have
    /// both.
    pub latency: Latency,
    /// Commands that are not replayed: they failed, or are no read, write,
    /// flush, write zeroes or deallocation that simulated drives know.
    pub left_out: u64,
    /// Places where records are missing.
    pub gaps: u64,
}

/// A cache of recordings, by their files.
pub type Read = Arc<Mutex<BTreeMap<Vec<PathBuf>, Arc<Recording>>>>;

/// The recording in these files, from the cache `read` if it has it.
///
/// # Errors
/// One line that names a file.
pub fn recording(files: &[PathBuf], read: &Read) -> Result<Arc<Recording>, String> {
    let mut read = read.lock().expect("nobody panics with it");
    if let Some(known) = read.get(files) {
        return Ok(known.clone());
    }
    let recording = Arc::new(Recording::open(files)?);
    read.insert(files.to_vec(), recording.clone());
    Ok(recording)
}

/// A recorded command before its offset on the simulated drive is known.
struct RecordedCommand {
    device: Bdf,
    queue: u16,
    nsid: u32,
    op: Op,
    /// In its namespace.
    offset: u64,
    length: u64,
    start: Instant,
    end: Option<Instant>,
    /// Of its entry's fetch, for those of one doorbell.
    fetched: u64,
}

/// What a command does, in bytes of its namespace; `None` if simulated drives
/// do not know it.
fn operation(command: &Command) -> Option<(Op, u64, u64)> {
    let block = u64::from(command.block_size.unwrap_or(512));
    let entry = &command.entry;
    let range =
        |op| Some((op, entry.slba().checked_mul(block)?, u64::from(entry.blocks()) * block));
    match entry.opcode {
        opcode::nvm::READ => range(Op::Read),
        opcode::nvm::WRITE => range(Op::Write),
        opcode::nvm::WRITE_ZEROES => range(Op::WriteZeroes),
        opcode::nvm::FLUSH => Some((Op::Flush, 0, 0)),
        opcode::nvm::DATASET_MANAGEMENT => {
            let ranges = command.data.as_deref()?.as_chunks::<{ DsmRange::LENGTH }>().0;
            let range = ranges.iter().map(DsmRange::decode).find(|range| range.blocks > 0)?;
            let offset = range.slba.checked_mul(block)?;
            Some((Op::Discard, offset, u64::from(range.blocks) * block))
        }
        _ => None,
    }
}

fn recorded_command(command: &Command) -> Option<RecordedCommand> {
    if command.status.is_some_and(|status| !status.is_success()) {
        return None;
    }
    let (op, offset, length) = operation(command)?;
    offset.checked_add(length).filter(|_| length <= LONGEST)?;
    Some(RecordedCommand {
        device: command.device,
        queue: command.queue,
        nsid: if op == Op::Flush { 0 } else { command.entry.nsid },
        op,
        offset,
        length,
        start: command.start,
        end: command.end,
        fetched: command.entry_arrival().map_or(0, |step| step.number),
    })
}

impl Recording {
    /// Reads the traces of one run.
    fn open(files: &[PathBuf]) -> Result<Self, String> {
        let run = Run::open(files).map_err(|failure| failure.0)?;
        if let Some(node) = run.nodes.iter().find(|node| node.file.cut) {
            let name = node.file.path.display();
            return Err(format!("{name}: cut off in the middle of its records"));
        }
        let mut commands = Vec::new();
        let (mut left_out, mut gaps) = (0, 0);
        // Of queues that were created: entries less one.
        let mut queue_entries: BTreeMap<(Bdf, u16), u16> = BTreeMap::new();
        run.analyse(|found, _| match found {
            Finding::Gap(_) => gaps += 1,
            Finding::Event(Event::Command(command)) if !command.is_admin() => {
                match recorded_command(&command) {
                    Some(taken) => commands.push(taken),
                    None => left_out += 1,
                }
            }
            Finding::Event(Event::Command(command))
                if command.entry.opcode == opcode::admin::CREATE_SQ =>
            {
                let cdw10 = command.entry.cdw10;
                let room = queue_entries.entry((command.device, cdw10 as u16)).or_default();
                *room = (*room).max((cdw10 >> 16) as u16);
            }
            _ => {}
        })
        .map_err(|failure| failure.0)?;
        if commands.is_empty() {
            let name = Path::new(&run.root().file.path).display();
            return Err(format!("{name}: no NVMe command in it that can be replayed"));
        }
        commands.sort_by_key(|command| (command.start, command.fetched));
        let at = match run.root().file.header.role {
            NodeRole::Host => "root port",
            NodeRole::Switch => "switch",
            NodeRole::Device => "device port",
        };
        let mut latency = Latency::default();
        let spans = commands.iter().filter_map(|c| c.end.map(|end| end.since(c.start)));
        spans.for_each(|span: Duration| latency.record(span));
        let first = commands[0].start;
        let drives: BTreeSet<Bdf> = commands.iter().map(|command| command.device).collect();
        let (mut depths, mut free, mut needed) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers = BTreeMap::new();
        for (drive, device) in drives.into_iter().enumerate() {
            let of_drive = || commands.iter().filter(|command| command.device == device);
            let (bases, needs) = layout(of_drive());
            needed.push(needs);
            let queues: BTreeSet<u16> = of_drive().map(|command| command.queue).collect();
            let on = |queue: u16| of_drive().filter(move |command| command.queue == queue);
            depths.push(queues.iter().map(|queue| depth(on(*queue))).collect());
            let room =
                |queue: &u16| queue_entries.get(&(device, *queue)).copied().unwrap_or(1).max(1);
            free.push(queues.iter().map(room).collect());
            numbers.insert(device, (drive, bases, queues.into_iter().collect::<Vec<u16>>()));
        }
        let operation = |command: &RecordedCommand| {
            let (drive, bases, queues) = &numbers[&command.device];
            let base = bases.get(&command.nsid).copied().unwrap_or(0);
            Operation {
                at: command.start.since(first),
                drive: *drive,
                queue: queues.binary_search(&command.queue).expect("one of them"),
                op: command.op,
                offset: base.saturating_add(command.offset),
                length: command.length,
            }
        };
        let operations = commands.iter().map(operation).collect();
        let (files, queue_entries, needs) = (files.to_vec(), free, needed);
        Ok(Self { files, at, operations, depths, queue_entries, needs, latency, left_out, gaps })
    }
}

/// Where each namespace begins on the simulated drive, and bytes in all.
fn layout<'a>(commands: impl Iterator<Item = &'a RecordedCommand>) -> (BTreeMap<u32, u64>, u64) {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for command in commands.filter(|command| command.op != Op::Flush) {
        let end = ends.entry(command.nsid).or_default();
        *end = (*end).max(command.offset + command.length);
    }
    let mut next: u64 = 0;
    let place = |(nsid, end): (u32, u64)| {
        let base = next;
        next = next.saturating_add(end).saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        (nsid, base)
    };
    let bases = ends.into_iter().map(place).collect();
    (bases, next)
}

/// The most commands in flight at once, from doorbell to head doorbell.
fn depth<'a>(commands: impl Iterator<Item = &'a RecordedCommand>) -> u16 {
    let mut turns = Vec::new();
    for command in commands {
        turns.push((command.start, 1));
        turns.push((command.end.unwrap_or(Instant::MAX), -1));
    }
    // A command that ends frees its entry for one that begins.
    turns.sort_unstable();
    let (mut now, mut most) = (0i64, 1);
    for (_, turn) in turns {
        now += turn;
        most = most.max(now);
    }
    most.min(4095) as u16
}
