//! Which TLP is where in one direction of a link's byte stream: for the
//! account of time alone. TLPs of a class never overtake each other, neither
//! in the queues of the switch nor in the stream.

use crate::kernel::pop_if;
use crate::measure::{Journeys, Segment};
use std::collections::VecDeque;
use wire::Instant;
use wire::frame::{HEADER, Header, Kind};
use wire::tlp::{Class, Mark, total_length};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    waiting: [VecDeque<Mark>; 3],
    /// TLPs in the stream: offset of their end.
    sent: VecDeque<(u64, Class, Mark)>,
    arrived: [VecDeque<Mark>; 3],
    sent_bytes: u64,
    received_bytes: u64,
    /// Frames that carried TLPs, and the TLPs.
    pub frames: u64,
    pub tlps: u64,
}

impl Stream {
    /// A TLP was queued for the tunnel.
    pub fn queued(&mut self, class: Class, mark: Mark) {
        self.waiting[class.index()].push_back(mark);
    }

    /// Whole frames leave the tunnel.
    pub fn transmitted(&mut self, now: Instant, bytes: &[u8], journeys: &mut Journeys) {
        let mut at = 0;
        while let Some(header) = bytes[at..].first_chunk::<HEADER>() {
            let header = Header::decode(*header).expect("our own frame");
            let end = at + HEADER + usize::from(header.length);
            if header.kind == Kind::Tlps {
                self.frames += 1;
                self.tlps_in(now, bytes, at + HEADER..end, journeys);
            }
            at = end;
        }
        self.sent_bytes += bytes.len() as u64;
    }

    fn tlps_in(
        &mut self,
        now: Instant,
        bytes: &[u8],
        range: std::ops::Range<usize>,
        journeys: &mut Journeys,
    ) {
        let mut at = range.start;
        while at < range.end {
            let class = class_of(bytes[at]);
            at += total_length(&bytes[at..range.end]).expect("our own TLP");
            self.tlps += 1;
            if let Some(mark) = self.waiting[class.index()].pop_front() {
                journeys.advance(mark, now, Segment::TunnelQueue);
                self.sent.push_back((self.sent_bytes + at as u64, class, mark));
            }
        }
    }

    /// `bytes` more of the stream have arrived; `way` says how the last of
    /// them spent its time.
    pub fn received(
        &mut self,
        now: Instant,
        bytes: usize,
        way: &[(Instant, Segment)],
        journeys: &mut Journeys,
    ) {
        self.received_bytes += bytes as u64;
        while let Some((_, class, mark)) =
            pop_if(&mut self.sent, |(end, ..)| *end <= self.received_bytes)
        {
            for (at, segment) in way {
                journeys.advance(mark, *at, *segment);
            }
            let carrier = way.first().is_some_and(|(_, first)| *first == Segment::Carrier);
            journeys.advance(mark, now, if carrier { Segment::Carrier } else { Segment::Tcp });
            self.arrived[class.index()].push_back(mark);
        }
    }

    /// A TLP of this class came out of the tunnel.
    pub fn delivered(&mut self, class: Class) -> Mark {
        self.arrived[class.index()].pop_front().unwrap_or_default()
    }

    /// The link went down or was reset: TLPs on their way are forgotten.
    pub fn clear(&mut self, journeys: &mut Journeys) {
        let sent = self.sent.drain(..).map(|(.., mark)| mark);
        for mark in sent {
            journeys.remove(mark);
        }
        for queue in self.waiting.iter_mut().chain(&mut self.arrived) {
            queue.drain(..).for_each(|mark| {
                journeys.remove(mark);
            });
        }
        self.sent_bytes = 0;
        self.received_bytes = 0;
    }
}

/// From Fmt and Type (PCIe Base 4.0, table 2-3).
fn class_of(first: u8) -> Class {
    let data = first & 0x40 != 0;
    match first & 0x1f {
        0b01010 => Class::Completion,
        kind if kind & 0b10000 != 0 => Class::Posted,
        0 if data => Class::Posted,
        _ => Class::NonPosted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wire::tlp::{Completion, MemoryRequest, Packet, Status, Tlp};
    use wire::{Bdf, Tag};

    #[test]
    fn the_class_is_in_the_first_byte() {
        let id = Bdf::default();
        let completion = Completion {
            completer: id,
            requester: id,
            tag: Tag::default(),
            status: Status::Success,
            byte_count: 4,
            lower_address: 0,
            byte_count_modified: false,
        };
        for address in [0x1000, 1 << 40] {
            let request = MemoryRequest::for_bytes(id, Tag::default(), address, 4).unwrap();
            for tlp in [
                Tlp::memory_read(request),
                Tlp::memory_write(request, Bytes::from_static(&[0; 4])),
                Tlp::completion(completion),
                Tlp::new(Packet::Completion(completion), Bytes::from_static(&[0; 4])),
            ] {
                let mut bytes = Vec::new();
                tlp.encode(&mut bytes);
                assert_eq!(class_of(bytes[0]), tlp.class(), "{tlp:?}");
            }
        }
    }
}
