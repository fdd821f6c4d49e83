//! A queue of packets with PCIe ordering.

use crate::function::{Output, Ready, Wait};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use wire::tlp::{Class, Malformed, Tlp, TraceId};

/// Packets in order of arrival, taken by class.
///
/// PCIe Base 4.0, table 2-40: only completions with relaxed ordering pass an earlier posted
/// request. Posted requests pass blocked non-posted requests and completions. Completions and
/// non-posted requests pass each other if blocked.
#[derive(Debug)]
pub struct OrderedQueue {
    classes: [VecDeque<(u64, Tlp)>; 3],
    /// Sequence number of the first packet of each class, or `NONE`.
    heads: [u64; 3],
    packets: [usize; 3],
    payload: [usize; 3],
    next: u64,
}

/// The sequence number for "no packet": greater than every real number.
const NONE: u64 = u64::MAX;

impl Default for OrderedQueue {
    fn default() -> Self {
        Self {
            classes: Default::default(),
            heads: [NONE; 3],
            packets: [0; 3],
            payload: [0; 3],
            next: 0,
        }
    }
}

impl OrderedQueue {
    /// Appends a packet.
    pub fn push(&mut self, tlp: Tlp) {
        self.push_with_order(self.next, tlp);
    }

    /// Appends a packet with the sequence number `order`, which several queues share.
    pub(crate) fn push_with_order(&mut self, order: u64, tlp: Tlp) {
        let class = tlp.class().index();
        self.packets[class] += tlp.packets();
        self.payload[class] += tlp.payload();
        self.heads[class] = self.heads[class].min(order);
        self.classes[class].push_back((order, tlp));
        self.next = order + 1;
    }

    /// The packet that [`pop`](Self::pop) would take.
    pub fn peek(&self, ready: Ready) -> Option<&Tlp> {
        let (_, class) = self.first(ready)?;
        self.classes[class.index()].front().map(|(_, tlp)| tlp)
    }

    /// Takes the earliest packet of a ready class that ordering allows. Takes only the first packet
    /// of a run unless `ready` allows runs.
    pub fn pop(&mut self, ready: Ready) -> Option<Tlp> {
        let (_, class) = self.first(ready)?;
        self.take_for(class, ready)
    }

    /// Takes the first packet of a class for a receiver, regardless of ordering; the whole run if
    /// the receiver allows runs.
    pub(crate) fn take_for(&mut self, class: Class, receiver: Ready) -> Option<Tlp> {
        if !receiver.takes_runs()
            && let Some(first) = self.front(class)?.first_of_run()
        {
            self.remove_packets(class, 1);
            return Some(first);
        }
        self.take(class)
    }

    /// Takes the first packet or run of a class, regardless of ordering.
    pub fn take(&mut self, class: Class) -> Option<Tlp> {
        let (class, entries) = (class.index(), &mut self.classes[class.index()]);
        let (_, tlp) = entries.pop_front()?;
        self.heads[class] = entries.front().map_or(NONE, |(order, _)| *order);
        self.packets[class] -= tlp.packets();
        self.payload[class] -= tlp.payload();
        Some(tlp)
    }

    /// Removes `packets` packets of the first packet or run of a class, regardless of ordering.
    pub fn remove_packets(&mut self, class: Class, packets: usize) {
        let Some((_, tlp)) = self.classes[class.index()].front_mut() else { return };
        if packets >= tlp.packets() {
            self.take(class);
            return;
        }
        let payload = tlp.payload();
        tlp.remove_packets(packets);
        self.packets[class.index()] -= packets;
        self.payload[class.index()] -= payload - tlp.payload();
    }

    /// As [`pop`](Self::pop), in the form of [`Function::poll`](crate::Function::poll).
    pub fn poll(&mut self, ready: Ready) -> Output {
        match self.pop(ready) {
            Some(tlp) => Output::Tlp(tlp),
            None => Output::Wait(Wait { until: None, receiver: !self.is_empty() }),
        }
    }

    /// The sequence number and the class of the packet that [`pop`](Self::pop) would take.
    pub fn first(&self, ready: Ready) -> Option<(u64, Class)> {
        let head = |class: Class| self.heads[class.index()];
        let posted = head(Class::Posted);
        let mut first = (posted, Class::Posted);
        if !ready.has(Class::Posted) {
            first.0 = NONE;
        }
        let other = head(Class::NonPosted);
        if other < posted.min(first.0) && ready.has(Class::NonPosted) {
            first = (other, Class::NonPosted);
        }
        let completion = head(Class::Completion);
        let relaxed = || self.front(Class::Completion).is_some_and(|tlp| tlp.attributes.relaxed);
        if completion < first.0
            && ready.has(Class::Completion)
            && (completion < posted || relaxed())
        {
            first = (completion, Class::Completion);
        }
        (first.0 != NONE).then_some(first)
    }

    /// The first packet of a class, regardless of ordering.
    pub fn front(&self, class: Class) -> Option<&Tlp> {
        self.classes[class.index()].front().map(|(_, tlp)| tlp)
    }

    /// Number of packets of a class.
    pub fn len(&self, class: Class) -> usize {
        self.packets[class.index()]
    }

    /// Payload bytes of a class.
    pub fn payload(&self, class: Class) -> usize {
        self.payload[class.index()]
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.heads == [NONE; 3]
    }

    /// Appends packets.
    pub fn extend(&mut self, tlps: impl IntoIterator<Item = Tlp>) {
        tlps.into_iter().for_each(|tlp| self.push(tlp));
    }

    /// The trace IDs of all packets, class by class.
    pub fn trace_ids(&self) -> impl Iterator<Item = TraceId> {
        self.classes.iter().flatten().map(|(_, tlp)| tlp.trace_id)
    }

    /// The packets and runs of a class, in order.
    pub fn packets(&self, class: Class) -> impl Iterator<Item = &Tlp> {
        self.classes[class.index()].iter().map(|(_, tlp)| tlp)
    }

    /// The bytes of the packets that `select` takes, class by class, and in order within a class.
    pub fn encode(&self, select: impl Fn(&Tlp) -> bool) -> Bytes {
        let mut bytes = BytesMut::new();
        let all = self.classes.iter().flatten().map(|(_, tlp)| tlp);
        all.filter(|tlp| select(tlp)).for_each(|tlp| tlp.encode_packets(tlp.packets(), &mut bytes));
        bytes.freeze()
    }

    /// Appends packets from their bytes.
    ///
    /// # Errors
    /// At the first malformed packet.
    pub fn decode(&mut self, mut bytes: Bytes) -> Result<(), Malformed> {
        while !bytes.is_empty() {
            self.push(Tlp::decode(&mut bytes)?);
        }
        Ok(())
    }

    /// Drops all packets.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::tlp::{MemoryRequest, Status};
    use wire::{Bdf, Tag};

    fn tlp(class: Class, tag: u16) -> Tlp {
        let tag = Tag::truncate(tag);
        let request = MemoryRequest::for_bytes(Bdf::default(), tag, 0x1000, 4).unwrap();
        match class {
            Class::Posted => Tlp::memory_write(request, Bytes::from_static(&[0; 4])),
            Class::NonPosted => Tlp::memory_read(request),
            Class::Completion => {
                Tlp::completion(request.completion(Bdf::default(), Status::Success, 4))
            }
        }
    }

    fn queue(classes: &[Class]) -> OrderedQueue {
        let mut queue = OrderedQueue::default();
        for (tag, class) in classes.iter().enumerate() {
            queue.push(tlp(*class, tag as u16));
        }
        queue
    }

    use Class::{Completion as C, NonPosted as N, Posted as P};

    #[test]
    fn arrival_order_when_everything_is_ready() {
        let order = [N, P, C, P, N];
        let mut queue = queue(&order);
        for class in order {
            assert_eq!(queue.pop(Ready::ALL).unwrap().class(), class);
        }
        assert_eq!(queue.poll(Ready::NONE), Output::Wait(Wait::default()));
    }

    #[test]
    fn posted_passes_blocked_non_posted_and_completions() {
        let mut queue = queue(&[N, C, P]);
        let ready = Ready::NONE.with(P, true);
        assert_eq!(queue.poll(ready), Output::Tlp(tlp(P, 2)));
        assert_eq!(queue.poll(ready), Output::Wait(Wait { until: None, receiver: true }));
    }

    #[test]
    fn nothing_passes_an_earlier_posted_write() {
        let mut queue = queue(&[P, N, C]);
        assert_eq!(queue.pop(Ready::ALL.with(P, false)), None);
        let mut relaxed = tlp(C, 9);
        relaxed.attributes.relaxed = true;
        queue.pop(Ready::ALL).unwrap();
        queue.push(tlp(P, 3));
        assert_eq!(queue.pop(Ready::NONE.with(C, true)), Some(tlp(C, 2)));
        queue.push(relaxed.clone());
        assert_eq!(queue.pop(Ready::NONE.with(C, true)), Some(relaxed));
    }

    #[test]
    fn completions_and_non_posted_pass_each_other() {
        let mut first = queue(&[N, C]);
        assert_eq!(first.pop(Ready::ALL.with(N, false)).unwrap().class(), C);
        let mut second = queue(&[C, N]);
        assert_eq!(second.pop(Ready::ALL.with(C, false)).unwrap().class(), N);
    }
}
