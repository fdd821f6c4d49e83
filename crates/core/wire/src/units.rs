//! Exact text form of numbers with units: the grammar of `docs/command-line.md`, which is fio's
//! (fio 3, HOWTO, "Parameter types").

use crate::Duration;
use std::str::FromStr;
use thiserror::Error;

/// Picoseconds per second.
const SECOND: u64 = 1_000_000_000_000;

/// Units of time, in picoseconds: the five units of [`Duration::exact`], and further units of fio.
const TIMES: [(&str, u64); 12] = [
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", SECOND),
    ("nsec", 1_000),
    ("usec", 1_000_000),
    ("msec", 1_000_000_000),
    ("sec", SECOND),
    ("m", 60 * SECOND),
    ("h", 3_600 * SECOND),
    ("d", 86_400 * SECOND),
];

/// Units of sizes in small letters, in bytes. As in fio with `kb_base=1024`, except for `KiB`: 1024
/// bytes here as in IEC 80000-13, but 1000 bytes in fio.
const SIZES: [(&str, u64); 18] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("ki", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("mi", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("gi", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tb", 1 << 40),
    ("ti", 1 << 40),
    ("tib", 1 << 40),
];

/// Units of rates before `/s`, as fio prints them: decimal units of ISO/IEC 80000, in bytes.
const BYTE_RATES: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Units of rates in bits before `/s`.
const BIT_RATES: [(&str, u64); 3] = [("kb", 1_000), ("Mb", 1_000_000), ("Gb", 1_000_000_000)];

/// Units of line rates, in bits per second.
const LINE_RATES: [(&str, u64); 4] =
    [("", 1), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// The accepted forms of [`size`], for messages.
pub const SIZE_FORMS: &str = "a size such as 4096, 64k, 64KiB or 1G";

/// Bytes: `4096`, `4k`, `4KiB`, `4 kB`. Units are powers of 1024, in large or small letters. `None`
/// for other texts.
pub fn size(text: &str) -> Option<u64> {
    scaled(&text.to_ascii_lowercase(), &SIZES)
}

/// Bytes per second: `800MB/s`, `100MiB/s`, `6.4Gb/s`. `None` for other texts.
pub fn byte_rate(text: &str) -> Option<u64> {
    let number = text.strip_suffix("/s")?;
    // Eight bits are a byte.
    scaled(number, &BYTE_RATES).or_else(|| scaled(number, &BIT_RATES).map(|bits| bits / 8))
}

/// Bits per second of a line: `5G`, `250M`, `10 Gb/s`. `None` for other texts.
pub fn line_rate(text: &str) -> Option<u64> {
    scaled(text.strip_suffix("b/s").unwrap_or(text), &LINE_RATES)
}

/// Bits per second in the largest unit that gives a whole number, in the form of [`line_rate`].
pub fn exact_line_rate(bits: u64) -> String {
    exact(bits, &LINE_RATES)
}

/// The text, followed by `unit` if it is only a number.
pub fn with_unit(text: &str, unit: &str) -> String {
    let is_number = !text.contains(is_unit);
    if is_number { format!("{text}{unit}") } else { text.to_owned() }
}

/// Parses a number with a unit; returns the number times the weight of its unit. `12.5us` is 12500 with
/// `[("ns", 1), ("us", 1000)]`. `None` if the unit is not in `units`, or if the product is not
/// whole.
pub fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(is_unit).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, weight) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.len() > 12 {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scale = 10u128.pow(fraction.len() as u32);
    let product = whole.checked_mul(scale)?.checked_add(part)?.checked_mul((*weight).into())?;
    (product % scale == 0).then(|| u64::try_from(product / scale).ok())?
}

/// Whether a character cannot be part of a number.
fn is_unit(c: char) -> bool {
    !c.is_ascii_digit() && c != '.' && c != '_'
}

/// `number` in the largest of `units` (ascending) that gives a whole number, in the form of
/// [`scaled`].
pub fn exact(number: u64, units: &[(&str, u64)]) -> String {
    let whole = |(_, weight): &&(&str, u64)| number.is_multiple_of(*weight) && number >= *weight;
    match units.iter().rev().find(whole).or(units.first()) {
        Some((name, weight)) => format!("{}{name}", number / weight),
        None => number.to_string(),
    }
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid time '{0}': expected a number with ps, ns, us, ms, s, m, h or d, such as 250ns")]
pub struct InvalidDuration(String);

impl FromStr for Duration {
    type Err = InvalidDuration;
    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let ps = scaled(&text.to_ascii_lowercase(), &TIMES);
        ps.map(Self::from_ps).ok_or_else(|| InvalidDuration(text.to_owned()))
    }
}

impl Duration {
    /// The duration in the largest unit that gives a whole number: `1us`, `1500ns`. Parsing the
    /// text returns the same duration.
    pub fn exact(self) -> String {
        exact(self.as_ps(), &TIMES[..5])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_both_ways() {
        for (text, ps, back) in [
            ("250ns", 250_000, "250ns"),
            ("1.5us", 1_500_000, "1500ns"),
            ("1000us", 1_000_000_000, "1ms"),
            ("0.001 ns", 1, "1ps"),
            ("0s", 0, "0ps"),
            ("2MSEC", 2_000_000_000, "2ms"),
            ("1.5 m", 90 * SECOND, "90s"),
            ("1H", 3_600 * SECOND, "3600s"),
            ("2d", 172_800 * SECOND, "172800s"),
        ] {
            let time: Duration = text.parse().unwrap();
            assert_eq!((time.as_ps(), time.exact().as_str()), (ps, back), "{text}");
        }
        for bad in ["", "5", "ns", "1.5", "0.0001ps", "1 y", "-1ns", "99999999999999s", "1e3ns"] {
            assert!(bad.parse::<Duration>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_fios_and_those_of_iec() {
        for text in
            ["4096", "4k", "4K", "4kB", "4KB", "4kb", "4ki", "4KiB", "4 KiB", "4_096", "4096B"]
        {
            assert_eq!(size(text), Some(4096), "{text}");
        }
        for (text, bytes) in [("1.5M", 3 << 19), ("64MiB", 64 << 20), ("2g", 2 << 30)] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        assert_eq!((size("1TiB"), size("0")), (Some(1 << 40), Some(0)));
        for bad in ["", "k", "-1", "0.3B", "12X", "99999999T", "1e3", "4k/s", "0x10"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }

    #[test]
    fn rates_with_a_second_are_those_of_iso() {
        for (text, bytes) in [
            ("800MB/s", 800_000_000),
            ("100MiB/s", 100 << 20),
            ("6.4Gb/s", 800_000_000),
            ("8kb/s", 1_000),
            ("1B/s", 1),
        ] {
            assert_eq!(byte_rate(text), Some(bytes), "{text}");
        }
        for bad in ["", "100m", "5G", "100m/s", "1", "MB/s"] {
            assert_eq!(byte_rate(bad), None, "{bad}");
        }
    }
}
