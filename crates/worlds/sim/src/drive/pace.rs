//! Limits data between media and PCIe to the stream rate of the media.

use super::time_at;
use pcie::Ready;
use wire::Instant;
use wire::tlp::{Class, Packet, Tlp};

/// The times from which the next memory write and the next memory read may leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Bytes per second; 0 for no limit.
    rate: u64,
    writes: Instant,
    reads: Instant,
}

impl Pace {
    pub(crate) fn new(rate: u64) -> Self {
        Self { rate, writes: Instant::ZERO, reads: Instant::ZERO }
    }

    /// The TLP classes of `ready` that may leave at `now`.
    pub(crate) fn ready(&self, now: Instant, ready: Ready) -> Ready {
        let allowed = |ready: Ready, class, since: Instant| {
            ready.with(class, ready.has(class) && since <= now)
        };
        let ready = allowed(ready, Class::Posted, self.writes);
        allowed(ready, Class::NonPosted, self.reads)
    }

    /// Accounts a TLP that leaves.
    pub(crate) fn sent(&mut self, now: Instant, tlp: &Tlp) {
        let (since, bytes) = match &tlp.packet {
            Packet::MemoryWrite(request) => (&mut self.writes, request.length()),
            Packet::MemoryRead(request) => (&mut self.reads, request.length()),
            _ => return,
        };
        *since = now + time_at(self.rate, bytes as u64);
    }

    /// When another class of TLPs may leave, later than `now`.
    pub(crate) fn next(&self, now: Instant) -> Option<Instant> {
        [self.writes, self.reads].into_iter().filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use wire::tlp::MemoryRequest;
    use wire::{Bdf, Tag};

    #[test]
    fn data_leave_as_fast_as_the_stream_and_either_way_by_itself() {
        let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, 128);
        let write = Tlp::memory_write(request.unwrap(), Bytes::from_static(&[0; 128]));
        let read = Tlp::memory_read(request.unwrap());
        let mut pace = Pace::new(128_000_000);
        let at = |ns| Instant::from_ns(ns);
        pace.sent(at(0), &write);
        let posted = |pace: &Pace, ns| pace.ready(at(ns), Ready::ALL).has(Class::Posted);
        assert!(!posted(&pace, 999) && posted(&pace, 1000));
        assert!(pace.ready(at(0), Ready::ALL).has(Class::NonPosted));
        assert!(pace.ready(at(0), Ready::ALL).has(Class::Completion));
        pace.sent(at(500), &read);
        assert!(!pace.ready(at(1000), Ready::ALL).has(Class::NonPosted));
        assert_eq!((pace.next(at(0)), pace.next(at(1000))), (Some(at(1000)), Some(at(1500))));
        assert_eq!(pace.next(at(1500)), None);
        assert!(!pace.ready(at(2000), Ready::NONE).has(Class::Posted));
        let mut free = Pace::new(0);
        free.sent(at(0), &write);
        assert_eq!(free.next(at(0)), None);
    }
}
