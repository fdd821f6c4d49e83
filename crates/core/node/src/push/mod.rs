//! The sender of pushed bytes (`docs/push.md`): follows the NVMe controllers below a root port from
//! the TLPs that pass, and sends the bytes that a doorbell makes certain in front of the doorbell.
//!
//! A follower sees every TLP between the root complex and the functions below. For functions of
//! class 01 08 02 it follows registers, queues and LBA formats. It pushes nothing that depends on
//! unseen state. If a TLP from above invalidates pushed bytes, the follower sends the invalidation
//! in front of that TLP.

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
pub use doorbell::{HostMemory, MOST_DATA};
pub use reason::NotPushed;
pub use reset_event::ResetEvent;
pub use wire::push::Reason;

use controller::Controller;
pub(crate) use doorbell::Host;
use doorbell::Turn;
use follow::{ConfigShadow, Places};
use pcie::config::{command, register};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use wire::push::Record;
use wire::tlp::{Completion, ConfigRequest, MemoryRequest, Packet, Status, Tlp};
use wire::{Arena, Bdf, Tag};

wire::named! {
    /// The kinds of bytes that are pushed.
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
    /// The kinds of bytes that are pushed.
    pub mode: Mode,
    /// The most bytes pushed over a link for incomplete commands. Beyond, only entries or nothing
    /// is pushed.
    pub bound: usize,
}

impl Default for Settings {
    /// Pushes everything. The bound is a quarter of a link's default window for posted TLPs (1
    /// MiB), so that pushed bytes never take the credits for doorbells.
    fn default() -> Self {
        Self { mode: Mode::default(), bound: 256 << 10 }
    }
}

/// Counters of push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent.
    pub messages: u64,
    /// Submission queue entries pushed.
    pub entries: u64,
    /// Submission queue entries rung without a push.
    pub unpushed: u64,
    /// Bytes of entries, lists and data pushed.
    pub bytes: u64,
    /// Commands that were not pushed, or only in part, by reason. A doorbell of an unknown queue
    /// counts as one command.
    pub not_pushed: NotPushed,
}

impl Counters {
    /// Name and value of each counter but `not_pushed`, in a fixed order.
    pub fn list(&self) -> [(&'static str, u64); 4] {
        let Self { messages, entries, unpushed, bytes, .. } = *self;
        [("messages", messages), ("entries", entries), ("unpushed", unpushed), ("bytes", bytes)]
    }
}

/// The requester ID of host software.
const HOST: Bdf = Bdf::new(0, 0, 0);
/// The most invalidations of ranges that wait for the next poll. Beyond this number, everything is
/// invalidated.
const MOST_PENDING: usize = 16;

/// Bytes per block of reusable memory for messages.
const BLOCK: usize = 64 << 10;

/// A read of host software that is not completed.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// A read of a configuration register: its offset and the number of bytes.
    Config(Bdf, u16, u8),
    /// A read of a controller's registers: the offset of the first byte.
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
    /// Invalidations that wait, without a TLP to precede.
    pending: Vec<(Bdf, Record)>,
    counters: Counters,
    /// Memory for entries and messages.
    arena: Arena,
}

impl Follower {
    pub(crate) fn new(settings: Settings) -> Self {
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

    /// The counters; zero if push is off, because then nothing is counted.
    pub(crate) fn counters(&self) -> Counters {
        if self.settings.mode == Mode::Off { Counters::default() } else { self.counters }
    }

    /// Handles a TLP on its way down. Appends the messages that must precede the TLP to `out`, then
    /// the TLP.
    pub(crate) fn down(&mut self, tlp: Tlp, host: &mut Host<'_>, out: &mut Vec<Tlp>) {
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

    /// Handles a TLP on its way up, before the root complex receives it.
    pub(crate) fn up(&mut self, tlp: &Tlp) {
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

    /// Whether messages must go down now without a TLP from above.
    pub(crate) fn is_due(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Appends the messages that must go down now without a TLP from above to `out`.
    pub(crate) fn due(&mut self, host: &Host<'_>, out: &mut Vec<Tlp>) {
        let before = out.len();
        self.endings(host, out);
        self.counters.messages += (out.len() - before) as u64;
    }

    /// Appends the waiting invalidations as messages.
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

    /// The event that reports a reset to the driver of the controller at `bdf`.
    pub(crate) fn reset_event(&self, bdf: Bdf) -> Option<ResetEvent> {
        self.functions.get(&bdf)?.controller.reset_event()
    }

    /// Handles a reset of everything below, which also drops all pushed bytes.
    pub(crate) fn reset(&mut self) {
        let Self { settings, counters, .. } = *self;
        *self = Self { counters, ..Self::new(settings) };
    }

    /// Forgets the functions on these buses, because they were reset or removed. Invalidates on a
    /// link that is up again, because the link may hold bytes for the old functions.
    pub(crate) fn forget(&mut self, buses: RangeInclusive<u8>) {
        let gone = self.functions.extract_if(.., |bdf, _| buses.contains(&bdf.bus()));
        for (bdf, mut function) in gone {
            let ended = function.controller.end_all();
            self.pending.extend(ended.map(|record| (bdf, record)));
        }
        self.place_bars();
    }

    /// Invalidates the bytes at these addresses, because the host memory there was replaced.
    pub(crate) fn remapped(&mut self, range: Range<u64>) {
        if self.pending.len() >= MOST_PENDING {
            return self.end_all();
        }
        let length = range.end.saturating_sub(range.start);
        let record = Record::EndRange { address: range.start, length };
        let pushed = self.functions.iter().filter(|(_, function)| function.controller.has_pushed);
        self.pending.extend(pushed.map(|(bdf, _)| (*bdf, record.clone())));
    }

    /// Invalidates everything pushed to any function.
    pub(crate) fn end_all(&mut self) {
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
            // The functions on these buses have other numbers now, or are other functions.
            let before = function.shadow.buses();
            function.shadow.write(c.register, c.first_be, value);
            let moved = moved(before, function.shadow.buses());
            self.end_all();
            self.functions.retain(|bdf, _| !moved.iter().any(|buses| buses.contains(&bdf.bus())));
            return self.place_bars();
        }
        function.shadow.write(c.register, c.first_be, value);
        if function.shadow.header_type() != Some(0) {
            // Bus mastering, secondary bus reset or windows change: everything below may be
            // affected.
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

    /// Appends the messages that must precede a TLP to the controller at `bdf` to `out`, and
    /// updates the controller's state.
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

    /// Bytes in flight for the other controllers behind a function's link. Only functions on the
    /// bus directly below the port receive pushed bytes.
    fn in_flight_beside(&self, bdf: Bdf) -> usize {
        let others =
            self.functions.iter().filter(|(other, _)| other.bus() == bdf.bus() && **other != bdf);
        others.map(|(_, function)| function.controller.in_flight.bytes()).sum()
    }
}

/// The buses that change after a write of a bridge's bus numbers. With another secondary bus, all
/// buses below, before and after; otherwise the added and removed ones.
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
/// bit 15 of Device Control, in a capability at 40h or above (PCIe Base 4.0, sections 7.5.1 and
/// 7.5.3.4). After such a write the driver expects no event.
fn may_reset(c: &ConfigRequest, value: u32) -> bool {
    let written = c.register == register::COMMAND && c.first_be & 1 != 0;
    let masters = value as u16 & command::BUS_MASTER != 0;
    written && !masters || c.register >= 0x40 && c.first_be & 2 != 0 && value & 1 << 15 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_returns_buses_gained_and_lost_by_a_port() {
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
