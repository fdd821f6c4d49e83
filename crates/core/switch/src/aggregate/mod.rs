//! The aggregation queue. Only this queue decides when a TLP leaves.
//!
//! [`Policy::Adaptive`] needs no timer and no parameter: when the network can take a frame, all
//! queued TLPs with credits go into the frame, up to its size. The other policies exist for
//! comparison. Implement [`Aggregation`] for a policy of your own.

mod policy;
#[cfg(test)]
mod tests;

pub use policy::{Aggregation, Departure, Policy, Queued, UnknownPolicy};

use bytes::{Bytes, BytesMut};
use pcie::endpoint::Unsent;
use pcie::{OrderedQueue, Ready};
use wire::Instant;
use wire::frame::Grant;
use wire::tlp::{Class, Malformed, Tlp, TraceId, data_credits};

/// The maximum number of TLPs queued in one class.
const MAX_PACKETS: usize = 4096;
/// The maximum number of payload bytes queued in one class.
const MAX_PAYLOAD: usize = 4 << 20;

/// The queue of TLPs that wait for the network or for credits.
#[derive(Debug)]
pub struct Aggregate {
    policy: Box<dyn Aggregation>,
    /// Bytes that the encapsulation adds to each TLP in a frame.
    overhead: usize,
    queue: OrderedQueue,
    /// Queued bytes on the wire, by class.
    bytes: [usize; 3],
    used: [Grant; 3],
    limits: [Grant; 3],
    credit_stalls: u64,
}

impl Aggregate {
    /// An empty queue with the credit limits of the peer's Hello.
    pub fn new(policy: Policy, limits: [Grant; 3]) -> Self {
        Self {
            policy: policy.start(),
            overhead: 0,
            queue: OrderedQueue::default(),
            bytes: [0; 3],
            used: Default::default(),
            limits,
            credit_stalls: 0,
        }
    }

    /// Counts `overhead` additional bytes per TLP in a frame, for a transport that encapsulates
    /// TLPs.
    #[must_use]
    pub fn with_overhead(self, overhead: usize) -> Self {
        Self { overhead, ..self }
    }

    /// Whether every TLP has a frame of its own.
    pub fn sends_singly(&self) -> bool {
        self.policy.max_packets() == 1
    }

    /// The classes for which the queue has room.
    pub fn ready(&self) -> Ready {
        Ready::from_fn(|class| {
            self.queue.len(class) < MAX_PACKETS && self.queue.payload(class) < MAX_PAYLOAD
        })
    }

    /// Whether every class has room for `packets` further TLPs with `payload` bytes.
    pub fn has_room(&self, packets: usize, payload: usize) -> bool {
        Class::ALL.into_iter().all(|class| {
            self.queue.len(class) + packets <= MAX_PACKETS
                && self.queue.payload(class) + payload <= MAX_PAYLOAD
        })
    }

    /// The header and data credits that are left for posted TLPs behind the queued TLPs. The data
    /// credits are a lower bound: at most one per queued TLP is missing.
    pub fn posted_credits(&self) -> Grant {
        let class = Class::Posted.index();
        let (used, limit) = (self.used[class], self.limits[class]);
        let queued = self.queue.len(Class::Posted) as u32;
        let data = (self.queue.payload(Class::Posted) / 16) as u32 + queued;
        let left = |limit: u32, used: u32, queued| limit.wrapping_sub(used).saturating_sub(queued);
        Grant {
            headers: left(limit.headers, used.headers, queued),
            data: left(limit.data, used.data, data),
        }
    }

    /// Adds a TLP. The class of the TLP must have room.
    pub fn push(&mut self, tlp: Tlp) {
        self.bytes[tlp.class().index()] += tlp.all_wire_length();
        self.queue.push(tlp);
    }

    /// Whether a queued TLP has credits.
    pub fn has_sendable(&self) -> bool {
        self.queue.peek(self.allowed()).is_some()
    }

    /// Length in bytes of the next TLP that has credits.
    pub fn next_length(&self) -> Option<usize> {
        self.queue.peek(self.allowed()).map(Tlp::wire_length)
    }

    /// When the next frame leaves, with `room` bytes for TLPs. TLPs that were pushed since the last
    /// call count as queued `now`.
    pub fn departure(&mut self, now: Instant, room: usize) -> Departure {
        if self.queue.is_empty() {
            return Departure::Later;
        }
        let sendable = self.allowed();
        let length = |next: &Tlp| next.wire_length() + self.overhead;
        let fits = self.queue.peek(sendable).is_some_and(|next| length(next) <= room);
        let packets = Class::ALL.map(|class| self.queue.len(class));
        let with_overhead =
            |class: Class| self.bytes[class.index()] + packets[class.index()] * self.overhead;
        let queued = Queued { packets, bytes: Class::ALL.map(with_overhead), sendable, room };
        let departure = self.policy.departure(now, &queued);
        if fits { departure } else { Departure::Later }
    }

    /// Moves TLPs to the end of `frame` while they fit in `room` bytes and the policy allows more
    /// TLPs. Calls `each` with trace ID and bytes of each TLP. Returns the number of moved TLPs.
    pub fn fill(
        &mut self,
        frame: &mut BytesMut,
        room: usize,
        mut each: impl FnMut(TraceId, &[u8]),
    ) -> usize {
        let (start, mut count, most) = (frame.len(), 0, self.policy.max_packets());
        while let Some((_, class)) = self.queue.first(self.allowed()) {
            let Some(tlp) = self.queue.front(class) else { break };
            let left = room.saturating_sub(frame.len() - start + count * self.overhead);
            let (packets, is_full) = self.packets_within(tlp, left, most - count);
            let at = frame.len();
            tlp.encode_packets(packets, frame);
            let mut encoded = &frame[at..];
            for length in tlp.wire_lengths().take(packets) {
                let (packet, rest) = encoded.split_at(length);
                each(tlp.trace_id, packet);
                encoded = rest;
            }
            let credits = tlp.payloads().take(packets).map(data_credits).sum();
            let bytes = frame.len() - at;
            self.remove(class, packets, bytes, credits);
            count += packets;
            if is_full || count == most {
                return count;
            }
        }
        if !self.queue.is_empty() {
            self.credit_stalls += 1;
        }
        count
    }

    /// The number of packets of `tlp` that have credits and fit in `room` bytes, at most `most`;
    /// and whether the room is too small for the next packet.
    fn packets_within(&self, tlp: &Tlp, room: usize, most: usize) -> (usize, bool) {
        let class = tlp.class().index();
        let (used, limit) = (self.used[class], self.limits[class]);
        let mut left = Grant {
            headers: limit.headers.wrapping_sub(used.headers),
            data: limit.data.wrapping_sub(used.data),
        };
        let (mut packets, mut length) = (0, 0);
        for (payload, bytes) in tlp.payloads().zip(tlp.wire_lengths()).take(most) {
            let credits = data_credits(payload);
            if left.headers == 0 || left.data < credits {
                break;
            }
            length += bytes + self.overhead;
            if length > room {
                return (packets, true);
            }
            left = Grant { headers: left.headers - 1, data: left.data - credits };
            packets += 1;
        }
        (packets, false)
    }

    /// Removes the first `packets` packets of a class with `length` bytes in total, and consumes
    /// one header credit per packet and `credits` data credits.
    fn remove(&mut self, class: Class, packets: usize, length: usize, credits: u32) {
        self.queue.remove_packets(class, packets);
        self.policy.removed(class, packets);
        let class = class.index();
        self.bytes[class] -= length;
        let used = &mut self.used[class];
        used.headers = used.headers.wrapping_add(packets as u32);
        used.data = used.data.wrapping_add(credits);
    }

    /// Adds `by` to all credit counts, as a long run of traffic would.
    #[cfg(test)]
    pub fn age(&mut self, by: u32) {
        for Grant { headers, data } in self.used.iter_mut().chain(&mut self.limits) {
            (*headers, *data) = (headers.wrapping_add(by), data.wrapping_add(by));
        }
    }

    /// Sets new credit limits. Returns `false` if a limit decreases, which violates the protocol.
    pub fn grant(&mut self, limits: [Grant; 3]) -> bool {
        let forward = |old: u32, new: u32| new.wrapping_sub(old) < 1 << 31;
        let valid = self
            .limits
            .iter()
            .zip(&limits)
            .all(|(old, new)| forward(old.headers, new.headers) && forward(old.data, new.data));
        if valid {
            self.limits = limits;
        }
        valid
    }

    /// What the function has sent and is still queued.
    pub(crate) fn unsent(&self) -> Unsent {
        Unsent::of(&self.queue)
    }

    /// The used credits, the credit limits, and the queued completions and messages, which no
    /// function sends again.
    pub(crate) fn save(&self) -> ([Grant; 3], [Grant; 3], Bytes) {
        (self.used, self.limits, self.queue.encode(pcie::endpoint::is_answer))
    }

    /// Goes on from what was saved.
    pub(crate) fn restore(
        &mut self,
        (used, limits, queued): ([Grant; 3], [Grant; 3], Bytes),
    ) -> Result<(), Malformed> {
        (self.used, self.limits) = (used, limits);
        let mut answers = OrderedQueue::default();
        answers.decode(queued)?;
        while let Some(tlp) = answers.pop(Ready::ALL) {
            self.push(tlp);
        }
        Ok(())
    }

    /// Number of frames that were closed while TLPs still waited for credits.
    pub fn credit_stalls(&self) -> u64 {
        self.credit_stalls
    }

    /// Whether posted requests or completions are queued. A receiver must accept these some time
    /// (PCIe Base 4.0, section 2.4.1).
    pub fn has_posted_or_completions(&self) -> bool {
        self.queue.len(Class::Posted) + self.queue.len(Class::Completion) > 0
    }

    /// Number of queued bytes on the wire.
    pub fn bytes(&self) -> usize {
        self.bytes.iter().sum()
    }

    /// Number of queued TLPs.
    pub fn len(&self) -> usize {
        Class::ALL.into_iter().map(|class| self.queue.len(class)).sum()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The trace IDs of all queued TLPs.
    pub fn trace_ids(&self) -> impl Iterator<Item = TraceId> {
        self.queue.trace_ids()
    }

    /// Drops all queued TLPs; the credits stay. Returns the number of dropped posted TLPs.
    pub fn clear(&mut self) -> usize {
        let posted = self.queue.len(Class::Posted);
        Class::ALL.into_iter().for_each(|class| self.policy.removed(class, self.queue.len(class)));
        self.queue.clear();
        self.bytes = [0; 3];
        posted
    }

    /// The classes whose first TLP has credits.
    fn allowed(&self) -> Ready {
        Ready::from_fn(|class| {
            let (used, limit) = (self.used[class.index()], self.limits[class.index()]);
            self.queue.front(class).is_some_and(|front| {
                limit.headers.wrapping_sub(used.headers) >= 1
                    && limit.data.wrapping_sub(used.data) >= front.data_credits()
            })
        })
    }
}
