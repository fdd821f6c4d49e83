//! The built-in protocol analyser: from TLPs as they pass one point to NVMe
//! commands.
//!
//! [`Analyser`] is told nothing but the TLPs, from enumeration on. It finds
//! the endpoints and their BARs from configuration requests, queues from the
//! registers and admin commands, and follows every command from its doorbell
//! through its pointers to the head doorbell. What it cannot explain it
//! counts, see [`Counters`].
//!
//! Followed: PRPs and PRP lists, SGLs of one data block, MSI-X, resets. Not
//! followed: SGL segments, metadata, queues that are not contiguous or lie in
//! the drive (CMB), shadow doorbells.

mod claims;
mod command;
mod config;
mod controller;
mod counters;
mod down;
mod pending;
mod queues;
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

pub use command::{Command, Transfer, command_name, command_names};
pub use counters::Counters;
pub use step::{Direction, Step, StepKind};

use config::Shadow;
use controller::Controller;
use pending::Pending;
use shared::Shared;
use std::collections::BTreeMap;
use step::Seen;
use wire::tlp::{Status, Tlp};
use wire::{Bdf, Duration, Instant};

/// Functions that are told apart.
const MOST_FUNCTIONS: usize = 64;

/// What an analyser may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Commands on their way.
    pub commands: usize,
    /// Steps of commands on their way and of those not taken yet.
    pub steps: usize,
    /// Events not taken yet.
    pub events: usize,
    /// Bytes of collected data of commands on their way and not taken yet.
    pub data: usize,
}

impl Default for Limits {
    /// 16 Ki commands, 1 Mi steps (64 MiB), 64 Ki events, 256 MiB of data.
    fn default() -> Self {
        Self { commands: 1 << 14, steps: 1 << 20, events: 1 << 16, data: 256 << 20 }
    }
}

/// What to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Keep the data of every command, see [`Command::data`].
    pub collect_data: bool,
    /// Bounds of memory.
    pub limits: Limits,
}

/// What the host asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRequestKind {
    /// CfgRd0 or CfgRd1.
    ConfigRead,
    /// CfgWr0 or CfgWr1.
    ConfigWrite,
    /// MRd of a register.
    MemoryRead,
}

/// A request of the host with its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRequest {
    /// What it asked for.
    pub kind: HostRequestKind,
    /// Whose configuration space; the function of a register if it is known.
    pub target: Option<Bdf>,
    /// Register of the configuration space, or address, of the double word.
    pub address: u64,
    /// Byte enables of the first double word.
    pub enables: u8,
    /// What was written, or read: the first double word.
    pub value: u32,
    /// Start of the request.
    pub at: Instant,
    /// From the start of the request to the start of its completion.
    pub latency: Duration,
    /// How it was answered.
    pub status: Status,
}

/// What an analyser found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A command ended.
    Command(Box<Command>),
    /// A request of the host was answered.
    Request(HostRequest),
    /// A controller was reset.
    Reset {
        /// Which.
        device: Bdf,
    },
}

#[derive(Debug, Default)]
struct Function {
    shadow: Shadow,
    controller: Option<Box<Controller>>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Analyser {
    functions: BTreeMap<Bdf, Function>,
    pending: Pending,
    shared: Shared,
}

impl Analyser {
    /// An analyser of a link on which nothing passed yet.
    pub fn new(settings: Settings) -> Self {
        Self { shared: Shared::new(settings), ..Self::default() }
    }

    /// Takes the next TLP of the link, at the time it began; times do not go
    /// back. Then take the [`next_event`](Self::next_event)s.
    pub fn push(&mut self, at: Instant, direction: Direction, tlp: &Tlp) {
        let seen = Seen { at, number: self.shared.seen, direction, tlp };
        self.shared.seen += 1;
        self.shared.counters.poisoned += u64::from(tlp.poisoned);
        match direction {
            Direction::Down => self.down(seen),
            Direction::Up => self.up(seen),
        }
    }

    /// A TLP passed that nobody can read: it has its number, and that is all.
    pub fn skip(&mut self) {
        self.shared.seen += 1;
    }

    /// The next thing found, in the order in which they ended.
    pub fn next_event(&mut self) -> Option<Event> {
        self.shared.next_event()
    }

    /// Everything below was reset, which no TLP tells: a hot reset or a new
    /// connection of the tunnel.
    pub fn link_reset(&mut self) {
        let all: Vec<Bdf> = self.functions.keys().copied().collect();
        all.into_iter().for_each(|function| self.reset_function(function));
    }

    /// Everything behind downstream port `port` of the first switch was reset.
    pub fn port_reset(&mut self, port: u8) {
        // The root port does not show, so the first bridge is the upstream
        // port.
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
        for function in self.functions.values_mut() {
            if let Some(controller) = &mut function.controller {
                controller.gap(&mut self.shared);
            }
        }
    }

    /// The capture is over: commands on their way end as they are.
    pub fn finish(&mut self) {
        self.shared.counters.unanswered += self.pending.len() as u64;
        for function in self.functions.values_mut() {
            if let Some(controller) = &mut function.controller {
                controller.end(&mut self.shared);
            }
        }
    }

    /// What was seen so far.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// TLPs seen so far: the number that the next one gets in
    /// [`Step::number`].
    pub fn seen(&self) -> u64 {
        self.shared.seen
    }

    /// Software's settings of a function are gone.
    fn reset_function(&mut self, function: Bdf) {
        self.pending.forget(function);
        if let Some(function) = self.functions.get_mut(&function) {
            function.shadow.reset();
            if let Some(controller) = &mut function.controller {
                controller.reset(&mut self.shared);
            }
        }
    }

    /// A bridge resets what is below it.
    fn reset_bus(&mut self, buses: (u8, u8)) {
        let below = |bdf: &Bdf| (buses.0..=buses.1).contains(&bdf.bus());
        let functions: Vec<Bdf> = self.functions.keys().copied().filter(below).collect();
        functions.into_iter().for_each(|function| self.reset_function(function));
    }
}
