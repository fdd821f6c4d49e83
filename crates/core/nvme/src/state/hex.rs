//! Identifiers as hexadecimal text, because JSON readers lose digits of large numbers.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// Writes bytes as hexadecimal digits, first byte first.
pub(super) fn serialize<S: Serializer, const N: usize>(
    bytes: &[u8; N],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(bytes))
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).expect("four bits")
}

/// The byte of two digits.
fn byte([high, low]: [u8; 2]) -> Option<u8> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    Some(value(high)? << 4 | value(low)?)
}

/// Reads the format of [`serialize`].
pub(super) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
    deserializer: D,
) -> Result<[u8; N], D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = || {
        let digits = 2 * N;
        let why = format!("invalid {text:?}: expected {digits} lower-case hexadecimal digits");
        D::Error::custom(why)
    };
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return Err(wrong());
    }
    for (place, pair) in bytes.iter_mut().zip(pairs) {
        *place = byte(*pair).ok_or_else(wrong)?;
    }
    Ok(bytes)
}

/// The same format for a vector of bytes.
pub(super) mod bytes {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::text(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        let bytes = pairs.iter().map(|pair| super::byte(*pair)).collect::<Option<_>>();
        let wrong = || D::Error::custom("expected pairs of lower-case hexadecimal digits");
        bytes.filter(|_| rest.is_empty()).ok_or_else(wrong)
    }
}

/// The same format for a number, most significant digit first.
pub(super) mod number {
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(&number.to_be_bytes(), serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::deserialize(deserializer).map(u64::from_be_bytes)
    }
}
