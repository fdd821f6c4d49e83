//! Addresses that are known from the start, so that no ARP request is sent.
//!
//! smoltcp learns addresses only from ARP packets and forgets them after a
//! minute of its own time. So it gets ARP replies that no wire carried.

use std::net::Ipv4Addr;

use bytes::Bytes;
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetFrame};
use smoltcp::wire::{EthernetProtocol, EthernetRepr};
use wire::{Duration, Instant};

use crate::ethernet::Mac;
use crate::ethernet::frame::HEADER;

/// How often the replies are shown again: half the time that the stack keeps
/// them, see [`super::clock`].
const EVERY: Duration = Duration::from_ms(30);

/// The most neighbours, as the stack is built (`iface-neighbor-cache-count`).
pub const MAX_NEIGHBOURS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Neighbours {
    replies: Vec<Bytes>,
    shown: Option<Instant>,
}

impl Neighbours {
    pub fn add(&mut self, us: (Mac, Ipv4Addr), them: (Mac, Ipv4Addr)) {
        assert!(self.replies.len() < MAX_NEIGHBOURS, "more than {MAX_NEIGHBOURS} neighbours");
        self.replies.push(reply(us, them));
        self.shown = None;
    }

    /// The replies that are to be shown now, if it is time.
    pub fn due(&mut self, now: Instant) -> &[Bytes] {
        if self.shown.is_some_and(|shown| now.since(shown) < EVERY) {
            return &[];
        }
        self.shown = Some(now);
        &self.replies
    }
}

/// The ARP reply of `them` to `us`.
fn reply(us: (Mac, Ipv4Addr), them: (Mac, Ipv4Addr)) -> Bytes {
    let repr = ArpRepr::EthernetIpv4 {
        operation: ArpOperation::Reply,
        source_hardware_addr: EthernetAddress(them.0.0),
        source_protocol_addr: them.1,
        target_hardware_addr: EthernetAddress(us.0.0),
        target_protocol_addr: us.1,
    };
    let mut bytes = vec![0; HEADER + repr.buffer_len()];
    let mut frame = EthernetFrame::new_unchecked(&mut bytes);
    EthernetRepr {
        src_addr: EthernetAddress(them.0.0),
        dst_addr: EthernetAddress(us.0.0),
        ethertype: EthernetProtocol::Arp,
    }
    .emit(&mut frame);
    repr.emit(&mut ArpPacket::new_unchecked(frame.payload_mut()));
    bytes.into()
}
