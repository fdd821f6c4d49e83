//! Finished commands.

use super::step::{Direction, Step, StepKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use wire::nvme::{self, Status, opcode};
use wire::trace::PayloadKey;
use wire::{Bdf, Duration, Instant};

/// Where the data of a command goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// Nowhere: there is none.
    #[default]
    None,
    /// From the host's memory to the drive, this many bytes.
    ToDevice(u64),
    /// From the drive to the host's memory, this many bytes.
    ToHost(u64),
}

impl Transfer {
    /// Bytes either way.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::None => 0,
            Self::ToDevice(bytes) | Self::ToHost(bytes) => bytes,
        }
    }
}

/// The TLPs of a command at the point of the link that was seen, and their bytes: header and
/// payload, without digest, LCRC and framing. A TLP that serves several commands counts in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Traffic {
    /// TLPs of the command from the host, at the port of the first node. A TLP that serves several
    /// commands counts in each.
    pub tlps_down: u64,
    /// TLPs of the command from the drive.
    pub tlps_up: u64,
    /// Header and payload bytes of the TLPs from the host.
    pub bytes_down: u64,
    /// Header and payload bytes of the TLPs from the drive.
    pub bytes_up: u64,
}

impl Traffic {
    /// Counts a TLP.
    pub(crate) fn add(&mut self, step: &Step) {
        let (tlps, bytes) = match step.direction {
            Direction::Down => (&mut self.tlps_down, &mut self.bytes_down),
            Direction::Up => (&mut self.tlps_up, &mut self.bytes_up),
        };
        *tlps += 1;
        *bytes += u64::from(step.length);
    }

    /// TLPs in both directions.
    pub const fn tlps(&self) -> u64 {
        self.tlps_down + self.tlps_up
    }

    /// Bytes in both directions.
    pub const fn bytes(&self) -> u64 {
        self.bytes_down + self.bytes_up
    }
}

/// Bytes that a drive reads for a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
pub struct PushedBytes {
    /// Bytes of the submission queue entry: 64 or 0.
    pub entry: u64,
    /// Bytes of PRP lists and SGL segments.
    pub lists: u64,
    /// Bytes of data.
    pub data: u64,
}

impl PushedBytes {
    /// All of them.
    pub const fn sum(self) -> u64 {
        self.entry + self.lists + self.data
    }

    /// Which ones: `entry, lists, data`.
    pub fn names(self) -> String {
        let all = [("entry", self.entry), ("lists", self.lists), ("data", self.data)];
        let nonzero = all.into_iter().filter(|(_, bytes)| *bytes > 0);
        nonzero.map(|(name, _)| name).collect::<Vec<_>>().join(", ")
    }

    fn less(self, other: Self) -> Self {
        Self {
            entry: self.entry.saturating_sub(other.entry),
            lists: self.lists.saturating_sub(other.lists),
            data: self.data.saturating_sub(other.data),
        }
    }
}

/// Which ones, with their bytes.
impl fmt::Display for PushedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = (self.entry > 0).then(|| "entry".to_owned());
        let part = |bytes: u64, name| (bytes > 0).then(|| format!("{bytes} bytes of {name}"));
        let all = [entry, part(self.lists, "lists"), part(self.data, "data")];
        f.write_str(&all.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// What was pushed for a command (`docs/push.md`), in bytes, as seen at one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushUse {
    /// What passed in messages in front of the doorbell.
    pub pushed: PushedBytes,
    /// Of that, what the drive read from the host all the same, repetitions not counted.
    pub fetched: PushedBytes,
    /// What the drive read and the port in front of it answered; seen only behind that port.
    pub answered: PushedBytes,
}

/// A command with all TLPs that belong to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The drive.
    pub device: Bdf,
    /// Submission queue; 0 is the admin queue.
    pub queue: u16,
    /// The submission queue entry.
    pub entry: nvme::Command,
    /// Data that the command should move, as the entry says.
    pub transfer: Transfer,
    /// Bytes a logical block, where the command addresses blocks. 512 is
    /// assumed until Identify Namespace was seen.
    pub block_size: Option<u32>,
    /// Whether its namespace, as Identify Namespace said, is attached to this controller alone
    /// (NMIC) and has no metadata.
    pub sole: bool,
    /// Status; `None` if no completion entry came before the controller was
    /// reset, its queue deleted or the capture ended.
    pub status: Option<Status>,
    /// Dword 0 of the completion entry.
    pub result: u32,
    /// Start of the submission doorbell, or of the first push in front of it.
    pub start: Instant,
    /// Start of the head doorbell that covers the completion entry; `None` if there was none.
    pub end: Option<Instant>,
    /// Number of TLPs that had been seen when it ended, by its head doorbell,
    /// a reset or the end of the capture.
    pub closed: u64,
    /// TLPs in the order of the link. Doorbells, fetches and interrupts that
    /// serve several commands stand in each of them.
    pub steps: Vec<Step>,
    /// Steps beyond the limit, not kept.
    pub steps_dropped: u64,
    /// All of its TLPs, those beyond the limit too.
    pub traffic: Traffic,
    /// Bytes of data that were seen moving, repetitions not counted.
    pub moved: u64,
    /// The data, if it was to be collected, was recorded and there was room, and the ranges
    /// of Dataset Management; bytes that never came are zero.
    pub data: Option<Vec<u8>>,
    /// Bytes of data that were seen moving and were not recorded, repetitions not counted.
    pub unrecorded: u64,
    /// Of each TLP with data, in the order of the link, what tells equal ones from others; of
    /// pushed data nothing does.
    pub prints: Vec<Print>,
    /// What was pushed for it.
    pub push: PushUse,
}

/// The print of the data in one TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Its first byte within the transfer.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
    /// Equal data have equal numbers, others other ones.
    pub print: u64,
}

impl Command {
    /// Whether it is an admin command.
    pub const fn is_admin(&self) -> bool {
        self.queue == 0
    }

    /// The command's name, `opcode 0x..` if it has none here.
    pub fn name(&self) -> Cow<'static, str> {
        command_name(self.queue, self.entry.opcode)
    }

    /// First logical block, of commands that name one.
    pub fn slba(&self) -> Option<u64> {
        self.block_size.map(|_| self.entry.slba())
    }

    /// Logical blocks, of commands that name them.
    pub fn blocks(&self) -> Option<u32> {
        self.block_size.map(|_| self.entry.blocks())
    }

    /// Drive, queue, command and namespace as text.
    pub(crate) fn place(&self) -> String {
        let Self { device, queue, entry: nvme::Command { cid, nsid, .. }, .. } = self;
        format!("drive {device}, queue {queue}, command {cid}, namespace {nsid}")
    }

    /// The logical blocks as text behind something else; empty if the command names none.
    pub(crate) fn range(&self) -> String {
        let (Some(slba), Some(blocks)) = (self.slba(), self.blocks()) else { return String::new() };
        let s = if blocks == 1 { "" } else { "s" };
        format!(", {blocks} block{s} from LBA {slba}")
    }

    /// Status code type and status code, 0 for success; `None` if no completion entry came.
    pub fn status_number(&self) -> Option<u16> {
        let number =
            |status: Status| u16::from(status.code.kind()) << 8 | u16::from(status.code.code());
        self.status.map(number)
    }

    /// From the start of the submission doorbell, or of the first push in front of it, to that of
    /// the completion head doorbell.
    pub fn duration(&self) -> Option<Duration> {
        self.end.map(|end| end.since(self.start))
    }

    /// Whether the drive completed it and the host never rang the completion
    /// queue's head doorbell for that.
    pub fn is_unacknowledged(&self) -> bool {
        self.status.is_some() && self.end.is_none()
    }

    /// The prints in the order of the data; `None` if they do not cover all of it, each byte once.
    pub fn whole_prints(&self) -> Option<Vec<Print>> {
        let mut prints = self.prints.clone();
        prints.sort_unstable_by_key(|print| print.offset);
        let mut end = 0;
        for print in &prints {
            (print.offset == end).then(|| end += u64::from(print.bytes))?;
        }
        (end == self.transfer.bytes() && end > 0).then_some(prints)
    }

    /// The hash of all data that moved, of commands whose data was not recorded: equal ones have
    /// equal data, if their TLPs divide it alike.
    pub fn data_hash(&self) -> Option<u64> {
        let prints = self.whole_prints().filter(|_| self.unrecorded > 0)?;
        Some(print_of(&prints))
    }

    /// The TLP with which the entry came to the drive: the completion of its fetch, or the
    /// doorbell behind its push.
    pub fn entry_arrival(&self) -> Option<&Step> {
        let first = |kind| self.steps.iter().find(|step| step.kind == kind);
        let doorbell = || first(StepKind::SqDoorbell).filter(|_| self.push.pushed.entry > 0);
        first(StepKind::SqeData).or_else(doorbell)
    }

    /// Bytes that the drive read and the port in front of it answered from push, as far as that
    /// is certain.
    pub fn answered_from_push(&self) -> PushedBytes {
        let PushUse { pushed, fetched, answered } = self.push;
        let Some(status) = self.status else { return answered };
        let left = pushed.less(fetched);
        // The drive had the entry; lists and data it need not have read if the command failed.
        let (lists, data) = if status.is_success() { (left.lists, left.data) } else { (0, 0) };
        PushedBytes {
            entry: answered.entry + left.entry,
            lists: answered.lists + lists,
            data: answered.data + data,
        }
    }

    /// What became of what was pushed for it, each as text; nothing if nothing was.
    pub fn push_texts(&self) -> Vec<String> {
        let PushUse { pushed, fetched, .. } = self.push;
        let answered = self.answered_from_push();
        let all = [
            ("answered from push", answered),
            ("pushed, and read from the host all the same", fetched),
            ("pushed, perhaps for nothing", pushed.less(fetched).less(answered)),
        ];
        let all = all.into_iter().filter(|(_, parts)| parts.sum() > 0);
        all.map(|(fate, parts)| format!("{fate}: {parts}")).collect()
    }

    /// Whether every byte of data was seen.
    pub fn is_whole(&self) -> bool {
        self.moved == self.transfer.bytes()
    }
}

/// One number of several prints and how they divide the data.
pub(crate) fn print_of(prints: &[Print]) -> u64 {
    let each = |print: &Print| [u64::from(print.bytes).to_be_bytes(), print.print.to_be_bytes()];
    let bytes: Vec<u8> = prints.iter().flat_map(each).flatten().collect();
    // The prints are keyed hashes, where that matters.
    PayloadKey::PUBLIC.hash(&bytes)
}

/// The name of an opcode on queue `queue`.
pub fn command_name(queue: u16, opcode: u8) -> Cow<'static, str> {
    let name = if queue == 0 { opcode::admin::name(opcode) } else { opcode::nvm::name(opcode) };
    match name {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("opcode {opcode:#04x}")),
    }
}

/// The names of all commands that have one.
pub fn command_names() -> impl Iterator<Item = &'static str> {
    let both = |opcode| [opcode::nvm::name(opcode), opcode::admin::name(opcode)];
    (0..=u8::MAX).flat_map(both).flatten()
}
