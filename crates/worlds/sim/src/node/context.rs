//! The state of the world that each component may use while it runs.

use crate::kernel::Kernel;
use crate::measure::{
    CommandRecord, Journey, Journeys, LinkChange, Observer, Point, Stage, Tracker,
};
use crate::transport::Stream;
use node::faults::Fault;
use switch::tunnel::Report;
use wire::Instant;
use wire::tlp::{Packet, Tlp, TraceId};

/// Parts of the world, borrowed for one run of a component.
pub(crate) struct Context<'a> {
    pub now: Instant,
    pub kernel: &'a mut Kernel,
    pub journeys: &'a mut Journeys,
    pub tracker: &'a mut Tracker,
    pub observer: &'a mut Option<Box<dyn Observer>>,
}

impl Context<'_> {
    /// Mixes a TLP delivered to the running component into the digest.
    pub(crate) fn delivered(&mut self, tlp: &Tlp) {
        let digest = self.kernel.digest_mut();
        let [a, b] = header_words(tlp);
        digest.word(a);
        digest.word(b);
        if !tlp.data.is_empty() {
            digest.bytes(&tlp.data);
        }
    }

    /// Mixes the number of delivered stream bytes into the digest. Frames and TLPs add their
    /// contents.
    pub(crate) fn arrived(&mut self, kind: u64, bytes: usize) {
        self.kernel.digest_mut().word(kind << 32 | bytes as u64);
    }

    /// Mixes an event of another kind into the digest.
    pub(crate) fn happened(&mut self, kind: u64, bytes: &[u8]) {
        let digest = self.kernel.digest_mut();
        digest.word(kind);
        digest.bytes(bytes);
    }

    /// Ends the journey of a TLP that a PCIe link delivered at `at`.
    pub(crate) fn end_journey(&mut self, at: Instant, tlp: &mut Tlp) -> Journey {
        let journey = self.journeys.remove(std::mem::take(&mut tlp.trace_id));
        let mut journey = journey.unwrap_or_else(|| Journey::new(at));
        journey.advance(at, Stage::Pcie);
        journey
    }

    /// Starts a journey for a TLP without a trace ID, which originates in the switch.
    pub(crate) fn start_journey(&mut self, at: Instant, tlp: &mut Tlp) {
        if tlp.trace_id == TraceId::NONE {
            tlp.trace_id = self.journeys.insert(Journey::new(at));
        }
    }

    pub(crate) fn observe(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        if let Some(observer) = self.observer {
            observer.tlp(at, point, up, tlp);
        }
    }

    pub(crate) fn observe_link(&mut self, point: Point, change: LinkChange) {
        if let Some(observer) = self.observer {
            observer.link(self.now, point, change);
        }
    }

    pub(crate) fn observe_fault(&mut self, at: Instant, point: Point, fault: &Fault) {
        if let Some(observer) = self.observer {
            observer.fault(at, point, fault);
        }
    }

    /// Reports the finished commands of the host.
    pub(crate) fn observe_commands(&mut self, host: u16) {
        if let Some(observer) = self.observer {
            self.tracker.keep = true;
            for record in self.tracker.finished.drain(..) {
                observer.command(&CommandRecord { host, ..record });
            }
        }
    }

    /// Accounts the reports of a link end that sends on `out`. `next` returns a report and the lane of
    /// `out` that it concerns. Returns the number of TLPs sent.
    pub(crate) fn account(
        &mut self,
        point: Point,
        out: &mut Stream,
        mut next: impl FnMut() -> Option<(usize, Report)>,
    ) -> usize {
        let mut tlps = 0;
        while let Some((lane, report)) = next() {
            match report {
                Report::Dropped(trace_id) => self.journeys.end(trace_id),
                Report::Frame(_, frame) => {
                    if frame.sent {
                        out.transmitted(self.now, lane, &frame, self.journeys);
                        tlps += frame.trace_ids.len();
                    }
                    if let Some(observer) = self.observer {
                        observer.tunnel_frame(self.now, point, &frame);
                    }
                }
            }
        }
        tlps
    }

    pub(crate) fn observe_stream(&mut self, point: Point, sent: bool, bytes: &[u8]) {
        if let Some(observer) = self.observer {
            observer.stream(self.now, point, sent, bytes);
        }
    }
}

/// The fields of a header, for the digest.
fn header_words(tlp: &Tlp) -> [u64; 2] {
    let common = |kind: u64, id: u64, tag: u64, rest: u64| kind << 56 | id << 40 | tag << 24 | rest;
    match tlp.packet {
        Packet::MemoryRead(r) | Packet::MemoryWrite(r) => {
            let kind = 1 + u64::from(matches!(tlp.packet, Packet::MemoryWrite(_)));
            let enables = u64::from(r.first_be) << 4 | u64::from(r.last_be);
            let rest = u64::from(r.length_dw) << 8 | enables;
            [common(kind, r.requester.bits().into(), r.tag.get().into(), rest), r.address]
        }
        Packet::ConfigRead(c) | Packet::ConfigWrite(c) => {
            let kind = 3 + u64::from(matches!(tlp.packet, Packet::ConfigWrite(_)));
            let target = u64::from(c.target.bits()) << 16 | u64::from(c.register);
            let enables = u64::from(c.first_be);
            [common(kind, c.requester.bits().into(), c.tag.get().into(), enables), target]
        }
        Packet::Completion(c) => {
            let rest = u64::from(c.lower_address) << 3 | u64::from(c.status.bits());
            let id = u64::from(c.completer.bits()) << 16 | u64::from(c.byte_count);
            [common(5, c.requester.bits().into(), c.tag.get().into(), rest), id]
        }
        Packet::Message(m) => {
            let id = m.requester.bits().into();
            [common(6, id, m.tag.get().into(), m.code.into()), u64::from_be_bytes(m.body)]
        }
    }
}
