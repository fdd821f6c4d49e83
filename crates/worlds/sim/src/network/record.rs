//! Reports the frames of a wire to observers, and the mPackets of senders with preemption (IEEE
//! 802.3-2022, 99.3). Observers receive frames as sent, even if the cable loses or corrupts them.

#[cfg(test)]
mod tests;

use crate::ethernet::{Control, Frame, LineEvent, Transmission};
use crate::measure::{Observer, Point};
use tsn::preemption::mpacket::{Fragmenter, Mpacket, fcs};
use wire::Instant;

/// Reports one direction of a cable.
#[derive(Default)]
pub(super) struct Recorder {
    /// The mPackets of the sender, if it supports preemption.
    mpackets: Option<Mpackets>,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Mpackets {
    /// Number of preemptable frames that have begun, modulo 4.
    count: u8,
    /// The last preemptable frame, until it is complete.
    frame: Option<Preemptable>,
    bytes: Vec<u8>,
}

struct Preemptable {
    id: u64,
    fragmenter: Fragmenter<Vec<u8>>,
    /// When the fragment on the line began; `None` while the frame is interrupted.
    since: Option<Instant>,
}

impl Recorder {
    /// A recorder for a wire. `preempts`: whether the sender supports preemption.
    pub(super) fn new(preempts: bool) -> Self {
        Self { mpackets: preempts.then(Mpackets::default), bytes: Vec::new() }
    }

    /// Handles a line event.
    pub(super) fn handle(&mut self, at: Point, event: &LineEvent, observer: &mut dyn Observer) {
        if let LineEvent::Transmit(Transmission { frame, start, .. }) = event
            && frame.control.is_none()
        {
            self.bytes.clear();
            frame.capture(&mut self.bytes);
            observer.ethernet_frame(*start, at, &self.bytes);
        }
        if let Some(mpackets) = &mut self.mpackets {
            mpackets.handle(at, event, observer);
        }
    }

    /// Handles a transmission that arrived at the end of the cable.
    pub(super) fn delivered(
        &mut self,
        at: Point,
        sent: &Transmission,
        observer: &mut dyn Observer,
    ) {
        let is_it = |frame: &Preemptable| sent.preemptable && frame.id == sent.frame.id;
        if let Some(mpackets) = &mut self.mpackets
            && mpackets.frame.as_ref().is_some_and(is_it)
        {
            mpackets.fragment(usize::MAX, at, observer);
        }
    }
}

impl Mpackets {
    fn handle(&mut self, at: Point, event: &LineEvent, observer: &mut dyn Observer) {
        match event {
            LineEvent::Transmit(sent) => {
                self.fragment(usize::MAX, at, observer);
                self.transmit(sent, at, observer);
            }
            LineEvent::Suspend(suspend) => self.fragment(suspend.bytes, at, observer),
            LineEvent::Resume(resume) => {
                self.frame.iter_mut().for_each(|frame| frame.since = Some(resume.start));
            }
        }
    }

    /// Reports the fragment on the line, if any, which ends after `bytes` bytes or with the frame.
    fn fragment(&mut self, bytes: usize, at: Point, observer: &mut dyn Observer) {
        if let Some(frame) = &mut self.frame
            && let Some(since) = frame.since.take()
            && let Some(packet) = frame.fragmenter.next(bytes)
        {
            report(packet, &mut self.bytes, since, at, observer);
        }
    }

    fn transmit(&mut self, sent: &Transmission, at: Point, observer: &mut dyn Observer) {
        let Transmission { frame, start, preemptable, .. } = sent;
        let mut report = |packet| report(packet, &mut self.bytes, *start, at, observer);
        match frame.control {
            Some(Control::Verify) => report(Mpacket::verify()),
            Some(Control::Respond) => report(Mpacket::respond()),
            None if *preemptable => {
                let fragmenter = Fragmenter::new(self.count, with_fcs(frame));
                self.frame = Some(Preemptable { id: frame.id, fragmenter, since: Some(*start) });
                self.count = (self.count + 1) % 4;
            }
            None => report(Mpacket::express(&with_fcs(frame))),
        }
    }
}

fn report(
    packet: Mpacket<'_>,
    bytes: &mut Vec<u8>,
    since: Instant,
    at: Point,
    observer: &mut dyn Observer,
) {
    bytes.clear();
    packet.encode(bytes);
    observer.mpacket(since, at, bytes);
}

/// The frame as sent, with its FCS. A corrupt frame, from a cut-through bridge, has a wrong FCS.
fn with_fcs(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frame.length());
    frame.capture(&mut bytes);
    let fcs = fcs(&bytes).map(|byte| if frame.corrupt { !byte } else { byte });
    bytes.extend(fcs);
    bytes
}
