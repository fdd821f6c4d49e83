//! The receive buffer of TLPs, and the credits that it returns.

use bytes::Bytes;
use pcie::{OrderedQueue, Ready};
use wire::frame::Grant;
use wire::tlp::{Class, Malformed, Tlp, TraceId};

/// The receive buffer. For each class, it is as large as the advertised credits.
#[derive(Debug)]
pub(super) struct Receiver {
    queue: OrderedQueue,
    window: [Grant; 3],
    received: [Grant; 3],
    consumed: [Grant; 3],
    advertised: [Grant; 3],
    /// Whether a TLP was received or consumed since the last [`update`](Self::update).
    changed: bool,
}

impl Receiver {
    pub(super) fn new(window: [Grant; 3]) -> Self {
        let none = [Grant::default(); 3];
        Self {
            queue: OrderedQueue::default(),
            window,
            received: none,
            consumed: none,
            advertised: window,
            changed: true,
        }
    }

    /// The received, consumed and advertised credits, and the TLPs that nobody has taken.
    pub(super) fn save(&self) -> ([[Grant; 3]; 3], Bytes) {
        ([self.received, self.consumed, self.advertised], self.queue.encode(|_| true))
    }

    /// Goes on from what was saved.
    pub(super) fn restore(
        &mut self,
        ([received, consumed, advertised], queued): ([[Grant; 3]; 3], Bytes),
    ) -> Result<(), Malformed> {
        (self.received, self.consumed, self.advertised) = (received, consumed, advertised);
        self.queue.decode(queued)
    }

    /// Adds a received TLP or run; `false` if the far side had no credits for it.
    pub(super) fn push(&mut self, tlp: Tlp) -> bool {
        let class = tlp.class().index();
        let (received, limit) = (&mut self.received[class], self.advertised[class]);
        let headers = received.headers.wrapping_add(tlp.packets() as u32);
        let data = received.data.wrapping_add(tlp.all_data_credits());
        let within = |used: u32, limit: u32| limit.wrapping_sub(used) < 1 << 31;
        if !within(headers, limit.headers) || !within(data, limit.data) {
            return false;
        }
        *received = Grant { headers, data };
        self.changed = true;
        self.queue.push(tlp);
        true
    }

    /// The credit limits that the far side may use, to advertise now.
    pub(super) fn limits(&mut self) -> [Grant; 3] {
        self.advertised = self.fresh();
        self.advertised
    }

    fn fresh(&self) -> [Grant; 3] {
        std::array::from_fn(|i| Grant {
            headers: self.consumed[i].headers.wrapping_add(self.window[i].headers),
            data: self.consumed[i].data.wrapping_add(self.window[i].data),
        })
    }

    pub(super) fn trace_ids(&self) -> impl Iterator<Item = TraceId> {
        self.queue.trace_ids()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn front(&self, class: Class) -> Option<&Tlp> {
        self.queue.front(class)
    }

    pub(super) fn pop(&mut self, ready: Ready) -> Option<Tlp> {
        let tlp = self.queue.pop(ready)?;
        self.consume(&tlp);
        Some(tlp)
    }

    fn consume(&mut self, tlp: &Tlp) {
        self.changed = true;
        let consumed = &mut self.consumed[tlp.class().index()];
        consumed.headers = consumed.headers.wrapping_add(tlp.packets() as u32);
        consumed.data = consumed.data.wrapping_add(tlp.all_data_credits());
    }

    /// Drops all TLPs, which count as consumed.
    pub(super) fn clear(&mut self) {
        while self.pop(Ready::ALL).is_some() {}
    }

    /// Adds `by` to all counts of credits.
    #[cfg(test)]
    pub fn age(&mut self, by: u32) {
        for grants in [&mut self.received, &mut self.consumed, &mut self.advertised] {
            for Grant { headers, data } in grants {
                (*headers, *data) = (headers.wrapping_add(by), data.wrapping_add(by));
            }
        }
    }

    /// The credit limits to advertise; `None` if they are not due. They are due when more than a
    /// quarter of a window was consumed since the last limits, or when the far side has no credits
    /// left for a largest TLP of `max_payload` bytes.
    pub(super) fn update(&mut self, max_payload: u16) -> Option<[Grant; 3]> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let largest = [u32::from(max_payload) / 16, 1, u32::from(max_payload) / 16];
        let fresh = self.fresh();
        let due = (0..3).any(|i| {
            let due = |new: u32, old: u32, window: u32, received: u32, largest: u32| {
                let gained = new.wrapping_sub(old);
                gained > window / 4 || gained > 0 && old.wrapping_sub(received) < largest
            };
            let (new, old, window) = (fresh[i], self.advertised[i], self.window[i]);
            let received = self.received[i];
            due(new.headers, old.headers, window.headers, received.headers, 1)
                || due(new.data, old.data, window.data, received.data, largest[i])
        });
        due.then(|| {
            self.advertised = fresh;
            fresh
        })
    }
}
