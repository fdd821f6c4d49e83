//! The receiver makes frames from mPackets (IEEE 802.3-2022, 99.4.5, figures 99-6 and 99-7).

use super::mpacket::{DecodeError, Kind, Mpacket, fcs, mcrc};
use thiserror::Error;

/// The result of a received mPacket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A whole frame, without its FCS.
    Frame {
        /// The bytes from the destination address to the last one before the FCS.
        bytes: Vec<u8>,
        /// Whether it was received as an express frame.
        is_express: bool,
    },
    /// A fragment of a frame; more fragments will follow.
    Fragment,
    /// A verify packet; call [`super::Verification::handle_verify`].
    Verify,
    /// A respond packet; call [`super::Verification::handle_respond`].
    Respond,
}

/// Why an mPacket and its frame were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// The bytes are not an mPacket (aMACMergeFrameSmdErrorCount, 30.14.1.9). An incomplete frame
    /// is kept, unless the frag_count is invalid.
    #[error("malformed mPacket: {0}")]
    Decode(#[from] DecodeError),
    /// A continuation without a first fragment (also aMACMergeFrameSmdErrorCount).
    #[error("a continuation fragment without a first fragment")]
    NoStart,
    /// A first fragment although the previous frame is incomplete. Both are dropped. This error and
    /// the next two belong to aMACMergeFrameAssErrorCount (30.14.1.8).
    #[error("a new frame begins before the preempted frame is complete")]
    Incomplete,
    /// A continuation of another frame.
    #[error("a continuation fragment has frame count {found}, expected {expected}")]
    FrameCount {
        /// Frame count of the frame under way.
        expected: u8,
        /// Frame count of the continuation.
        found: u8,
    },
    /// A fragment is missing.
    #[error("a continuation fragment has fragment count {found}, expected {expected}")]
    FragmentCount {
        /// The expected fragment count.
        expected: u8,
        /// Fragment count of the continuation.
        found: u8,
    },
    /// The CRC is neither the FCS of the frame nor the mCRC of its bytes so far.
    #[error("the CRC is neither a valid FCS nor a valid mCRC")]
    Crc,
    /// The frame is longer than the receiver accepts.
    #[error("the frame is longer than {0} bytes")]
    TooLong(usize),
}

/// A frame of which some fragments have been received.
#[derive(Clone, Debug)]
struct Pending {
    frame: u8,
    next_fragment: u8,
    bytes: Vec<u8>,
}

/// Reassembles preempted frames from the received mPackets.
#[derive(Clone, Debug)]
pub struct Reassembler {
    longest: usize,
    pending: Option<Pending>,
}

impl Reassembler {
    /// A receiver of frames with up to `longest` bytes, without the FCS.
    pub fn new(longest: usize) -> Self {
        Self { longest, pending: None }
    }

    /// Whether a frame has begun and is not complete.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Handles the bytes of an mPacket, from preamble to CRC. Express, verify and respond packets
    /// do not affect an incomplete frame.
    ///
    /// # Errors
    /// Why the mPacket was dropped.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Received, Error> {
        let packet = Mpacket::decode(bytes).inspect_err(|why| {
            if matches!(why, DecodeError::FragmentCount(_)) {
                self.pending = None;
            }
        })?;
        match packet.kind {
            Kind::Express => self.express(packet),
            Kind::Verify => question(packet, Received::Verify),
            Kind::Respond => question(packet, Received::Respond),
            Kind::Start { frame } => {
                // The standard allows to keep this packet (keepSafterD) or to drop it.
                if self.pending.take().is_some() {
                    return Err(Error::Incomplete);
                }
                self.append(Pending { frame, next_fragment: 0, bytes: Vec::new() }, packet)
            }
            Kind::Continuation { frame, fragment } => {
                let mut pending = self.pending.take().ok_or(Error::NoStart)?;
                let (expected, found) = (pending.frame, frame);
                if found != expected {
                    return Err(Error::FrameCount { expected, found });
                }
                let (expected, found) = (pending.next_fragment, fragment);
                if found != expected {
                    return Err(Error::FragmentCount { expected, found });
                }
                pending.next_fragment = (fragment + 1) % 4;
                self.append(pending, packet)
            }
        }
    }

    fn express(&self, packet: Mpacket<'_>) -> Result<Received, Error> {
        if packet.data.len() > self.longest {
            return Err(Error::TooLong(self.longest));
        }
        if packet.crc != fcs(packet.data) {
            return Err(Error::Crc);
        }
        Ok(Received::Frame { bytes: packet.data.to_vec(), is_express: true })
    }

    /// Appends the fragment to its frame. A fragment with an mCRC is not the last one.
    fn append(&mut self, mut pending: Pending, packet: Mpacket<'_>) -> Result<Received, Error> {
        if pending.bytes.len() + packet.data.len() > self.longest {
            return Err(Error::TooLong(self.longest));
        }
        pending.bytes.extend(packet.data);
        if packet.crc == mcrc(&pending.bytes) {
            self.pending = Some(pending);
            return Ok(Received::Fragment);
        }
        if packet.crc != fcs(&pending.bytes) {
            return Err(Error::Crc);
        }
        Ok(Received::Frame { bytes: pending.bytes, is_express: false })
    }
}

fn question(packet: Mpacket<'_>, received: Received) -> Result<Received, Error> {
    if packet.crc == mcrc(packet.data) { Ok(received) } else { Err(Error::Crc) }
}
