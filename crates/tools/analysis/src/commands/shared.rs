//! State shared by all controllers: counters, limits, events.

use super::command::{Command, Print};
use super::queues::Uid;
use super::step::{Direction, Step, StepKind};
use super::{AnalyserCounters, AnalyserSettings, Event, Limits};
use std::collections::VecDeque;
use std::ops::Range;
use wire::tlp::{Status, Tlp};
use wire::{Instant, Tag};

/// What a recording has of a TLP's payload.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// Bytes from the first on that are known; those behind read as zeroes.
    pub known: usize,
    /// Further parts that are known, behind these and in order.
    pub parts: Vec<Range<usize>>,
    /// Prints of what is between and behind them.
    pub holes: Vec<(Range<usize>, u64)>,
    /// Equal payloads have equal prints, different ones different prints; `None` if unknown.
    pub print: Option<u64>,
    /// The port in front of the drive answered this read, or sent this completion, from pushed
    /// bytes: no link carried it.
    pub from_push: bool,
}

impl Payload {
    /// Whether these bytes are known.
    pub fn knows(&self, bytes: &Range<usize>) -> bool {
        let inside = |part: &Range<usize>| part.start <= bytes.start && bytes.end <= part.end;
        bytes.end <= self.known || self.parts.iter().any(inside)
    }
}

/// Counters, bounds and events of an analyser, and the TLP at hand.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub settings: AnalyserSettings,
    pub counters: AnalyserCounters,
    /// TLPs seen so far.
    pub seen: u64,
    /// Start of the TLP at hand, the last one of those seen.
    pub at: Instant,
    direction: Direction,
    tlp: &'static str,
    /// What is there of its payload.
    pub payload: Payload,
    /// Bytes of its payload, from the first on, that are for certain no data of users.
    pub protocol: usize,
    /// Further parts of it of which that is certain, in order.
    pub protocol_parts: Vec<Range<usize>>,
    /// It pushes.
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

    /// The next TLP is at hand.
    pub fn begin(&mut self, at: Instant, direction: Direction, tlp: &Tlp, payload: Payload) {
        (self.payload, self.protocol) = (payload, 0);
        self.protocol_parts.clear();
        self.is_push = false;
        (self.at, self.direction, self.tlp) = (at, direction, tlp.mnemonic());
        self.length = (tlp.header_length() + tlp.data.len()) as u32;
        self.seen += 1;
        self.counters.poisoned += u64::from(tlp.poisoned);
    }

    /// What the TLP at hand means for a command.
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

    /// These bytes of the payload at hand, behind those noted before, are no data of users.
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

    /// A name for a new command; `None` if there are too many.
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

    /// Adds a step to a command: to what it counts, and to its list if there is room.
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

    /// The part of `bytes`, which begin `lead` bytes into the payload at hand, that is known.
    pub fn known<'a>(&self, lead: usize, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[..self.payload.known.saturating_sub(lead).min(bytes.len())]
    }

    /// Keeps bytes of a command's data from `offset`.
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

    /// Notes the print of a part of the payload at hand, which is a command's data from `offset`.
    pub fn print_part(&mut self, command: &mut Command, offset: u64, part: &Range<usize>) {
        let hole = self.payload.holes.iter().find(|(hole, _)| hole == part);
        if let Some((_, print)) = hole
            && command.steps_dropped == 0
        {
            command.prints.push(Print { offset, bytes: part.len() as u32, print: *print });
        }
    }

    /// Notes the print of the TLP at hand, which has `bytes` of the command's data from `offset`.
    pub fn print(&mut self, command: &mut Command, offset: u64, bytes: u32) {
        if let Some(print) = self.payload.print
            && command.steps_dropped == 0
        {
            command.prints.push(Print { offset, bytes, print });
        }
    }

    /// Forgets a command's data.
    pub fn forget_data(&mut self, command: &mut Command) {
        self.data -= command.data.take().map_or(0, |data| data.len());
    }
}
