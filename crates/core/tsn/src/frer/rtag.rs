//! The redundancy tag, or R-TAG (IEEE 802.1CB-2017, 7.8), which follows the VLAN tags.

use thiserror::Error;

/// The EtherType of the tag (7.8, table 7-1).
pub const ETHER_TYPE: u16 = 0xf1c1;

/// Bytes of the tag: EtherType, 16 reserved bits, 16 bits of sequence number (7.8, figure 7-4).
pub const LENGTH: usize = 6;

/// Bytes that are not an R-TAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RTagError {
    /// Fewer bytes than a tag has.
    #[error("truncated R-TAG: {0} bytes, expected {LENGTH}")]
    Short(usize),
    /// Another EtherType.
    #[error("EtherType {0:04x} is not the R-TAG's {ETHER_TYPE:04x}")]
    EtherType(u16),
}

/// The tag with the number `sequence`. The reserved bits are 0.
pub const fn encode(sequence: u16) -> [u8; LENGTH] {
    let ([a, b], [c, d]) = (ETHER_TYPE.to_be_bytes(), sequence.to_be_bytes());
    [a, b, 0, 0, c, d]
}

/// The number in the tag at the beginning of `bytes`. The reserved bits are ignored.
///
/// # Errors
/// Too few bytes, or another EtherType.
pub fn decode(bytes: &[u8]) -> Result<u16, RTagError> {
    let tag: &[u8; LENGTH] = bytes.first_chunk().ok_or(RTagError::Short(bytes.len()))?;
    match u16::from_be_bytes([tag[0], tag[1]]) {
        ETHER_TYPE => Ok(u16::from_be_bytes([tag[4], tag[5]])),
        other => Err(RTagError::EtherType(other)),
    }
}
