//! Finished commands.

use super::step::{Direction, Step, StepKind};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use wire::nvme::{self, Status, opcode};
use wire::trace::PayloadKey;
use wire::{Bdf, Instant};

/// Direction and length of a command's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// The command has no data.
    #[default]
    None,
    /// From the host's memory to the drive, in bytes.
    ToDevice(u64),
    /// From the drive to the host's memory, in bytes.
    ToHost(u64),
}

impl Transfer {
    /// Returns the length of the data in bytes, in either direction.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::None => 0,
            Self::ToDevice(bytes) | Self::ToHost(bytes) => bytes,
        }
    }
}

/// The TLPs of a command as seen at one point of the link, and their bytes: header and payload,
/// without digest, LCRC and framing. A TLP that serves several commands counts in each.
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
    /// Returns the sum of entry, lists and data.
    pub const fn sum(self) -> u64 {
        self.entry + self.lists + self.data
    }

    /// Returns the names of the parts that are not 0, such as `entry, lists, data`.
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

/// The names of the parts that are not 0, each with its bytes.
impl fmt::Display for PushedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = (self.entry > 0).then(|| "entry".to_owned());
        let part = |bytes: u64, name| (bytes > 0).then(|| format!("{bytes} bytes of {name}"));
        let all = [entry, part(self.lists, "lists"), part(self.data, "data")];
        f.write_str(&all.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// The bytes that were pushed for a command (`docs/push.md`), as seen at one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushUse {
    /// Bytes in push messages in front of the doorbell.
    pub pushed: PushedBytes,
    /// Pushed bytes that the drive read from the host nevertheless. A byte that is read twice
    /// counts once.
    pub fetched: PushedBytes,
    /// Bytes that the port in front of the drive returned from push. They are seen only behind that
    /// port.
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
    /// Direction and length of the data, as the submission queue entry specifies.
    pub transfer: Transfer,
    /// Bytes per logical block; `None` if the command addresses no blocks. 512 is assumed until
    /// Identify Namespace data are seen.
    pub block_size: Option<u32>,
    /// Whether the command's namespace is attached to this controller alone (NMIC) and has no
    /// metadata, according to Identify Namespace.
    pub sole: bool,
    /// Status; `None` if the controller was reset, the queue deleted or the capture ended before a
    /// completion entry.
    pub status: Option<Status>,
    /// Dword 0 of the completion entry.
    pub result: u32,
    /// Start of the submission doorbell, or of the first push in front of it.
    pub start: Instant,
    /// Start of the head doorbell that covers the completion entry; `None` if there was none.
    pub end: Option<Instant>,
    /// Number of TLPs seen up to the end of the command. The command ends with its head doorbell, a
    /// reset or the end of the capture.
    pub closed: u64,
    /// TLPs in link order. A doorbell, fetch or interrupt that serves several commands is in each.
    pub steps: Vec<Step>,
    /// Number of steps that are missing in `steps` because of the limit.
    pub steps_dropped: u64,
    /// All TLPs of the command, including TLPs beyond the limit of `steps`.
    pub traffic: Traffic,
    /// Bytes of data that were transferred. A repeated byte counts once.
    pub moved: u64,
    /// The data, and the ranges of Dataset Management. `None` if data are not collected, were not
    /// recorded, or exceed the limit. Bytes that were not transferred are zero.
    pub data: Option<Vec<u8>>,
    /// Bytes of data that were transferred but not recorded. A repeated byte counts once.
    pub unrecorded: u64,
    /// One print per TLP with data, in link order. Equal prints mean equal data. Pushed data have
    /// no print.
    pub prints: Vec<Print>,
    /// The bytes that were pushed for the command.
    pub push: PushUse,
}

/// The print of the data in one TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Offset of the first byte of data within the transfer.
    pub offset: u64,
    /// Length of the data in bytes.
    pub bytes: u32,
    /// Number that is equal for equal data and different for different data.
    pub print: u64,
}

impl Command {
    /// Returns whether this is an admin command.
    pub const fn is_admin(&self) -> bool {
        self.queue == 0
    }

    /// Returns the command's name, or `opcode 0x..` if the opcode has no name.
    pub fn name(&self) -> Cow<'static, str> {
        command_name(self.queue, self.entry.opcode)
    }

    /// Returns the first logical block; `None` if the command addresses no blocks.
    pub fn slba(&self) -> Option<u64> {
        self.block_size.map(|_| self.entry.slba())
    }

    /// Returns the number of logical blocks; `None` if the command addresses no blocks.
    pub fn blocks(&self) -> Option<u32> {
        self.block_size.map(|_| self.entry.blocks())
    }

    /// Returns drive, queue, command and namespace as text.
    pub(crate) fn place(&self) -> String {
        let Self { device, queue, entry: nvme::Command { cid, nsid, .. }, .. } = self;
        format!("drive {device}, queue {queue}, command {cid}, namespace {nsid}")
    }

    /// Returns the logical blocks as text to append; empty if the command addresses no blocks.
    pub(crate) fn range(&self) -> String {
        let (Some(slba), Some(blocks)) = (self.slba(), self.blocks()) else { return String::new() };
        let s = if blocks == 1 { "" } else { "s" };
        format!(", {blocks} block{s} from LBA {slba}")
    }

    /// Returns status code type × 256 + status code, 0 for success; `None` if no completion entry
    /// came.
    pub fn status_number(&self) -> Option<u16> {
        let number =
            |status: Status| u16::from(status.code.kind()) << 8 | u16::from(status.code.code());
        self.status.map(number)
    }

    /// Returns the nanoseconds from the start of the submission doorbell, or of the first push in
    /// front of it, to the start of the head doorbell; `None` if there was no head doorbell. An
    /// Asynchronous Event Request may take years, more than a [`wire::Duration`] holds.
    pub fn duration_ns(&self) -> Option<u64> {
        self.end.map(|end| end.ns_since(self.start))
    }

    /// Returns whether the drive completed the command but the host never wrote the head doorbell
    /// for the completion entry.
    pub fn is_unacknowledged(&self) -> bool {
        self.status.is_some() && self.end.is_none()
    }

    /// Returns the prints sorted by offset; `None` if they do not cover every byte of data exactly
    /// once.
    pub fn whole_prints(&self) -> Option<Vec<Print>> {
        let mut prints = self.prints.clone();
        prints.sort_unstable_by_key(|print| print.offset);
        let mut end = 0;
        for print in &prints {
            (print.offset == end).then(|| end += u64::from(print.bytes))?;
        }
        (end == self.transfer.bytes() && end > 0).then_some(prints)
    }

    /// Returns the hash of all data that the recording left out; `None` if no data were left out,
    /// or if a TLP has no print. Two commands with equal data have the same hash if their data are
    /// split into TLPs in the same way.
    pub fn data_hash(&self) -> Option<u64> {
        let prints = self.whole_prints().filter(|_| self.unrecorded > 0)?;
        Some(print_of(&prints))
    }

    /// Returns the TLP that brought the entry to the drive: the completion of the fetch, or the
    /// doorbell after the push; `None` if neither was seen.
    pub fn entry_arrival(&self) -> Option<&Step> {
        let first = |kind| self.steps.iter().find(|step| step.kind == kind);
        let doorbell = || first(StepKind::SqDoorbell).filter(|_| self.push.pushed.entry > 0);
        first(StepKind::SqeData).or_else(doorbell)
    }

    /// Returns the bytes that the port in front of the drive certainly returned from push.
    pub fn answered_from_push(&self) -> PushedBytes {
        let PushUse { pushed, fetched, answered } = self.push;
        let Some(status) = self.status else { return answered };
        let left = pushed.less(fetched);
        // The drive had the entry. It may not have read lists and data if the command failed.
        let (lists, data) = if status.is_success() { (left.lists, left.data) } else { (0, 0) };
        PushedBytes {
            entry: answered.entry + left.entry,
            lists: answered.lists + lists,
            data: answered.data + data,
        }
    }

    /// Returns texts about the pushed bytes; empty if no bytes were pushed for the command.
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

    /// Returns whether every byte of data was seen.
    pub fn is_whole(&self) -> bool {
        self.moved == self.transfer.bytes()
    }
}

/// Combines several prints, and the way in which they split the data, into one number.
pub(crate) fn print_of(prints: &[Print]) -> u64 {
    let each = |print: &Print| [u64::from(print.bytes).to_be_bytes(), print.print.to_be_bytes()];
    let bytes: Vec<u8> = prints.iter().flat_map(each).flatten().collect();
    // A public key suffices, because prints that must resist guessing are already keyed hashes.
    PayloadKey::PUBLIC.hash(&bytes)
}

/// Returns the name of an opcode on queue `queue`.
pub fn command_name(queue: u16, opcode: u8) -> Cow<'static, str> {
    let name = if queue == 0 { opcode::admin::name(opcode) } else { opcode::nvm::name(opcode) };
    match name {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("opcode {opcode:#04x}")),
    }
}

/// Returns the names of all commands that have one.
pub fn command_names() -> impl Iterator<Item = &'static str> {
    let both = |opcode| [opcode::nvm::name(opcode), opcode::admin::name(opcode)];
    (0..=u8::MAX).flat_map(both).flatten()
}
