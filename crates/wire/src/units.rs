//! Exact text form of numbers with units.

use crate::Duration;
use std::str::FromStr;
use thiserror::Error;

/// Units of time, in picoseconds.
const TIMES: [(&str, u64); 5] =
    [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];

/// Parses a number with a unit, in units of weight one: `12.5us` is 12500 with `[("ns", 1), ("us",
/// 1000)]`. `None` if it has no such unit, or if the number times its unit's weight is not whole.
pub fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')?;
    let (number, unit) = text.split_at(digits);
    let (_, weight) = units.iter().find(|(name, _)| *name == unit.trim_start())?;
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 12 {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let part: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let scale = 10u128.pow(fraction.len() as u32);
    let product = whole.checked_mul(scale)?.checked_add(part)?.checked_mul((*weight).into())?;
    (product % scale == 0).then(|| u64::try_from(product / scale).ok())?
}

/// `number` in the largest of `units`, given in rising order, in which it is
/// whole: the text that [`scaled`] reads back.
pub fn exact(number: u64, units: &[(&str, u64)]) -> String {
    let whole = |(_, weight): &&(&str, u64)| number.is_multiple_of(*weight) && number >= *weight;
    match units.iter().rev().find(whole).or(units.first()) {
        Some((name, weight)) => format!("{}{name}", number / weight),
        None => number.to_string(),
    }
}

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("'{0}' is no time such as 250ns: ps, ns, us, ms or s")]
pub struct InvalidDuration(String);

impl FromStr for Duration {
    type Err = InvalidDuration;
    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        scaled(text, &TIMES).map(Self::from_ps).ok_or_else(|| InvalidDuration(text.to_owned()))
    }
}

impl Duration {
    /// In the largest unit in which it is whole: `1us`, `1500ns`. The text
    /// that parses back into it.
    pub fn exact(self) -> String {
        exact(self.as_ps(), &TIMES)
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
        ] {
            let time: Duration = text.parse().unwrap();
            assert_eq!((time.as_ps(), time.exact().as_str()), (ps, back), "{text}");
        }
        for bad in ["", "5", "ns", "1.5", "0.0001ps", "1 m", "-1ns", "99999999999999s", "1e3ns"] {
            assert!(bad.parse::<Duration>().is_err(), "{bad}");
        }
    }
}
