//! Parsers of values with units. Sizes, times and rates have the grammar of [`wire::units`].

use wire::Duration;
use wire::units::{self, SIZE_FORMS};

/// A parsed value, or the expected form.
pub type Parsed<T> = Result<T, &'static str>;

/// Minimum and maximum of a time.
pub type Span = (Duration, Duration);

/// Range of times that have no other range: 0 to 1 s.
pub const SHORT: Span = (Duration::ZERO, Duration::from_ms(1_000));
/// Range of intervals: 1 ns to 1 s.
pub const INTERVAL: Span = (Duration::from_ns(1), Duration::from_ms(1_000));
/// Range of durations and of points in time: 0 to 10^6 s.
pub const LONG: Span = (Duration::ZERO, LONGEST);
/// Range of durations that must not be 0: 1 ns to 10^6 s.
pub const SPAN: Span = (Duration::from_ns(1), LONGEST);
const LONGEST: Duration = Duration::from_ms(1_000_000_000);

/// Maximum rate in bytes per second.
pub const MOST_RATE: u64 = 1_000_000_000_000;
/// Maximum size of a drive in bytes: 64 TiB.
pub const MOST_BYTES: u64 = 1 << 46;

/// The type of a key's value.
pub trait KeyValue: Sized {
    /// Parses a text.
    ///
    /// # Errors
    /// The expected form.
    fn parse(text: &str) -> Parsed<Self>;

    /// Converts a number without a unit.
    fn plain(number: i64) -> Option<Self> {
        Self::parse(&number.to_string()).ok()
    }

    /// Checks whether a text can be parsed.
    ///
    /// # Errors
    /// The expected form.
    fn check(text: &str) -> Parsed<()> {
        Self::parse(text).map(drop)
    }
}

/// Implements [`KeyValue`] for integers: numbers, bytes, and bytes per second.
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

/// Parses a size in bytes.
///
/// # Errors
/// The expected form.
pub fn size(text: &str) -> Parsed<u64> {
    units::size(text).ok_or(SIZE_FORMS)
}

/// Parses a rate in bytes per second.
///
/// # Errors
/// The expected form.
pub fn byte_rate(text: &str) -> Parsed<u64> {
    units::byte_rate(text).ok_or("a rate such as 800MB/s or 6.4Gb/s")
}

/// Parses a rate in bytes per second. As in fio, a size without `/s` is accepted.
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
