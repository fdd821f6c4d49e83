//! The built-in protocol analyser: from TLPs as they pass one point to NVMe commands.
//!
//! The input of an [`Analyser`] is the TLPs, from enumeration on. It finds the endpoints and their
//! BARs from configuration requests, queues from the registers and admin commands, and follows
//! every command from its doorbell through its pointers to the head doorbell. What it cannot
//! explain it counts, see [`AnalyserCounters`].
//!
//! Where a host pushes (`docs/push.md`), entries, lists and data come in messages in front of the
//! doorbell. These open the command, and a fetch by the drive that passes here all the same is a
//! part of it.
//!
//! Followed: PRPs and PRP lists, SGLs of one data block, MSI-X, resets. Not followed: SGL segments,
//! metadata, queues that are not contiguous or lie in the drive (CMB), shadow doorbells.

mod claims;
mod command;
mod controller;
mod counters;
mod down;
mod pending;
mod queues;
mod rings;
mod shared;
mod step;
#[cfg(test)]
pub(crate) mod tests;
mod transfer;
mod up;

pub mod intervals;
pub mod json;
pub mod replay;
pub mod stream;
pub mod view;

pub(crate) use command::print_of;
pub use command::{
    Command, Print, PushUse, PushedBytes, Traffic, Transfer, command_name, command_names,
};
pub use counters::AnalyserCounters;
pub use rings::{Ring, RingState};
pub use shared::Payload;
pub use step::{Direction, Step, StepKind};

use controller::Controller;
use follow::{ConfigShadow, Places};
use pending::Pending;
use shared::Shared;
use std::collections::BTreeMap;
use std::ops::Range;
use wire::tlp::{Status, Tlp};
use wire::{Bdf, Duration, Instant};

/// Functions that are followed at most.
const MOST_FUNCTIONS: usize = 64;

/// Presumed size of a BAR that nobody sized: registers, doorbells of 64 queues and an MSI-X table
/// fit.
const PRESUMED_BAR: u64 = 0x4000;

/// A requester waits so long for a completion by default, or less (PCIe Base 4.0, section
/// 7.5.3.16: 50 us to 50 ms).
const COMPLETION_TIMEOUT: Duration = Duration::from_ms(50);

/// Bounds of an analyser's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Commands in flight.
    pub commands: usize,
    /// Steps of commands in flight and of those not taken yet.
    pub steps: usize,
    /// Events not taken yet.
    pub events: usize,
    /// Bytes of collected data of commands in flight and not taken yet.
    pub data: usize,
}

impl Default for Limits {
    /// 16 Ki commands, 1 Mi steps (64 MiB), 64 Ki events, 256 MiB of data.
    fn default() -> Self {
        Self { commands: 1 << 14, steps: 1 << 20, events: 1 << 16, data: 256 << 20 }
    }
}

/// Settings of an analyser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnalyserSettings {
    /// Keep the data of every command, see [`Command::data`].
    pub collect_data: bool,
    /// Tell where the rings are, see [`Event::Ring`].
    pub follow_rings: bool,
    /// Bounds of memory.
    pub limits: Limits,
}

/// The kind of a host request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRequestKind {
    /// CfgRd0 or CfgRd1.
    ConfigRead,
    /// CfgWr0 or CfgWr1.
    ConfigWrite,
    /// MRd of a register.
    MemoryRead,
}

/// A request of the host with its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// Its kind.
    pub kind: HostRequestKind,
    /// The function: always known for configuration requests.
    pub target: Option<Bdf>,
    /// Register of the configuration space, or address, of the double word.
    pub address: u64,
    /// Byte enables of the first double word.
    pub enables: u8,
    /// The first double word, written or read.
    pub value: u32,
    /// Start of the request.
    pub at: Instant,
    /// From the start of the request to the start of its completion.
    pub latency: Duration,
    /// Status of its completion.
    pub status: Status,
}

/// A finding of an analyser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A command ended.
    Command(Box<Command>),
    /// A request of the host completed.
    Request(HostRequest),
    /// The controller of this function was reset.
    Reset(Bdf),
    /// A ring has moved.
    Ring(RingState),
}

#[derive(Debug, Default)]
struct Function {
    shadow: ConfigShadow,
    controller: Option<Box<Controller>>,
}

impl Function {
    /// Whether it is an NVMe controller; a function whose class nobody read is taken for one.
    fn is_nvme(&self) -> bool {
        self.shadow.is_nvme().unwrap_or(true)
    }

    fn bar(&self, index: usize) -> Option<Range<u64>> {
        self.shadow.bar(index, Some(PRESUMED_BAR))
    }
}

/// Follows NVMe commands through the TLPs of one point.
#[derive(Debug, Default)]
pub struct Analyser {
    functions: BTreeMap<Bdf, Function>,
    /// The memory of endpoints.
    bars: Places<Bdf>,
    pending: Pending,
    shared: Shared,
}

impl Analyser {
    /// An analyser of a link before its first TLP.
    pub fn new(settings: AnalyserSettings) -> Self {
        Self { shared: Shared::new(settings), ..Self::default() }
    }

    /// Takes the next TLP of the link, at the time it began; times do not go
    /// back. Then take the [`next_event`](Self::next_event)s.
    pub fn push(&mut self, at: Instant, direction: Direction, tlp: &Tlp) {
        let payload = Payload { known: tlp.data.len(), ..Payload::default() };
        self.push_recorded(at, direction, tlp, payload);
    }

    /// As [`push`](Self::push), of a TLP of whose payload only so much is there. What is not there
    /// is not interpreted.
    pub fn push_recorded(
        &mut self,
        at: Instant,
        direction: Direction,
        tlp: &Tlp,
        payload: Payload,
    ) {
        self.shared.begin(at, direction, tlp, payload);
        match direction {
            Direction::Down => self.down(tlp),
            Direction::Up => self.up(tlp),
        }
    }

    /// Bytes of the payload of the TLP pushed last, from the first on, that are for certain no
    /// data of users: registers, queue entries, PRP and SGL lists, ranges of blocks, interrupts,
    /// what a drive says of itself.
    pub fn protocol(&self) -> usize {
        self.shared.protocol
    }

    /// Of a push, further parts of it of which that is certain, behind these bytes and in order:
    /// between and behind them are data of users.
    pub fn protocol_parts(&self) -> Option<&[Range<usize>]> {
        self.shared.is_push.then_some(&self.shared.protocol_parts)
    }

    /// Counts a TLP that cannot be decoded, so that it has a number.
    pub fn skip(&mut self) {
        self.shared.seen += 1;
    }

    /// The next thing found, in the order in which they ended.
    pub fn next_event(&mut self) -> Option<Event> {
        self.shared.next_event()
    }

    /// Everything below was reset, which no TLP shows: a hot reset or a new
    /// connection of the tunnel.
    pub fn link_reset(&mut self) {
        let all: Vec<Bdf> = self.functions.keys().copied().collect();
        all.into_iter().for_each(|function| self.reset_function(function));
    }

    /// Everything behind downstream port `port` of the first switch was reset.
    pub fn port_reset(&mut self, port: u8) {
        // The root port does not show, so the first bridge is the upstream port.
        let mut bridges = self.functions.iter().filter(|(_, f)| f.shadow.is_bridge());
        let inside = bridges.next().and_then(|(_, upstream)| upstream.shadow.buses());
        let Some((inside, _)) = inside else { return self.link_reset() };
        let port = self.functions.get(&Bdf::new(inside, port, 0));
        if let Some(buses) = port.and_then(|port| port.shadow.buses()) {
            self.reset_bus(buses);
        }
    }

    /// TLPs are missing here: commands on their way end as they are, and
    /// queues go on from where they are next seen.
    pub fn gap(&mut self) {
        self.pending = Pending::default();
        for controller in self.functions.values_mut().filter_map(|f| f.controller.as_mut()) {
            controller.gap(&mut self.shared);
        }
    }

    /// The capture ends at `end`: forgets the requests that may still be answered, and yields how
    /// many these are.
    pub fn forget_young_requests(&mut self, end: Instant) -> u64 {
        self.pending.forget_since(end - COMPLETION_TIMEOUT)
    }

    /// The capture is over: commands on their way end as they are.
    pub fn finish(&mut self) {
        self.shared.counters.unanswered += self.pending.len() as u64;
        for controller in self.functions.values_mut().filter_map(|f| f.controller.as_mut()) {
            controller.end(&mut self.shared);
        }
    }

    /// The counters so far.
    pub fn counters(&self) -> &AnalyserCounters {
        &self.shared.counters
    }

    /// TLPs seen so far: the number that the next one gets in [`Step::number`].
    pub fn seen(&self) -> u64 {
        self.shared.seen
    }

    fn reset_function(&mut self, function: Bdf) {
        self.pending.forget(function);
        if let Some(function) = self.functions.get_mut(&function) {
            function.shadow.reset();
            if let Some(controller) = &mut function.controller {
                controller.reset(&mut self.shared);
            }
        }
        self.place_bars();
    }

    fn place_bars(&mut self) {
        let endpoints = self.functions.iter().filter(|(_, f)| !f.shadow.is_bridge());
        let bars = endpoints.flat_map(|(bdf, function)| {
            (0..6).filter_map(|index| Some((function.bar(index)?, *bdf)))
        });
        self.bars = bars.collect();
    }

    fn reset_bus(&mut self, buses: (u8, u8)) {
        let below = |bdf: &Bdf| (buses.0..=buses.1).contains(&bdf.bus());
        let functions: Vec<Bdf> = self.functions.keys().copied().filter(below).collect();
        functions.into_iter().for_each(|function| self.reset_function(function));
    }
}
