//! The mirror of a downstream port, with its link.

use super::Settings;
use crate::tunnel::Tunnel;
use pcie::config::PcieKind;
use pcie::{Bridge, Errors};
use wire::Bdf;
use wire::tlp::{Class, Tlp};

/// A downstream port, as host software accesses it.
#[derive(Debug)]
pub(super) struct Port {
    pub bridge: Bridge,
    pub tunnel: Tunnel,
    pub intx: [bool; 4],
    pub errors: Errors,
    /// Whether posted requests stay in the tunnel ([`super::Upstream::hold`]).
    pub held: bool,
    /// Number of unanswered reads that were sent upstream.
    pub reads: usize,
    /// The maximum number of pushed bytes that the far end keeps; 0 if the far end accepts no push
    /// messages.
    pub push_capacity: usize,
    /// The largest payload that the far end accepts, in bytes.
    pub takes: usize,
}

impl Port {
    pub(super) fn new(number: u8, settings: &Settings) -> Self {
        let kind = PcieKind::DownstreamPort { slot: u16::from(number) + 1 };
        Self {
            bridge: Bridge::new(kind, settings.max_payload),
            tunnel: Tunnel::new(settings.tunnel),
            intx: [false; 4],
            errors: Errors::default(),
            held: false,
            reads: 0,
            push_capacity: 0,
            takes: 0,
        }
    }

    /// Resets everything below, and the registers of this port.
    pub(super) fn hot_reset(&mut self) {
        self.bridge.reset();
        self.reset_link();
    }

    /// Resets everything below.
    pub(super) fn reset_link(&mut self) {
        self.tunnel.reset();
        self.reads = 0;
    }

    /// Sends a TLP down the link. If the link is down, drops the TLP: for a non-posted request
    /// returns an Unsupported Request completion with the completer ID `id`, other TLPs are
    /// counted.
    pub(super) fn send(&mut self, id: Bdf, tlp: Tlp) -> Option<Tlp> {
        let up = self.tunnel.is_up();
        if !up && tlp.class() == Class::NonPosted {
            self.errors.unsupported_request += 1;
            return pcie::bridge::unsupported_request(id, &tlp);
        }
        self.errors.dropped_link_down += if up { 0 } else { tlp.packets() as u64 };
        self.tunnel.push(tlp);
        None
    }
}
