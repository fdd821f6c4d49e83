//! Queues of downstream packets by target port: a port that accepts no packets does not block the
//! other ports.

use crate::function::{Function, Ready};
use crate::ordering::OrderedQueue;
use wire::Bdf;
use wire::tlp::{Class, Message, Packet, Routing, Tlp};

/// The routing target of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A bus address.
    Address(u64),
    /// A function.
    Id(Bdf),
    /// The other end of the link, or all functions (implicit routing).
    Implicit,
}

impl Target {
    /// The target of `tlp`.
    pub fn from_tlp(tlp: &Tlp) -> Self {
        match tlp.packet {
            Packet::MemoryRead(r) | Packet::MemoryWrite(r) => Self::Address(r.address),
            Packet::ConfigRead(c) | Packet::ConfigWrite(c) => Self::Id(c.target),
            Packet::Completion(c) => Self::Id(c.requester),
            Packet::Message(Message { routing: Routing::ByAddress, body, .. }) => {
                Self::Address(u64::from_be_bytes(body))
            }
            Packet::Message(Message { routing: Routing::ById, body, .. }) => {
                Self::Id(Bdf::from_bits(u16::from_be_bytes([body[0], body[1]])))
            }
            Packet::Message(_) => Self::Implicit,
        }
    }
}

/// A receiver of packets: a [`Function`], or one link for all targets.
pub trait Receiver {
    /// The queue for packets to `target`. Packets of one queue keep PCIe ordering;
    /// different queues are for different ports. At most 64 queues.
    fn queue(&self, target: Target) -> usize;

    /// The classes that a queue takes now.
    fn takes(&self, queue: usize) -> Ready;

    /// Whether answers from behind a queue are only late, as [`Ports::is_interrupted`].
    fn is_interrupted(&self, _: usize) -> bool {
        false
    }
}

/// One link for all targets.
impl Receiver for Ready {
    fn queue(&self, _: Target) -> usize {
        0
    }

    fn takes(&self, _: usize) -> Ready {
        *self
    }
}

impl<F: Function> Receiver for F {
    fn queue(&self, target: Target) -> usize {
        self.ports().map_or(0, |ports| ports.queue(target))
    }

    fn takes(&self, queue: usize) -> Ready {
        self.ports().map_or_else(|| self.ready(), |ports| ports.queue_ready(queue))
    }

    fn is_interrupted(&self, queue: usize) -> bool {
        self.ports().is_some_and(|ports| ports.is_interrupted(queue))
    }
}

/// One queue per target port. The earliest packet that its port takes leaves first.
#[derive(Debug, Default)]
pub(crate) struct PortQueues {
    queues: Vec<OrderedQueue>,
    /// A bit for each queue that is not empty.
    busy: u64,
    next: u64,
    completions: usize,
}

impl PortQueues {
    /// Appends a packet to its queue. Returns the queue.
    pub(crate) fn push(&mut self, tlp: Tlp, below: &impl Receiver) -> usize {
        let queue = below.queue(Target::from_tlp(&tlp));
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, OrderedQueue::default);
        }
        let is_completion = tlp.class() == Class::Completion;
        self.completions += if is_completion { tlp.packets() } else { 0 };
        self.queues[queue].push_with_order(self.next, tlp);
        self.busy |= 1 << queue;
        self.next += 1;
        queue
    }

    /// Takes the earliest packet that the receiver takes. Drops packets whose target has moved to
    /// another queue since.
    pub(crate) fn pop(&mut self, below: &impl Receiver) -> Option<Tlp> {
        while self.busy != 0 {
            let (class, queue) = self.first(below)?;
            let tlp = self.queues[queue].take_for(class, below.takes(queue))?;
            self.busy &= !(u64::from(self.queues[queue].is_empty()) << queue);
            self.completions -= if class == Class::Completion { tlp.packets() } else { 0 };
            if below.queue(Target::from_tlp(&tlp)) == queue {
                return Some(tlp);
            }
        }
        None
    }

    /// The class and queue of the next packet.
    fn first(&self, below: &impl Receiver) -> Option<(Class, usize)> {
        let mut first: Option<(u64, Class, usize)> = None;
        let mut left = self.busy;
        while left != 0 {
            let queue = left.trailing_zeros() as usize;
            left &= left - 1;
            if let Some((order, class)) = self.queues[queue].first(below.takes(queue))
                && first.is_none_or(|(earliest, ..)| order < earliest)
            {
                first = Some((order, class, queue));
            }
        }
        first.map(|(_, class, queue)| (class, queue))
    }

    /// Number of queues used so far.
    pub(crate) fn count(&self) -> usize {
        self.queues.len()
    }

    /// Number of posted packets that wait in a queue.
    pub(crate) fn posted(&self, queue: usize) -> usize {
        self.queues.get(queue).map_or(0, |queue| queue.len(Class::Posted))
    }

    /// Number of completions that wait in all queues.
    pub(crate) fn completions(&self) -> usize {
        self.completions
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.busy == 0
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;
    use wire::Tag;
    use wire::tlp::{MemoryRequest, Status};

    /// Three ports, each with 1 MiB and one bus, and the classes that they accept.
    struct Ports([Ready; 3]);

    impl Receiver for Ports {
        fn queue(&self, target: Target) -> usize {
            match target {
                Target::Address(address) => (address >> 20) as usize,
                Target::Id(id) => id.bus().into(),
                Target::Implicit => 0,
            }
        }

        fn takes(&self, queue: usize) -> Ready {
            self.0[queue]
        }
    }

    /// A packet with tag `number` for a port.
    fn packet(class: Class, port: usize, number: usize) -> Tlp {
        let (tag, address) = (Tag::truncate(number as u16), (port as u64) << 20);
        let id = Bdf::new(port as u8, 0, 0);
        let request = MemoryRequest::for_bytes(id, tag, address, 4).unwrap();
        match class {
            Class::Posted => Tlp::memory_write(request, Bytes::from_static(&[0; 4])),
            Class::NonPosted => Tlp::memory_read(request),
            Class::Completion => {
                Tlp::completion(request.completion(Bdf::default(), Status::Success, 4))
            }
        }
    }

    fn ready(mask: u8) -> Ready {
        Ready::from_fn(|class| mask >> class.index() & 1 != 0)
    }

    proptest! {
        /// Each port receives the packets of an independent queue, earliest first.
        #[test]
        fn each_port_has_a_queue_of_its_own(
            steps in proptest::collection::vec((0..3usize, 0..3usize, any::<[u8; 3]>()), 0..200),
        ) {
            let mut queues = PortQueues::default();
            let mut model: [OrderedQueue; 3] = Default::default();
            for (number, (class, port, masks)) in steps.into_iter().enumerate() {
                let tlp = packet(Class::ALL[class], port, number);
                model[port].push_with_order(number as u64, tlp.clone());
                let below = Ports(masks.map(ready));
                prop_assert_eq!(queues.push(tlp, &below), port);
                // On average, as many packets leave as arrive.
                let firsts = model.iter().zip(below.0).enumerate().filter_map(|(port, (queue, ready))| {
                    queue.first(ready).map(|(order, _)| (order, port))
                });
                let next = firsts.min().and_then(|(_, port)| model[port].pop(below.0[port]));
                prop_assert_eq!(queues.pop(&below), next);
                let left = |class| model.iter().map(|queue| queue.len(class)).sum::<usize>();
                prop_assert_eq!(queues.completions(), left(Class::Completion));
                prop_assert_eq!(queues.is_empty(), model.iter().all(OrderedQueue::is_empty));
                prop_assert_eq!(queues.posted(port), model[port].len(Class::Posted));
            }
        }
    }

    #[test]
    fn packets_of_an_absent_port_are_dropped() {
        let mut queues = PortQueues::default();
        let there = Ports([Ready::ALL; 3]);
        queues.push(packet(Class::Posted, 1, 0), &there);
        queues.push(packet(Class::Posted, 2, 1), &there);
        // A single link has queue 0 for everything.
        assert_eq!(queues.pop(&Ready::ALL), None);
        assert!(queues.is_empty());
    }
}
