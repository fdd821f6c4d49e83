//! The root complex of the host node: one root port, downstream requests of the
//! host, and upstream requests of devices to host memory.

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
use wire::{Arena, Bdf, Duration, Instant};

/// Addresses of message-signalled interrupts, as on x86 (Intel SDM volume 3, section 11.11.1).
pub const MSI_WINDOW: Range<u64> = 0xfee0_0000..0xfef0_0000;

/// The ID of the root port.
pub const ROOT_PORT: Bdf = Bdf::new(0, 1, 0);

/// Settings of the root complex.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Largest payload that the root port supports, in bytes: 128 to 4096.
    pub max_payload: usize,
    /// The maximum number of bytes in a completion of a host memory read: a power of two from the
    /// RCB (64) to the MPS. Completions end at multiples of this number.
    pub completion_size: usize,
    /// How long a host request waits for its completion.
    pub completion_timeout: Duration,
    /// Whether every TLP gets an ECRC.
    pub ecrc: bool,
}

impl Default for Settings {
    /// MPS and completions of 4096 bytes, no ECRC, and a timeout of 900 ms: more than the loss
    /// limit of a link (800 ms).
    fn default() -> Self {
        Self {
            max_payload: 4096,
            completion_size: 4096,
            completion_timeout: Duration::from_ms(900),
            ecrc: false,
        }
    }
}

/// Input of the root complex.
#[derive(Clone, Debug)]
pub enum Input {
    /// A request of host software. [`RootComplex::takes`] must return true for this request. The
    /// answer has the same ID.
    Request(RequestId, Request),
    /// A packet from below the root port.
    Tlp(Tlp),
    /// The data of a [`HostOutput::HostRead`]; `None` if the device may not read all bytes.
    HostData(ReadToken, Option<Bytes>),
}

/// Output of the root complex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Output below the root port: a packet, or a hot reset by Secondary Bus Reset.
    Downstream(function::Input),
    /// Output for the host.
    Host(HostOutput),
    /// No output now. Poll again after an input, or when the wait ends.
    Wait(Wait),
}

/// Output for the host: its software, memory and interrupt controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOutput {
    /// Answer to a request: the value, or `None` if the request failed (a read then returns all
    /// ones).
    Answer(RequestId, Option<u64>),
    /// A device reads host memory; answer with [`Input::HostData`].
    HostRead {
        /// Identifies the read.
        token: ReadToken,
        /// Requester ID.
        requester: Bdf,
        /// Bus address of the first byte.
        address: u64,
        /// Number of bytes.
        length: usize,
    },
    /// A device writes host memory.
    HostWrite {
        /// Requester ID.
        requester: Bdf,
        /// Bus address of the first byte.
        address: u64,
        /// The data.
        data: Bytes,
    },
    /// A message-signalled interrupt. All earlier writes were output before.
    Interrupt {
        /// Requester ID.
        requester: Bdf,
        /// The message data.
        data: u32,
    },
    /// An INTx level of the root port changed.
    Intx {
        /// 0 for INTA to 3 for INTD.
        wire: u8,
        /// Whether the interrupt is asserted.
        level: bool,
    },
}

/// Identifies a device's read of host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadToken {
    tlp: Tlp,
    /// Number of hot resets before the read. A read from before a reset is not answered.
    epoch: u64,
}

/// A host request that waits for its completion.
#[derive(Debug)]
struct Pending {
    id: RequestId,
    request: Request,
    target: Option<Bdf>,
    deadline: Instant,
    /// The port queue through which the request went.
    queue: usize,
}

/// The maximum number of non-posted requests of the host in flight.
const TAGS: usize = 256;
/// The maximum number of posted packets queued for one port.
const MAX_POSTED: usize = 1024;
/// The maximum number of unfinished host memory reads, including those with queued completions. A
/// switch admits 128 reads for each of its 32 ports.
const MAX_READS: usize = 4096;

/// The root complex with one root port.
#[derive(Debug)]
pub struct RootComplex {
    settings: Settings,
    port: Bridge,
    below: PortQueues,
    outputs: VecDeque<Output>,
    pending: BTreeMap<u16, Pending>,
    next_tag: u16,
    bus_masters: BTreeMap<Bdf, bool>,
    /// Host memory reads that wait for their data.
    host_reads: usize,
    epoch: u64,
    intx: [bool; 4],
    errors: Errors,
    /// Buffers for the data of writes.
    arena: Arena,
    /// Buffers for the data of runs from below.
    runs: Arena,
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
            bus_masters: BTreeMap::new(),
            host_reads: 0,
            epoch: 0,
            intx: [false; 4],
            errors: Errors::default(),
            arena: Arena::new(4096),
            runs: Arena::new(32 << 10),
        }
    }

    /// Handles an input. The resulting packets wait in one queue per port of `below`.
    pub fn handle(&mut self, now: Instant, input: Input, below: &impl Receiver) {
        match input {
            Input::Request(id, request) => self.start(now, id, request, below),
            Input::Tlp(tlp) => self.receive(tlp, below),
            Input::HostData(token, data) => self.host_data(token, data, below),
        }
    }

    /// Queues a downstream packet. Returns the queue.
    fn send(&mut self, mut tlp: Tlp, below: &impl Receiver) -> usize {
        tlp.digest = self.settings.ecrc;
        self.below.push(tlp, below)
    }

    /// Completes a non-posted request with Unsupported Request.
    fn unsupported_request(&mut self, tlp: &Tlp, below: &impl Receiver) {
        if let Some(refusal) = bridge::unsupported_request(ROOT_PORT, tlp) {
            self.send(refusal, below);
        }
    }

    fn output_to_host(&mut self, output: HostOutput) {
        self.outputs.push_back(Output::Host(output));
    }

    /// The next output; packets only if `below` takes them.
    pub fn poll(&mut self, now: Instant, below: &impl Receiver) -> Output {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        if let Some(tlp) = self.below.pop(below) {
            return Output::Downstream(function::Input::Tlp(tlp));
        }
        self.expire(now, below);
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let until = self.pending.values().map(|pending| pending.deadline).min();
        Output::Wait(Wait { until, receiver: !self.below.is_empty() })
    }

    /// Whether [`handle`](Self::handle) takes this host request now. If there are several ports, a
    /// port gets another request only if it has fewer requests in flight than there are free tags.
    /// Thus one port cannot occupy all tags.
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

    /// The classes of upstream packets that are accepted now: no reads while too many reads or
    /// completions are pending.
    pub fn ready(&self) -> Ready {
        let waiting = self.below.completions() + self.host_reads;
        Ready::ALL.with(Class::NonPosted, waiting < MAX_READS)
    }

    /// Whether every TLP gets an ECRC.
    pub fn ecrc(&self) -> bool {
        self.settings.ecrc
    }

    /// Error counters.
    pub fn errors(&self) -> &Errors {
        &self.errors
    }

    /// The root port's function.
    pub fn port(&self) -> &Bridge {
        &self.port
    }
}
