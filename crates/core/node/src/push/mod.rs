//! The near side of push (`docs/push.md`): follows the NVMe controllers below a root port from the
//! TLPs that pass, and sends the bytes that a doorbell makes certain in front of it.
//!
//! A follower sees every TLP between the root complex and what is below. Of functions of class
//! 01 08 02 it learns registers, queues and LBA formats; what it did not see, it does not know, and
//! pushes nothing. Everything that ends a pushed byte and comes from above, it tells the far side
//! in front of the TLP that ends it.

mod completions;
mod controller;
mod doorbell;
mod identify;
mod in_flight;
mod learn;
mod messages;
mod reason;
mod reset_event;
mod unread;
pub use completions::Completions;
pub use doorbell::HostMemory;
pub use reason::NotPushed;
pub use reset_event::ResetEvent;
pub use wire::push::Reason;

use controller::Controller;
pub(crate) use doorbell::Host;
use doorbell::Turn;
use follow::{ConfigShadow, Places};
use pcie::config::{command, register};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use wire::push::Record;
use wire::tlp::{Completion, ConfigRequest, MemoryRequest, Packet, Status, Tlp};
use wire::{Arena, Bdf, Tag};

wire::named! {
    /// What is pushed.
    #[derive(Default)]
    pub enum Mode {
        /// Nothing: no message is sent.
        Off "off",
        /// Submission queue entries.
        Entries "entries",
        /// Entries, PRP and SGL lists, and data for the drive.
        #[default]
        All "all",
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| Self::ALL.map(Self::name).join(", "))
    }
}

/// Settings of push.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What is pushed.
    pub mode: Mode,
    /// Bytes pushed over a link for the commands that are not complete. More commands get no push,
    /// or only that of their entries.
    pub bound: usize,
}

impl Default for Settings {
    /// All. The bound is a quarter of a link's default window for posted TLPs (1 MiB): what is
    /// pushed for writes in flight never keeps the credits from the doorbells of others.
    fn default() -> Self {
        Self { mode: Mode::default(), bound: 256 << 10 }
    }
}

/// Counters of what was pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent.
    pub messages: u64,
    /// Submission queue entries pushed.
    pub entries: u64,
    /// Submission queue entries rung for with no push.
    pub unpushed: u64,
    /// Bytes of entries, lists and data pushed.
    pub bytes: u64,
    /// Commands that were not pushed, or only in part, by reason. A doorbell of a queue that is not
    /// known counts as one.
    pub not_pushed: NotPushed,
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, entries, unpushed, bytes, not_pushed } = self;
        write!(
            f,
            "{bytes} bytes in {messages} messages; {entries} submission queue entries pushed, \
             {unpushed} fetched"
        )?;
        for (at, (reason, commands)) in not_pushed.iter().enumerate() {
            let front = if at == 0 { "; commands not pushed, or in part:" } else { "," };
            write!(f, "{front} {commands} {reason}")?;
        }
        Ok(())
    }
}

/// The requester ID of host software.
const HOST: Bdf = Bdf::new(0, 0, 0);
/// Endings of ranges that wait for the next poll; beyond, everything ends.
const MOST_PENDING: usize = 16;

/// Bytes of memory for messages that are used again together.
const BLOCK: usize = 64 << 10;

/// A read of host software that is not completed.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// Of a configuration register: its offset and the bytes asked for.
    Config(Bdf, u16, u8),
    /// Of a controller's registers: the offset of the first byte.
    Register(Bdf, u64),
}

/// A function below the root port.
#[derive(Debug, Default)]
struct Function {
    shadow: ConfigShadow,
    controller: Controller,
}

/// The follower of all controllers below a root port.
#[derive(Debug)]
pub(crate) struct Follower {
    settings: Settings,
    functions: BTreeMap<Bdf, Function>,
    /// The registers of controllers: BAR 0.
    bars: Places<Bdf>,
    reads: BTreeMap<Tag, Read>,
    /// Endings that no TLP brings along.
    pending: Vec<(Bdf, Record)>,
    counters: Counters,
    /// For entries and messages.
    arena: Arena,
}

impl Follower {
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            functions: BTreeMap::new(),
            bars: Places::default(),
            reads: BTreeMap::new(),
            pending: Vec::new(),
            counters: Counters::default(),
            arena: Arena::new(BLOCK),
        }
    }

    /// Zeros if nothing is to be pushed: then there is no reason to count either.
    pub fn counters(&self) -> Counters {
        if self.settings.mode == Mode::Off { Counters::default() } else { self.counters }
    }

    /// Takes a TLP on its way down. Adds to `out` what goes down now, in order: the TLP behind what
    /// has to be in front of it.
    pub fn down(&mut self, tlp: Tlp, host: &mut Host<'_>, out: &mut Vec<Tlp>) {
        let before = out.len();
        self.endings(host, out);
        match tlp.packet {
            Packet::ConfigRead(c) => {
                self.reads.insert(c.tag, Read::Config(c.target, c.register, c.first_be));
            }
            Packet::ConfigWrite(c) => {
                self.config_write(c, &tlp.data);
                self.endings(host, out);
            }
            Packet::MemoryRead(r) => {
                if let Some((bdf, offset)) = self.target(r.first_byte()) {
                    self.reads.insert(r.tag, Read::Register(bdf, offset));
                }
            }
            Packet::MemoryWrite(r) => self.register_write(&tlp, r, host, out),
            Packet::Completion(c) => self.fetched(&c, &tlp, host, out),
            Packet::Message(_) => {}
        }
        self.counters.messages += (out.len() - before) as u64;
        out.push(tlp);
    }

    /// Takes note of a TLP on its way up, before the root complex takes it.
    pub fn up(&mut self, tlp: &Tlp) {
        match tlp.packet {
            Packet::Completion(c) if c.requester == HOST => self.completion(c, tlp),
            Packet::MemoryRead(r) => {
                if let Some(function) = self.functions.get_mut(&r.requester) {
                    function.controller.host_read(r);
                }
            }
            Packet::MemoryWrite(r) if tlp.run.is_some() => {
                let written = r.address..r.address.saturating_add(tlp.payload() as u64);
                let function = self.functions.get(&r.requester);
                if function.is_some_and(|function| !function.controller.ignores(&written)) {
                    tlp.clone().singles().for_each(|tlp| self.up(&tlp));
                }
            }
            Packet::MemoryWrite(r) => {
                if let Some(function) = self.functions.get_mut(&r.requester) {
                    let ended = function.controller.host_write(tlp, r);
                    self.pending.extend(ended.map(|record| (r.requester, record)));
                }
            }
            _ => {}
        }
    }

    /// Whether something goes down now without a TLP from above.
    pub fn is_due(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Adds to `out` what goes down now without a TLP from above.
    pub fn due(&mut self, host: &Host<'_>, out: &mut Vec<Tlp>) {
        let before = out.len();
        self.endings(host, out);
        self.counters.messages += (out.len() - before) as u64;
    }

    /// Adds the endings that wait, as messages.
    fn endings(&mut self, host: &Host<'_>, out: &mut Vec<Tlp>) {
        if !self.is_due() {
            return;
        }
        for (bdf, record) in self.pending.drain(..) {
            if host.room(bdf).is_some() {
                out.push(host.ending(bdf, &record));
            }
        }
    }

    /// What reports to the driver of the controller at `bdf` that it was reset.
    pub fn reset_event(&self, bdf: Bdf) -> Option<ResetEvent> {
        self.functions.get(&bdf)?.controller.reset_event()
    }

    /// Everything below was reset, and with it what was pushed.
    pub fn reset(&mut self) {
        let Self { settings, counters, .. } = *self;
        *self = Self { counters, ..Self::new(settings) };
    }

    /// Forgets the functions on these buses: they were reset or removed. A link that came up again
    /// meanwhile may have got something for the functions as they were.
    pub fn forget(&mut self, buses: RangeInclusive<u8>) {
        let gone = self.functions.extract_if(.., |bdf, _| buses.contains(&bdf.bus()));
        for (bdf, mut function) in gone {
            let ended = function.controller.end_all();
            self.pending.extend(ended.map(|record| (bdf, record)));
        }
        self.place_bars();
    }

    /// Host memory at these addresses is other memory from now on.
    pub fn remapped(&mut self, range: Range<u64>) {
        if self.pending.len() >= MOST_PENDING {
            return self.end_all();
        }
        let length = range.end.saturating_sub(range.start);
        let record = Record::EndRange { address: range.start, length };
        let pushed = self.functions.iter().filter(|(_, function)| function.controller.has_pushed);
        self.pending.extend(pushed.map(|(bdf, _)| (*bdf, record.clone())));
    }

    /// Ends everything pushed to any function.
    pub fn end_all(&mut self) {
        for (bdf, function) in &mut self.functions {
            let ended = function.controller.end_all();
            self.pending.extend(ended.map(|record| (*bdf, record)));
        }
    }

    fn config_write(&mut self, c: ConfigRequest, data: &[u8]) {
        let Some(value) = data.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else {
            return;
        };
        let function = self.functions.entry(c.target).or_default();
        if function.shadow.is_bridge() && c.register == register::PRIMARY_BUS {
            // The functions of these buses have other numbers, or are other functions.
            let before = function.shadow.buses();
            function.shadow.write(c.register, c.first_be, value);
            let moved = moved(before, function.shadow.buses());
            self.end_all();
            self.functions.retain(|bdf, _| !moved.iter().any(|buses| buses.contains(&bdf.bus())));
            return self.place_bars();
        }
        function.shadow.write(c.register, c.first_be, value);
        if function.shadow.header_type() != Some(0) {
            // Bus mastering, a reset of the bus below, windows: whatever is below may be concerned.
            self.end_all();
        } else {
            if may_reset(&c, value) {
                function.controller.admin_tail = None;
            }
            let ended = function.controller.end_all();
            self.pending.extend(ended.map(|record| (c.target, record)));
            self.place_bars();
        }
    }

    /// Finds the registers of controllers by address: BAR 0, once it has an address and its size is
    /// known.
    fn place_bars(&mut self) {
        let bar = |(bdf, function): (&Bdf, &Function)| {
            let shadow = &function.shadow;
            let certain = shadow.is_nvme() == Some(true) && shadow.header_type() == Some(0);
            Some((shadow.bar(0, None).filter(|_| certain)?, *bdf))
        };
        self.bars = self.functions.iter().filter_map(bar).collect();
    }

    /// The controller with a register at `address`, and its offset.
    fn target(&self, address: u64) -> Option<(Bdf, u64)> {
        self.bars.at(address).map(|(offset, bdf)| (*bdf, offset))
    }

    fn completion(&mut self, c: Completion, tlp: &Tlp) {
        let Some(read) = self.reads.remove(&c.tag) else { return };
        if c.status != Status::Success || tlp.poisoned {
            return;
        }
        match read {
            Read::Config(bdf, register, enables) => {
                let Some(value) = tlp.data.first_chunk() else { return };
                let function = self.functions.entry(bdf).or_default();
                if function.shadow.read(register, enables, u32::from_le_bytes(*value)) {
                    self.place_bars();
                }
            }
            Read::Register(bdf, offset) => {
                let Some(function) = self.functions.get_mut(&bdf) else { return };
                let lead = usize::from(c.lower_address & 3);
                let end = tlp.data.len().min(lead + usize::from(c.byte_count));
                let bytes = tlp.data.get(lead..end).unwrap_or_default();
                function.controller.registers.read(offset, bytes);
            }
        }
    }

    fn register_write(
        &mut self,
        tlp: &Tlp,
        r: MemoryRequest,
        host: &mut Host<'_>,
        out: &mut Vec<Tlp>,
    ) {
        let Some((bdf, offset)) = self.target(r.address) else { return };
        self.with_turn(bdf, host, out, |controller, turn| {
            for (at, bytes) in pcie::split::enabled_runs(&r, &tlp.data) {
                controller.register_write(offset + at as u64, &bytes, turn);
            }
        });
    }

    fn fetched(&mut self, c: &Completion, tlp: &Tlp, host: &mut Host<'_>, out: &mut Vec<Tlp>) {
        let reads = |function: &Function| function.controller.unread.awaits_completions();
        if c.status != Status::Success || !self.functions.get(&c.requester).is_some_and(reads) {
            return;
        }
        self.with_turn(c.requester, host, out, |controller, turn| {
            controller.fetched(c, &tlp.data, turn);
        });
    }

    /// Adds to `out` what goes in front of a TLP to the controller at `bdf`, which takes note of the
    /// TLP.
    fn with_turn(
        &mut self,
        bdf: Bdf,
        host: &mut Host<'_>,
        out: &mut Vec<Tlp>,
        note: impl FnOnce(&mut Controller, &mut Turn<'_, '_>),
    ) {
        let others = self.in_flight_beside(bdf);
        let Some(function) = self.functions.get_mut(&bdf) else { return };
        let (settings, counters) = (self.settings, &mut self.counters);
        let (arena, before) = (&mut self.arena, out.len());
        let mut turn = Turn { host, bdf, settings, others, counters, arena, out, before };
        note(&mut function.controller, &mut turn);
    }

    /// Bytes in flight for the other controllers of a function's link: what is pushed goes to the
    /// bus right below the port alone.
    fn in_flight_beside(&self, bdf: Bdf) -> usize {
        let others = self.functions.iter().filter(|(of, _)| of.bus() == bdf.bus() && **of != bdf);
        others.map(|(_, function)| function.controller.in_flight.bytes()).sum()
    }
}

/// The buses that are others after a write of a bridge's bus numbers: with another secondary bus all
/// below, before and after; else those that it gained or lost.
fn moved(before: Option<(u8, u8)>, after: Option<(u8, u8)>) -> Vec<RangeInclusive<u8>> {
    match (before, after) {
        (Some((first, old)), Some((second, new))) if first == second => {
            let (least, most) = (old.min(new), old.max(new));
            (least < most).then(|| least + 1..=most).into_iter().collect()
        }
        _ => before.into_iter().chain(after).map(|(first, last)| first..=last).collect(),
    }
}

/// Whether a write to a type 0 header turns bus mastering off, or may be a function level reset:
/// bit 15 of Device Control, in a capability, which begins at 40h or behind (PCIe Base 4.0, sections
/// 7.5.1 and 7.5.3.4). Such a driver waits for no event.
fn may_reset(c: &ConfigRequest, value: u32) -> bool {
    let written = c.register == register::COMMAND && c.first_be & 1 != 0;
    let masters = value as u16 & command::BUS_MASTER != 0;
    written && !masters || c.register >= 0x40 && c.first_be & 2 != 0 && value & 1 << 15 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buses_that_are_others_afterwards() {
        let (old, same) = (Some((2, 5)), Some((2, 5)));
        assert_eq!(moved(None, old), [2..=5]);
        assert_eq!(moved(old, same), []);
        assert_eq!(moved(old, Some((2, 7))), [6..=7], "gained");
        assert_eq!(moved(old, Some((2, 3))), [4..=5], "lost");
        assert_eq!(moved(old, Some((4, 6))), [2..=5, 4..=6]);
        assert_eq!(moved(old, None), [2..=5]);
    }

    #[test]
    fn controllers_of_a_link_share_its_bound() {
        let mut follower = Follower::new(Settings::default());
        let functions = [(3, 0, 100), (3, 1, 20), (4, 0, 7)].map(|(bus, function, bytes)| {
            let bdf = Bdf::new(bus, 0, function);
            let function = follower.functions.entry(bdf).or_default();
            function.controller.in_flight.add((1, 0), bytes);
            bdf
        });
        let beside = functions.map(|bdf| follower.in_flight_beside(bdf));
        assert_eq!(beside, [20, 100, 0]);
    }
}
