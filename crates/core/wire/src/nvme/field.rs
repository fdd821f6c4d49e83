//! Text fields.

/// `text` as an ASCII string field: left-justified, padded with spaces, truncated to `N` bytes;
/// characters other than printable ASCII become `?` (section 1.5).
pub fn ascii<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    for (byte, character) in field.iter_mut().zip(text.chars()) {
        *byte = if matches!(character, ' '..='~') { character as u8 } else { b'?' };
    }
    field
}
