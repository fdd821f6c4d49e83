//! Numbers that identify something, as hexadecimal text: JSON readers lose digits of large numbers.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes bytes, the first one first.
pub(super) fn serialize<S: Serializer, const N: usize>(
    bytes: &[u8; N],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&text)
}

/// Reads what [`serialize`] writes.
pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
    deserializer: D,
) -> Result<[u8; N], D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || {
        let digits = 2 * N;
        D::Error::custom(format!("{text:?} is not {digits} hexadecimal digits in lower case"))
    };
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return Err(wrong());
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        let (high, low) = digit(*high).zip(digit(*low)).ok_or_else(wrong)?;
        *byte = high << 4 | low;
    }
    Ok(bytes)
}

/// The same for a number, the most significant digit first.
pub(super) mod number {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(&number.to_be_bytes(), serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::deserialize(deserializer).map(u64::from_be_bytes)
    }
}
