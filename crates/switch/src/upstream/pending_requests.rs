//! Who was pending_requests what: a far node is not trusted, so a completion counts only
//! if it comes from the port that its request went to. Without this a device
//! could answer in another's place, for tags are easily guessed.

use std::collections::BTreeMap;
use wire::tlp::{Completion, Packet, Tlp};
use wire::{Bdf, Tag};

/// The downstream port to which each unanswered request went; bounded by the
/// tags that requesters have. One never answered stays until its tag is used
/// again or its link goes down.
#[derive(Debug, Default)]
pub(super) struct PendingRequests(BTreeMap<(Bdf, Tag), usize>);

impl PendingRequests {
    /// Notes where a packet goes, if it wants an answer.
    pub fn note(&mut self, port: usize, tlp: &Tlp) {
        let (requester, tag) = match tlp.packet {
            Packet::MemoryRead(r) => (r.requester, r.tag),
            Packet::ConfigRead(c) | Packet::ConfigWrite(c) => (c.requester, c.tag),
            Packet::MemoryWrite(_) | Packet::Completion(_) | Packet::Message(_) => return,
        };
        self.0.insert((requester, tag), port);
    }

    /// Whether a completion with `payload` bytes answers what went to `port`.
    pub fn answers(&mut self, port: usize, c: Completion, payload: usize) -> bool {
        let key = (c.requester, c.tag);
        if self.0.get(&key) != Some(&port) {
            return false;
        }
        if c.ends(payload) {
            self.0.remove(&key);
        }
        true
    }

    /// Nobody at `port` will answer any more.
    pub fn forget(&mut self, port: usize) {
        self.0.retain(|_, pending_requests| *pending_requests != port);
    }
}
