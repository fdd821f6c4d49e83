//! Variable-length integers: LEB128, low seven bits first.

/// Size of the longest encoding in bytes.
pub(super) const MAX_LENGTH: usize = 10;

/// Number of bytes that `value` takes.
pub(super) const fn length(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Numbers below this take at most two bytes.
pub(super) const SHORT: u64 = 1 << 14;

/// The encoding of a number below `SHORT`, with the first byte in the lowest bits; and its number
/// of bytes.
pub(super) const fn short(value: u64) -> (u64, usize) {
    if value < 0x80 { (value, 1) } else { (value & 0x7f | 0x80 | (value >> 7 & 0x7f) << 8, 2) }
}

pub(super) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Writes to the front of a small array.
pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    pub(super) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    pub(super) fn length(&self) -> usize {
        self.at
    }
}

/// Takes a number off the front of `bytes`; `None` if it is truncated or has more than 64 bits.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(MAX_LENGTH) {
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << (7 * i);
        if shifted >> (7 * i) != bits {
            return None;
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}
