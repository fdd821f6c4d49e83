//! Parsers of values with units. The grammar of sizes, times and rates is that of
//! [`wire::units`].

use wire::Duration;
use wire::units::{self, SIZE_FORMS};

/// A parsed value, or the expected form.
pub type Parsed<T> = Result<T, &'static str>;

/// The least and the most that a time may be.
pub type Span = (Duration, Duration);

/// A time that has no range of its own.
pub const SHORT: Span = (Duration::ZERO, Duration::from_ms(1_000));
/// The same, of something that cannot happen all the time.
pub const INTERVAL: Span = (Duration::from_ns(1), Duration::from_ms(1_000));
/// How long something may go on, and when it may happen.
pub const LONG: Span = (Duration::ZERO, LONGEST);
/// The same of what has to go on.
pub const SPAN: Span = (Duration::from_ns(1), LONGEST);
const LONGEST: Duration = Duration::from_ms(1_000_000_000);

/// Bytes a second at most.
pub const MOST_RATE: u64 = 1_000_000_000_000;
/// Bytes of a drive at most: 64 TiB.
pub const MOST_BYTES: u64 = 1 << 46;

/// The type of a key's value.
pub trait KeyValue: Sized {
    /// Reads a text.
    ///
    /// # Errors
    /// The expected form.
    fn parse(text: &str) -> Parsed<Self>;

    /// Reads a number that stands without a unit.
    fn plain(number: i64) -> Option<Self> {
        Self::parse(&number.to_string()).ok()
    }

    /// Whether a text can be read.
    ///
    /// # Errors
    /// The expected form.
    fn check(text: &str) -> Parsed<()> {
        Self::parse(text).map(drop)
    }
}

/// Numbers as they stand; bytes, and bytes a second.
macro_rules! number {
    ($($kind:ty)*) => {$(
        impl KeyValue for $kind {
            fn parse(text: &str) -> Parsed<Self> {
                fio_rate(text)?.try_into().map_err(|_| "a smaller number")
            }

            fn plain(number: i64) -> Option<Self> {
                number.try_into().ok()
            }
        }
    )*};
}
number!(u8 u16 u32 u64 usize);

impl KeyValue for String {
    fn parse(text: &str) -> Parsed<Self> {
        Ok(text.to_owned())
    }
}

impl KeyValue for Duration {
    fn parse(text: &str) -> Parsed<Self> {
        text.parse().map_err(|_| "a time such as 250ns: ps, ns, us, ms, s, m, h or d")
    }
}

/// Bytes.
///
/// # Errors
/// The expected form.
pub fn size(text: &str) -> Parsed<u64> {
    units::size(text).ok_or(SIZE_FORMS)
}

/// Bytes a second.
///
/// # Errors
/// The expected form.
pub fn byte_rate(text: &str) -> Parsed<u64> {
    units::byte_rate(text).ok_or("a rate such as 800MB/s or 6.4Gb/s")
}

/// The same; a size alone is bytes a second, as in fio.
///
/// # Errors
/// The expected form.
pub fn fio_rate(text: &str) -> Parsed<u64> {
    let rate = units::byte_rate(text).or_else(|| units::size(text));
    rate.ok_or("a rate such as 100m (bytes a second), 800MB/s or 6.4Gb/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_exact() {
        assert_eq!(Duration::parse("1.5us"), Ok(Duration::from_ns(1_500)));
        assert_eq!((size("64M"), size("4k")), (Ok(64 << 20), Ok(4096)));
        assert_eq!((fio_rate("100m"), fio_rate("8Mb/s")), (Ok(100 << 20), Ok(1_000_000)));
        assert!(byte_rate("100m").is_err(), "bytes, or bits?");
        assert!(Duration::parse("5").is_err() && u8::parse("256B").is_err());
        assert!(size("0.3B").is_err());
    }
}
