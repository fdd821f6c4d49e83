//! Little-endian fields at byte offsets.

/// `N` bytes at `offset`. The caller's slice is long enough.
pub(super) fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}

pub(super) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes(array(bytes, offset))
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(array(bytes, offset))
}

pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_le_bytes(array(bytes, offset))
}

pub(super) fn u128_at(bytes: &[u8], offset: usize) -> u128 {
    u128::from_le_bytes(array(bytes, offset))
}

/// Lays `value` down at `offset`.
pub(super) fn put<const N: usize>(bytes: &mut [u8], offset: usize, value: [u8; N]) {
    bytes[offset..offset + N].copy_from_slice(&value);
}

/// `text` as an ASCII string field: left-justified, padded with spaces, cut to
/// `N` bytes; what is not printable ASCII becomes `?` (section 1.5).
pub fn ascii<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    for (byte, character) in field.iter_mut().zip(text.chars()) {
        *byte = if matches!(character, ' '..='~') { character as u8 } else { b'?' };
    }
    field
}
