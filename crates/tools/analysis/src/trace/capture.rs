//! The TLPs of a trace as a capture for Wireshark. A comment on each TLP names its commands.

use super::file::Item;
use super::run::Run;
use super::stats;
use crate::commands::{Command, Direction, StepKind};
use crate::export::pcapng::{Tap, TlpFile};
use report::Failure;
use std::io::{self, Write};
use wire::Instant;
use wire::trace::{NodeRole, Record, Timed};

/// The commands that one TLP at the port serves.
#[derive(Clone, Copy, Debug, Default)]
struct Label {
    /// Number of the first command, from 1 in `commands`; 0 for none.
    command: u32,
    /// Number of commands.
    count: u16,
    kind: Option<StepKind>,
    /// Whether one of the commands is on an I/O queue. `selected`: whether one of them is selected.
    io: bool,
    selected: bool,
}

/// The commands of each TLP. The first pass over a run collects the commands, the second pass
/// writes the capture. Memory: 16 bytes per TLP and about 100 bytes per command.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    labels: Vec<Label>,
    /// Names of commands for the comments.
    commands: Vec<String>,
}

/// Number of written TLPs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of all TLPs.
    pub tlps: u64,
    /// Number of TLPs of which only the first bytes had been recorded.
    pub cut: u64,
}

impl Capture {
    /// Adds a command. The capture leaves out the TLPs of a command that is not `selected`, except
    /// TLPs that also serve a selected command. TLPs that serve no I/O command are always written,
    /// because configuration, registers and admin commands are needed to decode the others.
    pub fn add(&mut self, number: u64, command: &Command, selected: bool) {
        let (kind, queue, cid) = (stats::kind(command), command.queue, command.entry.cid);
        let blocks = command.slba().zip(command.blocks());
        let blocks = blocks.map(|(slba, blocks)| format!(", LBA {slba} +{blocks}"));
        let blocks = blocks.unwrap_or_default();
        self.commands.push(format!("{kind}, command {number} (queue {queue} cid {cid}{blocks})"));
        let name = self.commands.len() as u32;
        for step in &command.steps {
            let at = step.number as usize;
            if at >= self.labels.len() {
                self.labels.resize(at + 1, Label::default());
            }
            let label = &mut self.labels[at];
            if label.command == 0 {
                (label.command, label.kind) = (name, Some(step.kind));
            }
            label.count = label.count.saturating_add(1);
            label.io |= !command.is_admin();
            label.selected |= selected;
        }
    }

    /// Writes the TLPs at the port of the root node.
    ///
    /// # Errors
    /// As [`TraceFile::read`](super::TraceFile::read), and errors of `out`.
    pub fn write<W: Write>(&self, run: &Run, out: W) -> Result<(Written, W), Failure> {
        let header = &run.root().file.header;
        let tap = match header.role {
            NodeRole::Host => Tap::RootPort,
            NodeRole::Switch | NodeRole::Device => Tap::Endpoint,
        };
        let file = TlpFile::begin(out, header.start_unix_ns)?;
        let mut pass = Pass { capture: self, file, tap, number: 0, gap: None, done: Ok(()) };
        let mut written = Written::default();
        run.root().file.read(|item| pass.item(item, &mut written))?;
        pass.done?;
        Ok((written, pass.file.finish()?))
    }

    /// Returns the comment of the TLP with this number; `None` if the TLP is left out.
    fn comment(&self, number: u64) -> Option<String> {
        let label = self.labels.get(number as usize).copied().unwrap_or_default();
        if label.io && !label.selected {
            return None;
        }
        let named = label.command.checked_sub(1).and_then(|at| self.commands.get(at as usize));
        let (Some(named), Some(kind)) = (named, label.kind) else { return Some(String::new()) };
        let mut text = format!("{kind} of {named}");
        if label.count > 1 {
            text += &format!(" and {} more", label.count - 1);
        }
        Some(text)
    }
}

struct Pass<'a, W> {
    capture: &'a Capture,
    file: TlpFile<W>,
    tap: Tap,
    number: u64,
    /// The comment about missing records, for the next TLP.
    gap: Option<String>,
    done: io::Result<()>,
}

impl<W: Write> Pass<'_, W> {
    fn item(&mut self, item: Item<'_>, written: &mut Written) {
        let (at_ns, up, length, bytes) = match item {
            Item::Gap(Some(records)) => {
                self.gap = Some(format!("{records} records are missing before this"));
                return;
            }
            Item::Gap(None) => {
                self.gap.get_or_insert_with(|| "records are missing before this".to_owned());
                return;
            }
            Item::Record(Timed {
                at_ns,
                record: Record::Tlp { tap, up, length, bytes, holes, .. },
            }) if !tap.is_link() => {
                // A capture can contain only the first bytes of a packet.
                let front = holes.parts(bytes.len()).first().map_or(0, |part| part.end);
                (at_ns, up, usize::from(length), &bytes[..front])
            }
            Item::Record(_) => return,
        };
        let number = self.number;
        self.number += 1;
        let Some(mut comment) = self.capture.comment(number).filter(|_| self.done.is_ok()) else {
            return;
        };
        if let Some(gap) = self.gap.take() {
            comment = if comment.is_empty() { gap } else { format!("{gap}; {comment}") };
        }
        let direction = if up { Direction::Up } else { Direction::Down };
        let at = Instant::from_ns(at_ns);
        self.done = self.file.cut_tlp(at, self.tap, direction, (bytes, length), &comment);
        written.tlps += 1;
        written.cut += u64::from(bytes.len() < length);
    }
}
