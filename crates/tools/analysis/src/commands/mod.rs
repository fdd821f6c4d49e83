//! The built-in protocol analyser: reconstructs NVMe commands from the TLPs that pass one point.
//!
//! An [`Analyser`] receives all TLPs, starting with enumeration. It finds endpoints and BARs in
//! configuration requests, and queues in registers and admin commands. It follows every command
//! from the doorbell through the pointers to the head doorbell. TLPs that it cannot explain are
//! counted, see [`AnalyserCounters`].
//!
//! If a host pushes (`docs/push.md`), entries, lists and data arrive in messages in front of the
//! doorbell. The messages open the command. If the drive fetches pushed bytes from the host
//! nevertheless, the fetch belongs to the command.
//!
//! The analyser follows PRPs and PRP lists, SGLs of one data block, MSI-X and resets. It does not
//! follow SGL segments, metadata, queues that are not contiguous or are in the drive (CMB), and
//! shadow doorbells.

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

/// Maximum number of functions that are followed.
const MOST_FUNCTIONS: usize = 64;

/// Size of a BAR that the host did not size. The registers, doorbells of 64 queues and an MSI-X
/// table fit into it.
const PRESUMED_BAR: u64 = 0x4000;

/// The longest time for which a requester waits for a completion by default (PCIe Base 4.0, section
/// 7.5.3.16: 50 us to 50 ms).
const COMPLETION_TIMEOUT: Duration = Duration::from_ms(50);

/// Bounds of an analyser's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of commands in flight.
    pub commands: usize,
    /// Maximum number of steps in commands that are in flight or not yet taken.
    pub steps: usize,
    /// Maximum number of events that are not yet taken.
    pub events: usize,
    /// Maximum number of data bytes in commands that are in flight or not yet taken.
    pub data: usize,
}

impl Default for Limits {
    /// Returns 16 Ki commands, 1 Mi steps (64 MiB), 64 Ki events and 256 MiB of data.
    fn default() -> Self {
        Self { commands: 1 << 14, steps: 1 << 20, events: 1 << 16, data: 256 << 20 }
    }
}

/// Settings of an analyser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnalyserSettings {
    /// Whether to keep the data of every command, see [`Command::data`].
    pub collect_data: bool,
    /// Whether to emit the positions of the rings, see [`Event::Ring`].
    pub follow_rings: bool,
    /// Bounds of the analyser's memory.
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

/// A request of the host and its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// Kind of the request.
    pub kind: HostRequestKind,
    /// Target function; always known for configuration requests.
    pub target: Option<Bdf>,
    /// Register number in configuration space, or bus address, of the double word.
    pub address: u64,
    /// Byte enables of the first double word.
    pub enables: u8,
    /// The first double word, written or read.
    pub value: u32,
    /// Start of the request.
    pub at: Instant,
    /// Time from the start of the request to the start of its completion.
    pub latency: Duration,
    /// Status of the completion.
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
    /// The position of a ring changed.
    Ring(RingState),
}

#[derive(Debug, Default)]
struct Function {
    shadow: ConfigShadow,
    controller: Option<Box<Controller>>,
}

impl Function {
    /// Returns whether the function is an NVMe controller. A function whose class code was not read
    /// counts as one.
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
    /// Address ranges of the endpoints' BARs, each with its function.
    bars: Places<Bdf>,
    pending: Pending,
    shared: Shared,
}

impl Analyser {
    /// Creates an analyser for a link, before the first TLP.
    pub fn new(settings: AnalyserSettings) -> Self {
        Self { shared: Shared::new(settings), ..Self::default() }
    }

    /// Processes the next TLP of the link, which began at `at`. Times must not decrease. Take the
    /// [`next_event`](Self::next_event)s afterwards.
    pub fn push(&mut self, at: Instant, direction: Direction, tlp: &Tlp) {
        let payload = Payload { known: tlp.data.len(), ..Payload::default() };
        self.push_recorded(at, direction, tlp, payload);
    }

    /// Processes a TLP like [`push`](Self::push) if only a part of its payload was recorded. The
    /// rest is not interpreted.
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

    /// Returns the number of bytes at the start of the last TLP's payload that are certainly no
    /// user data: registers, queue entries, PRP and SGL lists, ranges of blocks, interrupts,
    /// descriptions of the drive.
    pub fn protocol(&self) -> usize {
        self.shared.protocol
    }

    /// Returns the further parts of a push that are certainly no user data, in order; `None` if the
    /// last TLP is not a push. The bytes between and after these parts are user data.
    pub fn protocol_parts(&self) -> Option<&[Range<usize>]> {
        self.shared.is_push.then_some(&self.shared.protocol_parts)
    }

    /// Counts a TLP that cannot be decoded, so that later TLPs have the correct number.
    pub fn skip(&mut self) {
        self.shared.seen += 1;
    }

    /// Returns the next event, in the order in which the events ended; `None` if no event is
    /// stored.
    pub fn next_event(&mut self) -> Option<Event> {
        self.shared.next_event()
    }

    /// Records a reset of everything below the link that no TLP shows: a hot reset or a new
    /// connection of the tunnel.
    pub fn link_reset(&mut self) {
        let all: Vec<Bdf> = self.functions.keys().copied().collect();
        all.into_iter().for_each(|function| self.reset_function(function));
    }

    /// Records a reset of everything behind downstream port `port` of the first switch.
    pub fn port_reset(&mut self, port: u8) {
        // The root port is not visible, so the first bridge is the upstream port.
        let mut bridges = self.functions.iter().filter(|(_, f)| f.shadow.is_bridge());
        let inside = bridges.next().and_then(|(_, upstream)| upstream.shadow.buses());
        let Some((inside, _)) = inside else { return self.link_reset() };
        let port = self.functions.get(&Bdf::new(inside, port, 0));
        if let Some(buses) = port.and_then(|port| port.shadow.buses()) {
            self.reset_bus(buses);
        }
    }

    /// Records that TLPs are missing. Commands in flight end. Queues continue from the position at
    /// which they are seen next.
    pub fn gap(&mut self) {
        self.pending = Pending::default();
        for controller in self.functions.values_mut().filter_map(|f| f.controller.as_mut()) {
            controller.gap(&mut self.shared);
        }
    }

    /// Forgets the requests that may still be answered after the end of the capture at `end`.
    /// Returns their number.
    pub fn forget_young_requests(&mut self, end: Instant) -> u64 {
        self.pending.forget_since(end - COMPLETION_TIMEOUT)
    }

    /// Ends the capture: commands in flight end.
    pub fn finish(&mut self) {
        self.shared.counters.unanswered += self.pending.len() as u64;
        for controller in self.functions.values_mut().filter_map(|f| f.controller.as_mut()) {
            controller.end(&mut self.shared);
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> &AnalyserCounters {
        &self.shared.counters
    }

    /// Returns the number of TLPs seen. This is the [`Step::number`] of the next TLP.
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
