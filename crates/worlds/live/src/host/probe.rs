//! A protocol analyser at the root port, where the NVMe/TSN paper measures.

use crate::clock::Clock;
use crate::trace::{TlpObserver, Tracer};
use node::push::NotPushed;
use wire::Instant;
use wire::tlp::Tlp;
use wire::trace::Tap;

/// One packet as it passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Time of the packet.
    pub at: Instant,
    /// Whether the packet goes towards the root complex.
    pub up: bool,
    /// The packet.
    pub tlp: Tlp,
}

/// Records the TLPs between the root port and the attached function: in memory while armed, and
/// always in the trace.
pub struct Probe {
    clock: Clock,
    records: Vec<Record>,
    room: usize,
    tracer: Tracer,
}

impl Probe {
    pub(super) fn new(tracer: Tracer, clock: Clock) -> Self {
        Self { clock, records: Vec::new(), room: 0, tracer }
    }

    /// Records up to `packets` from now on and drops earlier records.
    pub fn arm(&mut self, packets: usize) {
        self.records = Vec::with_capacity(packets.min(1 << 16));
        self.room = packets;
    }

    /// Stops recording, and returns the records.
    pub fn take(&mut self) -> Vec<Record> {
        self.room = 0;
        std::mem::take(&mut self.records)
    }

    /// Whether no room is left since [`arm`](Self::arm).
    pub fn is_full(&self) -> bool {
        self.room == 0
    }

    /// As [`Tracer::not_pushed`].
    pub(super) fn not_pushed(&self, commands: &NotPushed) {
        self.tracer.not_pushed(commands);
    }

    /// As [`Tracer::tick`].
    pub(super) fn tick(&self, now: Instant, idle: bool) -> Option<Instant> {
        self.tracer.tick(now, idle)
    }
}

impl TlpObserver for Probe {
    fn observe(&mut self, up: bool, tlp: &Tlp) {
        self.tracer.tlp(Tap::ROOT_PORT, up, tlp);
        if self.room > 0 {
            let at = self.clock.now();
            let before = self.records.len();
            self.records.extend(tlp.clone().singles().take(self.room).map(|tlp| Record {
                at,
                up,
                tlp,
            }));
            self.room -= self.records.len() - before;
        }
    }
}
