//! The network device of the TCP stack. The device adds and removes the Ethernet header. Therefore
//! the stack needs no ARP and no neighbour table, which would be bounded and searched linearly.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use bytes::{Bytes, BytesMut};
use smoltcp::phy;
use smoltcp::phy::{Checksum, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::time;

use crate::ethernet::Mac;
use crate::ethernet::frame::HEADER;
use crate::memory::take_memory;

/// The EtherType of IPv4 (RFC 894).
const IPV4: [u8; 2] = [8, 0];

/// The destination in an IPv4 header (RFC 791, 3.1).
const DESTINATION: std::ops::Range<usize> = 16..20;

/// The most frames that may wait for the network when the stack adds an answer (a reset). Further
/// answers are dropped.
const ANSWERS: usize = 64;

/// A device with one received frame and at most one sent frame at a time.
#[derive(Debug)]
pub(super) struct Device {
    mtu: usize,
    mac: Mac,
    /// The Ethernet addresses of peers. Packets for other addresses are dropped.
    pub neighbours: BTreeMap<Ipv4Addr, Mac>,
    /// The next frame for the stack.
    pub received: Option<Bytes>,
    /// The frame that the stack sent.
    pub frame: Option<BytesMut>,
    /// A buffer from which frames take their memory.
    memory: BytesMut,
    /// Frames that wait for the network.
    pub waiting: usize,
}

impl Device {
    pub(super) fn new(mtu: usize, mac: Mac) -> Self {
        let (neighbours, memory) = (BTreeMap::new(), BytesMut::new());
        Self { mtu, mac, neighbours, received: None, frame: None, memory, waiting: 0 }
    }

    fn token(&mut self, fits: bool) -> TxToken<'_> {
        let Self { mac, neighbours, frame, memory, .. } = self;
        TxToken { mac: *mac, neighbours, frame, memory, fits }
    }
}

impl phy::Device for Device {
    type RxToken<'a> = RxToken;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, _: time::Instant) -> Option<(RxToken, TxToken<'_>)> {
        let frame = self.received.take().filter(|frame| frame[HEADER - 2..HEADER] == IPV4)?;
        Some((RxToken(frame), self.token(self.waiting < ANSWERS)))
    }

    fn transmit(&mut self, _: time::Instant) -> Option<TxToken<'_>> {
        if self.frame.is_some() {
            return None;
        }
        Some(self.token(true))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        // Sent frames need correct checksums for captures. Received frames have passed the FCS
        // check, so the stack does not verify their checksums.
        let mut checksum = ChecksumCapabilities::default();
        checksum.ipv4 = Checksum::Tx;
        checksum.tcp = Checksum::Tx;
        capabilities.checksum = checksum;
        capabilities
    }
}

pub(super) struct RxToken(Bytes);

impl phy::RxToken for RxToken {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0[HEADER..])
    }
}

pub(super) struct TxToken<'a> {
    mac: Mac,
    neighbours: &'a BTreeMap<Ipv4Addr, Mac>,
    frame: &'a mut Option<BytesMut>,
    memory: &'a mut BytesMut,
    fits: bool,
}

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut bytes = take_memory(self.memory, HEADER + length);
        let (header, packet) = bytes.split_at_mut(HEADER);
        let result = f(packet);
        let to: [u8; 4] = packet[DESTINATION].try_into().expect("four bytes");
        if let Some(to) = self.neighbours.get(&to.into()).filter(|_| self.fits) {
            header[..6].copy_from_slice(&to.0);
            header[6..12].copy_from_slice(&self.mac.0);
            header[12..].copy_from_slice(&IPV4);
            *self.frame = Some(bytes);
        }
        result
    }
}
