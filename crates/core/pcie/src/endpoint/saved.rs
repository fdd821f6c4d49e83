//! What an endpoint remembers over the end of its process.

use super::Endpoint;
use crate::OrderedQueue;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::tlp::{Class, Packet, Tlp};
use wire::{Bdf, Instant};

/// The highest number of tags (PCIe Base 4.0, section 2.2.6.2).
const MAX_TAGS: usize = 1024;

/// A function of another kind saved the state, or the state is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another kind of device saved the state, or the state is damaged")]
pub struct ForeignState;

/// What a function has sent to its link, and the link has not put into a frame: it is lost with the
/// process.
#[derive(Clone, Debug, Default)]
pub struct Unsent {
    /// Payload bytes of posted requests.
    pub written: usize,
    /// Tags of requests.
    pub tags: Vec<u16>,
}

impl Unsent {
    /// The packets of a queue.
    pub fn of(queue: &OrderedQueue) -> Self {
        let tags = queue.packets(Class::NonPosted).filter_map(|tlp| match tlp.packet {
            Packet::MemoryRead(request) => Some(request.tag.get()),
            _ => None,
        });
        Self { written: queue.payload(Class::Posted), tags: tags.collect() }
    }
}

/// The state of an endpoint that goes on in another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedEndpoint {
    /// Configuration space.
    config: Bytes,
    msix_table: Bytes,
    msix_pending: Vec<u64>,
    /// The captured bus, device and function number.
    id: u16,
    /// The level of INTA, and whether the host knows that it is asserted.
    intx: (bool, bool),
    /// Tags of requests, with the number of bytes that their completions still bring.
    tags: Vec<(u16, usize)>,
    /// Completions and messages that the link has not taken.
    waiting: Bytes,
}

/// Whether an endpoint sends this packet because of an access or a change of INTA: it is not sent
/// again by itself.
pub fn is_answer(tlp: &Tlp) -> bool {
    tlp.class() == Class::Completion || tlp.class() == Class::Posted && tlp.data.is_empty()
}

impl Endpoint {
    /// The state now. Writes of data, and what the requests in flight are for, are not part of it.
    pub fn save(&self, unsent: &Unsent) -> SavedEndpoint {
        let tags = self.engine.in_flight().filter(|(tag, _)| !unsent.tags.contains(tag));
        SavedEndpoint {
            config: Bytes::copy_from_slice(self.config.bytes()),
            msix_table: Bytes::copy_from_slice(&self.msix.table),
            msix_pending: self.msix.pending.clone(),
            id: self.id.bits(),
            intx: (self.intx, self.intx_asserted),
            tags: tags.collect(),
            waiting: self.out.encode(is_answer),
        }
    }

    /// Goes on from a saved state, instead of the state after power-on. The tags in flight are used
    /// again when their completions have arrived.
    ///
    /// # Errors
    /// If the state was not saved by an endpoint with these settings.
    pub fn restore(&mut self, now: Instant, saved: &SavedEndpoint) -> Result<(), ForeignState> {
        if saved.msix_table.len() != self.msix.table.len()
            || saved.msix_pending.len() != self.msix.pending.len()
            || saved.tags.iter().any(|(tag, _)| usize::from(*tag) >= MAX_TAGS)
            || !self.config.set_bytes(&saved.config)
        {
            return Err(ForeignState);
        }
        self.msix.table.copy_from_slice(&saved.msix_table);
        self.msix.pending.copy_from_slice(&saved.msix_pending);
        self.id = Bdf::from_bits(saved.id);
        (self.intx, self.intx_asserted) = saved.intx;
        self.engine.quarantine(now, &saved.tags);
        self.out.decode(saved.waiting.clone()).map_err(|_| ForeignState)
    }
}
