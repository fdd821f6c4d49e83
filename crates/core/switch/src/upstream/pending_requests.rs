//! Unanswered requests by port. A completion is accepted only from the port that the request was
//! sent to, because device nodes are not trusted and tags are easy to guess.

use std::collections::BTreeMap;
use wire::tlp::{Completion, Packet, Tlp};
use wire::{Bdf, Tag};

/// The downstream port of each unanswered request. The tags of the requesters limit the number. A
/// request without an answer stays until the tag is reused or the link goes down.
#[derive(Debug, Default)]
pub(super) struct PendingRequests(BTreeMap<(Bdf, Tag), usize>);

impl PendingRequests {
    /// Adds a TLP sent to `port`, if it is a non-posted request.
    pub(super) fn add(&mut self, port: usize, tlp: &Tlp) {
        let (requester, tag) = match tlp.packet {
            Packet::MemoryRead(r) => (r.requester, r.tag),
            Packet::ConfigRead(c) | Packet::ConfigWrite(c) => (c.requester, c.tag),
            Packet::MemoryWrite(_) | Packet::Completion(_) | Packet::Message(_) => return,
        };
        self.0.insert((requester, tag), port);
    }

    /// Whether a completion with `payload` bytes answers a request sent to `port`.
    pub(super) fn answers(&mut self, port: usize, c: Completion, payload: usize) -> bool {
        let key = (c.requester, c.tag);
        if self.0.get(&key) != Some(&port) {
            return false;
        }
        if c.ends(payload) {
            self.0.remove(&key);
        }
        true
    }

    pub(super) fn forget(&mut self, port: usize) {
        self.0.retain(|_, target| *target != port);
    }
}
