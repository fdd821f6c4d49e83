//! A wire of its own for each direction.

use super::stream::tlp_ends;
use super::{Arrived, End};
use crate::kernel::pop_if;
use crate::measure::{Load, Segment};
use bytes::Bytes;
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// A lossless byte stream with a rate and a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipeConfig {
    /// Picoseconds a byte: 8000 at 1 Gb/s.
    pub byte: Duration,
    /// From the last bit sent to its receiver.
    pub latency: Duration,
    /// Bytes of the stream in one packet at most: at least the largest TLP
    /// and 12 bytes.
    pub segment: usize,
    /// Bytes of wire that each packet takes beside.
    pub overhead: usize,
    /// Bytes of wire that each TLP in it takes beside.
    pub tlp_overhead: usize,
    /// Bytes of wire of a packet at least, and at most: one that would become
    /// longer is two.
    pub bounds: [usize; 2],
}

impl PipeConfig {
    /// The packets of whole frames of the tunnel: where each ends, and its
    /// length on the wire.
    fn packets(&self, bytes: &[u8]) -> Vec<(usize, usize)> {
        let [least, most] = self.bounds;
        let length = |from: usize, to: usize, tlps| {
            (to - from) + self.overhead + tlps * self.tlp_overhead
        };
        let mut packets = Vec::new();
        let (mut start, mut last, mut tlps) = (0, 0, 0);
        if self.tlp_overhead > 0 {
            for next in tlp_ends(bytes) {
                if tlps > 0 && length(start, next, tlps + 1) > most {
                    packets.push((last, length(start, last, tlps).max(least)));
                    (start, tlps) = (last, 0);
                }
                (tlps, last) = (tlps + 1, next);
            }
        }
        while start < bytes.len() {
            let end = bytes.len().min(start + self.segment);
            packets.push((end, length(start, end, tlps).max(least)));
            (start, tlps) = (end, 0);
        }
        packets
    }

    /// A wire without bounds on packets.
    pub const fn new(byte: Duration, latency: Duration, segment: usize, overhead: usize) -> Self {
        Self { byte, latency, segment, overhead, tlp_overhead: 0, bounds: [0, usize::MAX] }
    }
}

#[derive(Debug)]
struct Packet {
    arrives: Instant,
    started: Instant,
    sent: Instant,
    bytes: Bytes,
}

#[derive(Debug, Default)]
struct Way {
    free: Instant,
    flying: VecDeque<Packet>,
    load: Load,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Pipe {
    config: PipeConfig,
    ways: [Way; 2],
}

impl Pipe {
    pub fn new(config: PipeConfig) -> Self {
        Self { config, ways: Default::default() }
    }

    /// A packet while the wire is idle, nothing while it is busy: what waits
    /// is aggregated by the sender.
    pub fn room(&self, now: Instant, end: End) -> usize {
        if now >= self.ways[end as usize].free { self.config.segment } else { 0 }
    }

    pub fn send(&mut self, now: Instant, end: End, mut bytes: Bytes) {
        let way = &mut self.ways[end as usize];
        let mut start = 0;
        for (to, length) in self.config.packets(&bytes) {
            let piece = bytes.split_to(to - start);
            start = to;
            let span = Duration::from_ps(self.config.byte.as_ps() * length as u64);
            let started = way.free.max(now);
            way.free = started + span;
            way.load.busy = way.load.busy + span;
            way.load.packets += 1;
            way.load.bytes += length as u64;
            let arrives = way.free + self.config.latency;
            way.flying.push_back(Packet { arrives, started, sent: way.free, bytes: piece });
        }
    }

    pub fn receive(&mut self, now: Instant, end: End) -> Option<Arrived> {
        let way = &mut self.ways[1 - end as usize];
        let packet = pop_if(&mut way.flying, |packet| packet.arrives <= now)?;
        let steps = [
            (packet.started, Segment::EgressQueue),
            (packet.sent, Segment::Serialisation),
            (packet.arrives, Segment::Propagation),
        ];
        Some(Arrived::over_pipe(packet.bytes, steps))
    }

    pub fn next_arrival(&self, end: End) -> Option<Instant> {
        self.ways[1 - end as usize].flying.front().map(|packet| packet.arrives)
    }

    pub fn next(&self, now: Instant, end: End) -> Option<Instant> {
        let free = self.ways[end as usize].free;
        let free = (free > now).then_some(free);
        [free, self.next_arrival(end)].into_iter().flatten().min()
    }

    pub fn load(&self, end: End) -> Load {
        self.ways[end as usize].load
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::frame::{HEADER, Header, Kind};
    use wire::tlp::{MemoryRequest, Tlp};
    use wire::{Bdf, Tag};

    fn frame(tlps: usize, payload: usize) -> Vec<u8> {
        let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, payload);
        let write = Tlp::memory_write(request.unwrap(), Bytes::from(vec![0; payload]));
        let mut bytes = vec![0; HEADER];
        (0..tlps).for_each(|_| write.encode(&mut bytes));
        let length = (bytes.len() - HEADER) as u16;
        let header = Header { length, kind: Kind::Tlps, sequence: 0, acknowledged: 0 };
        bytes[..HEADER].copy_from_slice(&header.encode());
        bytes
    }

    #[test]
    fn packets_pay_for_their_tlps_and_are_within_bounds() {
        let plain = PipeConfig::new(Duration::from_ns(8), Duration::ZERO, 1000, 63);
        assert_eq!(plain.packets(&frame(9, 128)), [(1000, 1063), (1272, 335)]);
        let config = PipeConfig { tlp_overhead: 11, bounds: [84, 1538], segment: 1400, ..plain };
        assert_eq!(config.packets(&frame(1, 128)), [(152, 152 + 63 + 11)]);
        assert_eq!(config.packets(&frame(9, 128)), [(1272, 1272 + 63 + 99)]);
        assert_eq!(config.packets(&[0; 4]), [(4, 84)], "the shortest");
        // 84 TLPs of 16 bytes: 12 + 84 * 27 + 63 is above 1538.
        let two = config.packets(&frame(84, 4));
        assert_eq!(two.len(), 2);
        assert!(two.iter().all(|(_, length)| *length <= 1538), "{two:?}");
        assert_eq!(two[1].0, HEADER + 84 * 16, "all of them");
        let bytes: usize = two.iter().map(|(_, length)| length).sum();
        assert_eq!(bytes, HEADER + 84 * (16 + 11) + 2 * 63);
    }
}
