//! How a control is written in plans and on command lines.

use super::{Config, Rate, SwiftConfig, Target};
use std::fmt;
use std::str::FromStr;
use wire::Duration;

/// A text that names no control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCongestion(pub String);

impl fmt::Display for UnknownCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no congestion control: {:?}; there are none, swift, swift=50us (the round trip aimed \
             at), rate=5G (bits of wire a second)",
            self.0
        )
    }
}

impl std::error::Error for UnknownCongestion {}

/// `digits`, with one of the units: its factor.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let number = |text: &str| -> Option<u64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    };
    let mut value = number(whole)?.checked_mul(factor)?;
    if !part.is_empty() {
        let unit = 10u64.checked_pow(part.len().try_into().ok()?)?;
        value = value.checked_add(number(part)?.checked_mul(factor)? / unit)?;
    } else if digits.contains('.') {
        return None;
    }
    (value > 0).then_some(value)
}

/// Longest first: "us" ends in "s".
const TIMES: &[(&str, u64)] =
    &[("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];

const RATES: &[(&str, u64)] = &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("", 1)];

impl FromStr for Config {
    type Err = UnknownCongestion;
    fn from_str(text: &str) -> Result<Self, UnknownCongestion> {
        let known = match text.split_once('=') {
            None if text == "none" => Some(Self::None),
            None if text == "swift" => Some(Self::Swift(SwiftConfig::default())),
            Some(("swift", time)) => scaled(time, TIMES).map(|ps| {
                let target = Target::RoundTrip(Duration::from_ps(ps));
                Self::Swift(SwiftConfig { target, ..SwiftConfig::default() })
            }),
            Some(("rate", rate)) => scaled(rate, RATES)
                .map(|bits_per_second| Self::Rate(Rate { bits_per_second, burst: 1 })),
            _ => None,
        };
        known.ok_or_else(|| UnknownCongestion(text.to_owned()))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Rate(rate) => f.pad(&format!("rate={}", written(rate.bits_per_second, RATES))),
            Self::Swift(SwiftConfig { target: Target::RoundTrip(time), .. }) => {
                f.pad(&format!("swift={}", written(time.as_ps(), TIMES)))
            }
            Self::Swift(_) => f.pad("swift"),
        }
    }
}

/// With the largest unit that leaves a whole number; picoseconds with decimals
/// of nanoseconds.
fn written(value: u64, units: &[(&str, u64)]) -> String {
    let best = units.iter().filter(|(_, factor)| value.is_multiple_of(*factor));
    match best.max_by_key(|(_, factor)| *factor) {
        Some((unit, factor)) => format!("{}{unit}", value / factor),
        None => format!("{}.{:03}ns", value / 1_000, value % 1_000),
    }
}
