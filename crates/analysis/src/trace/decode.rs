//! TLPs out of records.

use bytes::Bytes;
use wire::tlp::Tlp;

/// The TLP of a record. What was not kept of its payload reads as zeroes;
/// `None` if the bytes are no TLP.
pub(super) fn tlp(length: u16, bytes: &[u8]) -> Option<Tlp> {
    let whole = usize::from(length);
    let mut all = bytes.to_vec();
    if bytes.len() < whole {
        all.resize(whole, 0);
        // The ECRC is not there either.
        if all[2] & 0x80 != 0 {
            all[2] &= !0x80;
            all.truncate(whole - 4);
        }
    }
    let mut all = Bytes::from(all);
    let tlp = Tlp::decode(&mut all).ok()?;
    all.is_empty().then_some(tlp)
}

/// The header bytes that are the same at a port and on a link, where configuration
/// requests have become type 0.
pub(super) type Key = [u8; 16];

/// The key of the TLP that begins with `bytes`, 12 at least.
pub(super) fn key(bytes: &[u8]) -> Key {
    let mut key = [0; 16];
    let length = if bytes[0] & 0x20 != 0 { 16 } else { 12 }.min(bytes.len());
    key[..length].copy_from_slice(&bytes[..length]);
    if key[0] & 0x1f == 0b00101 {
        key[0] &= !1;
    }
    key
}
