//! The network device of the TCP stack.

use bytes::{Bytes, BytesMut};
use smoltcp::phy;
use smoltcp::phy::{Checksum, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::time;

use crate::ethernet::frame::HEADER;
use crate::memory::take_memory;

/// Answers (resets, ARP replies) that may wait while the network takes nothing;
/// further ones are dropped.
const ANSWERS: usize = 64;

/// One frame in, at most one out at a time.
#[derive(Debug)]
pub(super) struct Device {
    mtu: usize,
    /// The next frame for the stack.
    pub received: Option<Bytes>,
    /// The frame that the stack sent.
    pub frame: Option<BytesMut>,
    /// Memory for the next frames.
    memory: BytesMut,
    /// Frames that wait for the network to take them.
    pub waiting: usize,
}

impl Device {
    pub fn new(mtu: usize) -> Self {
        Self { mtu, received: None, frame: None, memory: BytesMut::new(), waiting: 0 }
    }
}

impl phy::Device for Device {
    type RxToken<'a> = RxToken;
    type TxToken<'a> = TxToken<'a>;

    fn receive(&mut self, _: time::Instant) -> Option<(RxToken, TxToken<'_>)> {
        let bytes = self.received.take()?;
        let fits = self.waiting < ANSWERS;
        let (frame, memory) = (&mut self.frame, &mut self.memory);
        Some((RxToken(bytes), TxToken { frame, memory, fits }))
    }

    fn transmit(&mut self, _: time::Instant) -> Option<TxToken<'_>> {
        if self.frame.is_some() {
            return None;
        }
        Some(TxToken { frame: &mut self.frame, memory: &mut self.memory, fits: true })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + HEADER;
        // Captures shall show right checksums. What comes in has passed the
        // FCS check, so looking at them again would only cost time.
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
        f(&self.0)
    }
}

pub(super) struct TxToken<'a> {
    frame: &'a mut Option<BytesMut>,
    memory: &'a mut BytesMut,
    fits: bool,
}

impl phy::TxToken for TxToken<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        let mut bytes = take_memory(self.memory, length);
        let result = f(&mut bytes);
        if self.fits {
            *self.frame = Some(bytes);
        }
        result
    }
}
