//! The aggregation queue: the one place that decides when a TLP leaves.
//!
//! Whenever the network can take a frame, everything that has queued up since
//! and has credits goes into it, up to the frame's size (J. Suzuki et al.,
//! "End-to-End Adaptive Packet Aggregation for High-Throughput I/O Bus Network
//! Using Ethernet", Hot Interconnects 2014). No timer, no parameter.

use pcie::{OrderedQueue, Ready};
use wire::frame::Grant;
use wire::tlp::{Class, Tlp};

/// Packets that may wait in one class.
const MOST_PACKETS: usize = 4096;
/// Payload bytes that may wait in one class.
const MOST_PAYLOAD: usize = 4 << 20;

/// TLPs that wait for the network or for credits.
#[derive(Debug, Default)]
pub struct Aggregate {
    queue: OrderedQueue,
    used: [Grant; 3],
    limits: [Grant; 3],
    waits: u64,
}

impl Aggregate {
    /// An empty queue with the limits that the far side's greeting grants.
    pub fn new(limits: [Grant; 3]) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Which classes have room.
    pub fn ready(&self) -> Ready {
        Class::ALL.into_iter().fold(Ready::NONE, |ready, class| {
            let room =
                self.queue.len(class) < MOST_PACKETS && self.queue.payload(class) < MOST_PAYLOAD;
            ready.with(class, room)
        })
    }

    /// Adds a TLP of a class that has room.
    pub fn push(&mut self, tlp: Tlp) {
        self.queue.push(tlp);
    }

    /// Whether a TLP waits that the credits allow.
    pub fn can_fill(&self) -> bool {
        self.queue.peek(self.allowed()).is_some()
    }

    /// Moves TLPs to the end of `frame` while they fit in `room` bytes, and
    /// says how many.
    pub fn fill(&mut self, frame: &mut Vec<u8>, room: usize) -> usize {
        let (start, mut count) = (frame.len(), 0);
        loop {
            let allowed = self.allowed();
            let Some(next) = self.queue.peek(allowed) else { break };
            if frame.len() - start + next.wire_length() > room {
                return count;
            }
            let tlp = self.queue.pop(allowed).expect("peeked above");
            let used = &mut self.used[tlp.class().index()];
            used.headers = used.headers.wrapping_add(1);
            used.data = used.data.wrapping_add(tlp.data_credits());
            tlp.encode(frame);
            count += 1;
        }
        if !self.queue.is_empty() {
            self.waits += 1;
        }
        count
    }

    /// Takes new limits. `false` if one goes backwards, which is the far
    /// side's mistake.
    pub fn grant(&mut self, limits: [Grant; 3]) -> bool {
        let forward = |old: u32, new: u32| new.wrapping_sub(old) < 1 << 31;
        let pairs = self.limits.iter().zip(&limits);
        let valid = pairs
            .into_iter()
            .all(|(old, new)| forward(old.headers, new.headers) && forward(old.data, new.data));
        if valid {
            self.limits = limits;
        }
        valid
    }

    /// How often a frame was closed while TLPs still waited for credits.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// Whether something waits that every receiver has to take sooner or
    /// later, whatever it waits for itself (PCIe Base 4.0, section 2.4.1).
    pub fn holds_what_must_go(&self) -> bool {
        self.queue.len(Class::Posted) + self.queue.len(Class::Completion) > 0
    }

    /// TLPs waiting.
    pub fn len(&self) -> usize {
        Class::ALL.into_iter().map(|class| self.queue.len(class)).sum()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Forgets what waits; credits stay as they are. Says how many posted
    /// TLPs are lost with it.
    pub fn clear(&mut self) -> usize {
        let posted = self.queue.len(Class::Posted);
        self.queue.clear();
        posted
    }

    /// The classes whose first TLP has credits.
    fn allowed(&self) -> Ready {
        Class::ALL.into_iter().fold(Ready::NONE, |ready, class| {
            let (used, limit) = (self.used[class.index()], self.limits[class.index()]);
            let left = |used: u32, limit: u32| limit.wrapping_sub(used);
            let need = self.queue.front(class).map_or(0, Tlp::data_credits);
            let enough =
                left(used.headers, limit.headers) >= 1 && left(used.data, limit.data) >= need;
            ready.with(class, enough)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wire::tlp::MemoryRequest;
    use wire::{Bdf, Tag};

    fn write(length: usize) -> Tlp {
        let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, length);
        Tlp::memory_write(request.unwrap(), Bytes::from(vec![0; length]))
    }

    fn read() -> Tlp {
        let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, 4);
        Tlp::memory_read(request.unwrap())
    }

    fn limits(headers: u32, data: u32) -> [Grant; 3] {
        [Grant { headers, data }; 3]
    }

    #[test]
    fn everything_queued_goes_into_the_next_frame() {
        let mut queue = Aggregate::new(limits(100, 1000));
        (0..5).for_each(|_| queue.push(write(64)));
        let mut frame = Vec::new();
        assert_eq!(queue.fill(&mut frame, 65_535), 5);
        assert_eq!(frame.len(), 5 * (12 + 64));
        assert!(queue.is_empty());
    }

    #[test]
    fn a_frame_is_never_longer_than_its_room() {
        let mut queue = Aggregate::new(limits(100, 1000));
        (0..5).for_each(|_| queue.push(write(64)));
        let mut frame = vec![0; 12];
        assert_eq!(queue.fill(&mut frame, 2 * 76 + 75), 2);
        assert_eq!(frame.len(), 12 + 2 * 76);
        assert_eq!(queue.waits(), 0, "room is not credits");
    }

    #[test]
    fn credits_hold_back_their_class_alone() {
        let mut queue = Aggregate::new([
            Grant { headers: 10, data: 3 },
            Grant { headers: 0, data: 0 },
            Grant { headers: 10, data: 10 },
        ]);
        queue.push(read());
        queue.push(write(32));
        queue.push(write(32));
        let mut frame = Vec::new();
        assert_eq!(queue.fill(&mut frame, 1000), 1, "posted passes the read; data for one only");
        assert_eq!((queue.len(), queue.waits()), (2, 1));
        let more = Grant { headers: 10, data: 4 };
        assert!(!queue.grant([more, Grant { headers: 1, data: 0 }, more]), "backwards");
        let full = Grant { headers: 10, data: 10 };
        assert!(queue.grant([more, Grant { headers: 1, data: 0 }, full]));
        assert_eq!(queue.fill(&mut frame, 1000), 2);
    }

    #[test]
    fn limits_wrap_around() {
        let mut queue = Aggregate::new(limits(0, 0));
        queue.used = limits(u32::MAX, u32::MAX - 1);
        queue.limits = limits(u32::MAX, u32::MAX - 1);
        assert!(queue.grant(limits(1, 4)));
        queue.push(write(64));
        queue.push(write(64));
        queue.push(write(64));
        assert_eq!(queue.fill(&mut Vec::new(), 1000), 1, "data credits for one");
    }
}
