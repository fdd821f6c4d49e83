//! A recorded trace as a list of operations: every NVMe I/O command, its submission time, and its
//! recorded latency.

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

/// Namespaces of a recorded drive follow each other on the simulated drive. Each begins at a
/// multiple of this number of bytes.
const ALIGNMENT: u64 = 4096;
/// Maximum bytes of a command: NLB has 16 bits, and blocks of simulated drives have 512 bytes.
const LONGEST: u64 = 65_536 * 512;

/// The recording that a host replays.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Trace files.
    pub files: Vec<PathBuf>,
    /// Point at which the TLPs were recorded.
    pub at: &'static str,
    /// Operations, sorted by the time of their doorbell.
    pub operations: Arc<[Operation]>,
    /// Maximum number of commands in flight, by drive and queue.
    pub depths: Vec<Vec<u16>>,
    /// Number of entries of the queue, by drive and queue.
    pub queue_entries: Vec<Vec<u16>>,
    /// Number of bytes that each drive needs.
    pub needs: Vec<u64>,
    /// Time from submission doorbell to completion head doorbell, of commands that have both.
    pub latency: Latency,
    /// Number of commands that are not replayed: they failed, or simulated drives do not support
    /// them (only read, write, flush, write zeroes and deallocate).
    pub left_out: u64,
    /// Places where records are missing.
    pub gaps: u64,
}

/// A cache of recordings, by their files.
pub type Read = Arc<Mutex<BTreeMap<Vec<PathBuf>, Arc<Recording>>>>;

/// Returns the recording in these files, from the cache `read` if it is there.
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
    /// Offset in the namespace, in bytes.
    offset: u64,
    length: u64,
    start: Instant,
    end: Option<Instant>,
    /// TLP number of the entry's fetch. The number orders commands with the same doorbell.
    fetched: u64,
}

/// Returns the operation of a command, with bytes of its namespace; `None` if simulated drives do
/// not support it.
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
        // Entries of created queues, less one.
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

/// Returns the offset of each namespace on the simulated drive, and the total bytes.
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

/// Returns the maximum number of commands in flight, from doorbell to head doorbell, limited to 1
/// to 4095.
fn depth<'a>(commands: impl Iterator<Item = &'a RecordedCommand>) -> u16 {
    let mut turns = Vec::new();
    for command in commands {
        turns.push((command.start, 1));
        turns.push((command.end.unwrap_or(Instant::MAX), -1));
    }
    // At equal times a command that ends frees its entry before another begins.
    turns.sort_unstable();
    let (mut now, mut most) = (0i64, 1);
    for (_, turn) in turns {
        now += turn;
        most = most.max(now);
    }
    most.min(4095) as u16
}
