//! State shared by all controllers: counters, limits, events.

use super::command::{Command, Print};
use super::queues::Uid;
use super::step::{Direction, Step, StepKind};
use super::{AnalyserCounters, AnalyserSettings, Event, Limits};
use std::collections::VecDeque;
use std::ops::Range;
use wire::tlp::{Status, Tlp};
use wire::{Instant, Tag};

/// The recorded parts of a TLP's payload.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// Number of recorded bytes at the start. The bytes after them read as zeroes.
    pub known: usize,
    /// Further recorded ranges after the first `known` bytes, in order.
    pub parts: Vec<Range<usize>>,
    /// Prints of the ranges that were not recorded.
    pub holes: Vec<(Range<usize>, u64)>,
    /// Print of the whole payload, equal for equal payloads and different for different ones;
    /// `None` if unknown.
    pub print: Option<u64>,
    /// Whether the port in front of the drive answered this read, or sent this completion, from
    /// pushed bytes, so that no link carried the TLP.
    pub from_push: bool,
}

impl Payload {
    /// Returns whether all of these bytes were recorded.
    pub fn knows(&self, bytes: &Range<usize>) -> bool {
        let inside = |part: &Range<usize>| part.start <= bytes.start && bytes.end <= part.end;
        bytes.end <= self.known || self.parts.iter().any(inside)
    }
}

/// Counters, bounds and events of an analyser, and the current TLP.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub settings: AnalyserSettings,
    pub counters: AnalyserCounters,
    /// Number of TLPs seen.
    pub seen: u64,
    /// Start of the current TLP, which is the last TLP seen.
    pub at: Instant,
    direction: Direction,
    tlp: &'static str,
    /// The recorded parts of the current TLP's payload.
    pub payload: Payload,
    /// Number of bytes at the start of the current TLP's payload that are certainly no user data.
    pub protocol: usize,
    /// Further ranges of the current TLP's payload that are certainly no user data, in order.
    pub protocol_parts: Vec<Range<usize>>,
    /// Whether the current TLP is a push.
    pub is_push: bool,
    length: u32,
    events: VecDeque<Event>,
    next_uid: Uid,
    open: usize,
    steps: usize,
    data: usize,
}

impl Shared {
    pub fn new(settings: AnalyserSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Begins the next TLP.
    pub fn begin(&mut self, at: Instant, direction: Direction, tlp: &Tlp, payload: Payload) {
        (self.payload, self.protocol) = (payload, 0);
        self.protocol_parts.clear();
        self.is_push = false;
        (self.at, self.direction, self.tlp) = (at, direction, tlp.mnemonic());
        self.length = (tlp.header_length() + tlp.data.len()) as u32;
        self.seen += 1;
        self.counters.poisoned += u64::from(tlp.poisoned);
    }

    /// Returns the current TLP as a step of a command.
    pub fn step(&self, kind: StepKind, address: u64, bytes: usize, tag: Option<Tag>) -> Step {
        Step {
            at: self.at,
            number: self.seen - 1,
            kind,
            direction: self.direction,
            tlp: self.tlp,
            address,
            bytes: bytes as u32,
            length: self.length,
            tag,
            status: Status::Success,
            from_push: self.payload.from_push,
        }
    }

    /// Marks a further range of the current payload, after the ranges marked before, as no user
    /// data.
    pub fn is_protocol(&mut self, bytes: Range<usize>) {
        match self.protocol_parts.last_mut() {
            Some(last) if last.end == bytes.start => last.end = bytes.end,
            None if self.protocol == bytes.start => self.protocol = bytes.end,
            _ => self.protocol_parts.push(bytes),
        }
    }

    fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Returns a number for a new command; `None` if there are too many commands.
    pub fn open_command(&mut self) -> Option<Uid> {
        if self.open >= self.limits().commands {
            self.counters.dropped += 1;
            return None;
        }
        self.open += 1;
        self.next_uid += 1;
        Some(self.next_uid)
    }

    /// Emits a finished command.
    pub fn close_command(&mut self, command: Command) {
        self.open -= 1;
        self.emit(Event::Command(Box::new(command)));
    }

    /// Queues an event; drops the oldest if the queue is full.
    pub fn emit(&mut self, event: Event) {
        if self.events.len() >= self.limits().events {
            self.counters.dropped += 1;
            self.next_event();
        }
        self.events.push_back(event);
    }

    pub fn next_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        if let Event::Command(command) = &event {
            self.steps -= command.steps.len();
            self.data -= command.data.as_ref().map_or(0, Vec::len);
        }
        Some(event)
    }

    /// Adds a step to a command: always to its traffic, and to its list of steps if there is room.
    pub fn add_step(&mut self, command: &mut Command, step: Step) {
        command.traffic.add(&step);
        if self.steps >= self.limits().steps {
            command.steps_dropped += 1;
            self.counters.dropped += 1;
            return;
        }
        self.steps += 1;
        command.steps.push(step);
    }

    /// Returns the recorded part of `bytes`, which begin `lead` bytes into the current payload.
    pub fn known<'a>(&self, lead: usize, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[..self.payload.known.saturating_sub(lead).min(bytes.len())]
    }

    /// Stores bytes of a command's data from `offset` on.
    pub fn keep(&mut self, command: &mut Command, offset: u64, bytes: &[u8]) {
        let most = command.transfer.bytes();
        let Some(data) = &mut command.data else { return };
        let length = (bytes.len() as u64).min(most.saturating_sub(offset)) as usize;
        let Ok(offset) = usize::try_from(offset) else { return };
        let more = (offset + length).saturating_sub(data.len());
        if self.data + more > self.settings.limits.data {
            self.data -= data.len();
            self.counters.dropped_data += 1;
            command.data = None;
            return;
        }
        self.data += more;
        if more > 0 {
            data.resize(offset + length, 0);
        }
        data[offset..offset + length].copy_from_slice(&bytes[..length]);
    }

    /// Stores the print of a part of the current payload that is a command's data from `offset` on.
    pub fn print_part(&mut self, command: &mut Command, offset: u64, part: &Range<usize>) {
        let hole = self.payload.holes.iter().find(|(hole, _)| hole == part);
        if let Some((_, print)) = hole
            && command.steps_dropped == 0
        {
            command.prints.push(Print { offset, bytes: part.len() as u32, print: *print });
        }
    }

    /// Stores the print of the current TLP, which has `bytes` of the command's data from `offset`
    /// on.
    pub fn print(&mut self, command: &mut Command, offset: u64, bytes: u32) {
        if let Some(print) = self.payload.print
            && command.steps_dropped == 0
        {
            command.prints.push(Print { offset, bytes, print });
        }
    }

    /// Drops a command's data.
    pub fn forget_data(&mut self, command: &mut Command) {
        self.data -= command.data.take().map_or(0, |data| data.len());
    }
}
