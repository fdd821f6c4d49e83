//! Parsers and formats of times and sizes in options and output.

use std::ops::RangeInclusive;
use wire::Duration;
use wire::units::{self, SIZE_FORMS, with_unit};

/// Maximum time of an option.
const LONGEST: Duration = Duration::from_ms(1_000_000_000);

/// Parses a time of up to 1000000 s with its unit, such as `1.5s`, or 0.
///
/// # Errors
/// The accepted forms.
pub fn time(text: &str) -> Result<Duration, String> {
    let known = if text == "0" { Some(Duration::ZERO) } else { text.parse().ok() };
    let known = known.filter(|time| *time <= LONGEST);
    known.ok_or_else(|| {
        format!("invalid time '{text}': expected up to 1000000s, such as 1.5s, 20ms or 300us")
    })
}

/// Parses a time as [`time`]. A number without a unit is in seconds.
///
/// # Errors
/// As [`time`].
pub fn seconds(text: &str) -> Result<Duration, String> {
    time(&with_unit(text, "s"))
}

/// Parses a time as [`time`]. A number without a unit is in microseconds.
///
/// # Errors
/// As [`time`].
pub fn microseconds(text: &str) -> Result<Duration, String> {
    time(&with_unit(text, "us"))
}

/// Parses a size in bytes, at least one: `4096`, `64k`, `64KiB` or `1G`, in powers of 1024.
///
/// # Errors
/// The accepted forms.
pub fn bytes(text: &str) -> Result<u64, String> {
    let known = units::size(text).filter(|size| (1..1 << 62).contains(size));
    known.ok_or_else(|| format!("invalid size '{text}': expected {SIZE_FORMS}"))
}

/// Parses a size in bytes within a range.
///
/// # Errors
/// The accepted forms, or the range.
pub fn bytes_in(text: &str, range: RangeInclusive<u16>) -> Result<u16, String> {
    let known = bytes(text)?.try_into().ok().filter(|size| range.contains(size));
    let (least, most) = (range.start(), range.end());
    known.ok_or_else(|| format!("invalid size '{text}': expected {least} to {most} bytes"))
}

/// Formats nanoseconds as microseconds with three decimals.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Formats bytes in the largest unit in which they are a whole number.
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_may_be_left_out() {
        for (text, time) in [
            ("2", Duration::from_ms(2_000)),
            ("0", Duration::ZERO),
            ("0.25", Duration::from_ms(250)),
            ("2s", Duration::from_ms(2_000)),
            ("1500ms", Duration::from_ms(1_500)),
            ("1000000s", LONGEST),
        ] {
            assert_eq!(seconds(text), Ok(time), "{text}");
        }
        assert_eq!(microseconds("50"), microseconds("50us"));
        assert_eq!(microseconds("1ms"), Ok(Duration::from_us(1_000)));
        assert_eq!(seconds("2m"), Ok(Duration::from_ms(120_000)));
        for bad in ",.,s,-1,-1s,1y,1 000,300h,1000001,99999999999999999999,1e3".split(',') {
            assert!(seconds(bad).unwrap_err().contains("invalid time"), "{bad}");
        }
    }

    #[test]
    fn printed_sizes_can_be_parsed_again() {
        for size_of in [1, 512, 4096, 3 << 19, 64 << 20, 10 << 30] {
            assert_eq!(bytes(&size(size_of)), Ok(size_of));
        }
        for wrong in ["", "K", "0", "-1", "1.3", "99999999T", "12X"] {
            assert!(bytes(wrong).unwrap_err().contains(&format!("'{wrong}'")), "{wrong}");
        }
        assert_eq!(bytes_in("1k", 64..=1500), Ok(1024));
        assert_eq!(
            bytes_in("2k", 64..=1500).unwrap_err(),
            "invalid size '2k': expected 64 to 1500 bytes"
        );
    }
}
