//! Frame preemption (IEEE 802.1Q-2022, 6.7.2; IEEE 802.3-2022, clause 99).
//!
//! - this module: where a frame may be cut (99.4.4, 99.4.7.3).
//! - [`mpacket`]: the bytes of frames and fragments on the line.
//! - [`reassembler`]: makes frames from received fragments.
//! - [`verification`]: whether the neighbour supports fragments.
//!
//! Lengths are in bytes. A frame extends from its destination address to its FCS.

pub mod mpacket;
pub mod reassembler;
pub mod verification;

pub use mpacket::{Fragmenter, Kind, Mpacket};
pub use reassembler::{Reassembler, Received};
pub use verification::Verification;

/// Bytes of the checksum at the end of every fragment except the last (802.3-2022, 99.3.6).
pub const MCRC: usize = 4;

/// The bytes before the data of a continuation: 6 bytes of preamble, SMD-C and frag_count
/// (802.3-2022, figure 99-4). Equal to preamble and SFD of a whole frame.
pub const CONTINUATION_PREAMBLE: usize = 8;

/// The minimum bytes of a frame that must remain after a cut, FCS included (802.3-2022, 99.4.7.3,
/// MIN_REMAIN).
pub const MIN_REST: usize = 64;

/// Bytes per step of addFragSize: minFrag octets (99.4.4).
const STEP: usize = 64;

/// addFragSize: by how many times 64 bytes every fragment except the last must exceed the minimum.
/// The receiver announces this number (802.3-2022, 79.3.7, Additional Ethernet Capabilities TLV).
/// The default is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FragmentSize(u8);

impl FragmentSize {
    /// addFragSize of 0 to 3; `None` if it is larger.
    pub const fn new(add: u8) -> Option<Self> {
        if add > 3 { None } else { Some(Self(add)) }
    }

    /// The minimum bytes of every fragment except the last, without its mCRC: 60, 124, 188 or 252
    /// (802.3-2022, 99.4.7.3, preemptableFragSize, and figure 99-5).
    pub const fn min_sent(self) -> usize {
        STEP * (1 + self.0 as usize) - MCRC
    }

    /// The longest frame, FCS included, that cannot be cut: 123, 187, 251 or 315.
    pub const fn longest_unsplittable(self) -> usize {
        self.min_sent() + MIN_REST - 1
    }
}

/// The first point where a frame of `length` bytes can be cut, in bytes of the current fragment.
/// Earlier fragments had `sent_before` bytes of the frame, and `sent_now` bytes (rounded up) of the
/// current fragment have been sent. The result is at least `sent_now`. `None`: the frame can no
/// longer be cut.
pub fn split(
    fragment: FragmentSize,
    length: usize,
    sent_before: usize,
    sent_now: usize,
) -> Option<usize> {
    let left = length.checked_sub(sent_before)?;
    let cut = sent_now.max(fragment.min_sent());
    (cut + MIN_REST <= left).then_some(cut)
}
