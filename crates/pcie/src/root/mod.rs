//! The root complex of the host node: one root port, the host's requests on
//! the way down, the devices' requests for host memory on the way up.

mod downwards;
#[cfg(test)]
mod tests;
mod upwards;

use crate::bridge::{self, Bridge};
use crate::config::PcieKind;
use crate::errors::Errors;
use crate::function::{self, Ready, Wait};
use crate::port_queues::{PortQueues, Receiver, Target};
use crate::software::{Request, RequestId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use wire::tlp::{Class, Tlp};
use wire::{Bdf, Duration, Instant};

/// Addresses that are message-signalled interrupts, as on x86
/// (Intel SDM volume 3, section 11.11.1).
pub const MSI_WINDOW: Range<u64> = 0xfee0_0000..0xfef0_0000;

/// The root port's own function.
pub const ROOT_PORT: Bdf = Bdf::new(0, 1, 0);

/// What the host node can set.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Largest payload supported by the root port.
    pub max_payload: usize,
    /// Completions of host memory reads carry at most this much and end at
    /// its multiples: a power of two from the RCB (64) to the MPS.
    pub completion_size: usize,
    /// How long a request of the host waits for its completion.
    pub completion_timeout: Duration,
    /// Guards every packet with an ECRC.
    pub ecrc: bool,
}

impl Default for Settings {
    /// MPS 4096, completions as long as the MPS allows, 900 ms: below the
    /// second after which a host must know, above the loss of a link.
    fn default() -> Self {
        Self {
            max_payload: 4096,
            completion_size: 4096,
            completion_timeout: Duration::from_ms(900),
            ecrc: false,
        }
    }
}

/// What reaches the root complex.
#[derive(Clone, Debug)]
pub enum Input {
    /// Host software wants this, which the root complex
    /// [takes](RootComplex::takes) now; the answer carries the same name.
    Request(RequestId, Request),
    /// A packet from below the root port.
    Tlp(Tlp),
    /// The bytes that [`HostOutput::HostRead`] asked for; `None` if some of them
    /// are not the device's to read.
    HostData(ReadToken, Option<Bytes>),
}

/// What the root complex wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For what is below the root port: a packet, or a hot reset because the
    /// root port's Secondary Bus Reset was set.
    Downstream(function::Input),
    /// For the host.
    Host(HostOutput),
    /// Nothing more now; call again after an input, or for one of these.
    Wait(Wait),
}

/// What the root complex wants of its host: of software, memory and interrupt
/// controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOutput {
    /// Answer to a request: the value, or `None` if it failed (reads are all
    /// ones then).
    Answer(RequestId, Option<u64>),
    /// A device reads host memory; answer with [`Input::HostData`].
    HostRead {
        /// Names the read.
        token: ReadToken,
        /// Who reads.
        requester: Bdf,
        /// Bus address of the first byte.
        address: u64,
        /// Bytes.
        length: usize,
    },
    /// A device writes host memory.
    HostWrite {
        /// Who writes.
        requester: Bdf,
        /// Bus address of the first byte.
        address: u64,
        /// What.
        data: Bytes,
    },
    /// A message-signalled interrupt, behind every earlier write.
    Interrupt {
        /// Who signals.
        requester: Bdf,
        /// The message data.
        data: u32,
    },
    /// One of the four interrupt wires of the root port changed its level.
    Intx {
        /// 0 for INTA to 3 for INTD.
        wire: u8,
        /// Asserted or not.
        level: bool,
    },
}

/// Names a device's read of host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadToken {
    tlp: Box<Tlp>,
    /// Hot resets seen so far: a read of before one is not answered.
    epoch: u64,
}

/// Host requests that wait for a completion, by tag.
#[derive(Debug)]
struct Pending {
    id: RequestId,
    request: Request,
    target: Option<Bdf>,
    deadline: Instant,
    /// The queue that it went into.
    queue: usize,
}

/// Non-posted requests of the host in flight.
const TAGS: usize = 256;
/// Posted packets of the host that wait for one port before the host has to.
const MAX_POSTED: usize = 1024;
/// Reads of host memory under way, and completions that wait, before the
/// devices have to. A switch leaves each of its 32 ports 128 reads at most.
const MAX_READS: usize = 4096;

/// See the module.
#[derive(Debug)]
pub struct RootComplex {
    settings: Settings,
    port: Bridge,
    below: PortQueues,
    outputs: VecDeque<Output>,
    pending: BTreeMap<u16, Pending>,
    next_tag: u16,
    masters: BTreeMap<Bdf, bool>,
    /// Reads of host memory that wait for their data.
    host_reads: usize,
    epoch: u64,
    wires: [bool; 4],
    errors: Errors,
}

impl RootComplex {
    /// A root complex after power-on; the root port's link is up.
    pub fn new(settings: Settings) -> Self {
        let mut port = Bridge::new(PcieKind::RootPort, settings.max_payload);
        port.set_link(true);
        Self {
            settings,
            port,
            below: PortQueues::default(),
            outputs: VecDeque::new(),
            pending: BTreeMap::new(),
            next_tag: 0,
            masters: BTreeMap::new(),
            host_reads: 0,
            epoch: 0,
            wires: [false; 4],
            errors: Errors::default(),
        }
    }

    /// Takes an input; what comes of it waits in a queue of `below`.
    pub fn handle(&mut self, now: Instant, input: Input, below: &impl Receiver) {
        match input {
            Input::Request(id, request) => self.start(now, id, request, below),
            Input::Tlp(tlp) => self.receive(tlp, below),
            Input::HostData(token, data) => self.host_data(token, data, below),
        }
    }

    /// Queues a packet for what is below; says in which queue.
    fn send(&mut self, mut tlp: Tlp, below: &impl Receiver) -> usize {
        tlp.digest = self.settings.ecrc;
        self.below.push(tlp, below)
    }

    /// Refuses a packet from below, if it wants an answer.
    fn refuse(&mut self, tlp: &Tlp, below: &impl Receiver) {
        if let Some(refusal) = bridge::unsupported_request(ROOT_PORT, tlp) {
            self.send(refusal, below);
        }
    }

    fn ask(&mut self, what: HostOutput) {
        self.outputs.push_back(Output::Host(what));
    }

    /// The next thing to do; packets only if `below` takes them.
    pub fn poll(&mut self, now: Instant, below: &impl Receiver) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        if let Some(tlp) = self.below.pop(below) {
            return Output::Downstream(function::Input::Tlp(tlp));
        }
        self.expire(now);
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let until = self.pending.values().map(|pending| pending.deadline).min();
        Output::Wait(Wait { until, receiver: !self.below.is_empty() })
    }

    /// Whether a request of the host may be handed in now: there is room for
    /// it on the way to its port. Unanswered requests to one port leave as
    /// many tags as they have to the others.
    pub fn takes(&self, request: &Request, below: &impl Receiver) -> bool {
        let target = match *request {
            Request::Sleep(_) => return true,
            Request::MemoryWrite { address, .. } => {
                return self.below.posted(below.queue(Target::Address(address))) < MAX_POSTED;
            }
            Request::MemoryRead { address, .. } => Target::Address(address),
            Request::ConfigRead { target, .. } | Request::ConfigWrite { target, .. } => {
                Target::Id(target)
            }
        };
        let queue = below.queue(target);
        let there = |pending: &&Pending| pending.queue == queue;
        let asked = || self.pending.values().filter(there).count();
        let free = TAGS - self.pending.len();
        free > 0 && (self.below.count() <= 1 || asked() < free)
    }

    /// Which packets from below are taken now: reads wait while others wait
    /// for host memory or completions pile up.
    pub fn ready(&self) -> Ready {
        let waiting = self.below.completions() + self.host_reads;
        Ready::ALL.with(Class::NonPosted, waiting < MAX_READS)
    }

    /// What went wrong so far.
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// The root port's function.
    pub fn port(&self) -> &Bridge {
        &self.port
    }
}
