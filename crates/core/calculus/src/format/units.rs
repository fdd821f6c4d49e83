//! Numbers with units: `10kbps`, `50B`, `1us`.

use super::FormatError;
use super::json::Node;
use crate::curve::Rational;
use num_traits::{One, Signed, pow};
use serde_json::Value;

/// Digits of a number, and the largest power of ten.
const DIGITS: usize = 60;

/// Multipliers of units, as powers of ten.
const MULTIPLIERS: [(char, i32); 12] = [
    ('a', -18),
    ('f', -15),
    ('p', -12),
    ('n', -9),
    ('u', -6),
    ('m', -3),
    ('k', 3),
    ('M', 6),
    ('G', 9),
    ('T', 12),
    ('P', 15),
    ('E', 18),
];

/// A unit with its size in seconds, bits or bits per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// As the file names it.
    pub name: String,
    /// Seconds, bits or bits per second.
    pub size: Rational,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Time,
    Data,
    Rate,
}

impl Quantity {
    /// Name of the quantity, and an example.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Time => ("time", "10us"),
            Self::Data => ("size", "50B"),
            Self::Rate => ("rate", "10Mbps"),
        }
    }

    /// The size of a unit.
    fn size(self, unit: &str) -> Option<Rational> {
        let time = |unit: &str| match unit {
            "s" => Some(Rational::one()),
            "m" => Some(whole(60)),
            "h" => Some(whole(3600)),
            _ => None,
        };
        let data = |unit: &str| match unit {
            "b" => Some(Rational::one()),
            "B" => Some(whole(8)),
            _ => None,
        };
        let plain = |unit: &str| match self {
            Self::Time => time(unit),
            Self::Data => data(unit),
            Self::Rate => {
                unit.split_once('p').and_then(|(bits, per)| Some(data(bits)? / time(per)?))
            }
        };
        let scaled = || {
            let first = unit.chars().next()?;
            let (_, power) = MULTIPLIERS.iter().find(|(letter, _)| *letter == first)?;
            Some(plain(&unit[1..])? * power_of_ten(*power))
        };
        plain(unit).or_else(scaled)
    }
}

/// The units of numbers without a unit.
pub(super) struct Units {
    pub(super) time: Unit,
    pub(super) data: Unit,
    pub(super) rate: Unit,
}

impl Default for Units {
    /// Seconds, bits, bits per second.
    fn default() -> Self {
        let unit = |name: &str| Unit { name: name.to_owned(), size: Rational::one() };
        Self { time: unit("s"), data: unit("b"), rate: unit("bps") }
    }
}

impl Units {
    /// The units of `node`, and those of `self` that it does not set.
    pub(super) fn of(&self, node: &Node<'_>) -> Result<Self, FormatError> {
        let unit = |key: &str, quantity: Quantity, default: &Unit| {
            let Some(node) = node.find(key) else { return Ok(default.clone()) };
            let name = node.text()?;
            let (word, example) = quantity.words();
            let example = example.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let invalid = || {
                node.error(format_args!(
                    "invalid unit of {word}s '{name}': expected such as {example}"
                ))
            };
            let size = quantity.size(name).ok_or_else(invalid)?;
            Ok(Unit { name: name.to_owned(), size })
        };
        Ok(Self {
            time: unit("time_unit", Quantity::Time, &self.time)?,
            data: unit("data_unit", Quantity::Data, &self.data)?,
            rate: unit("rate_unit", Quantity::Rate, &self.rate)?,
        })
    }

    /// A number, or a text of a number and a unit. Not negative.
    pub(super) fn value(
        &self,
        node: &Node<'_>,
        quantity: Quantity,
    ) -> Result<Rational, FormatError> {
        let text = match node.value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        let (word, example) = quantity.words();
        let invalid = || {
            node.error(format_args!(
                "invalid {word} '{text}': expected a number such as 10 or {example}"
            ))
        };
        let (number, unit) = number(&text).ok_or_else(invalid)?;
        let default = match quantity {
            Quantity::Time => &self.time,
            Quantity::Data => &self.data,
            Quantity::Rate => &self.rate,
        };
        let size = match unit.trim_start() {
            "" => default.size.clone(),
            unit => quantity.size(unit).ok_or_else(invalid)?,
        };
        if number.is_negative() {
            return Err(node.error(format_args!("'{text}' is negative")));
        }
        Ok(number * size)
    }
}

fn whole(number: i64) -> Rational {
    Rational::from_integer(number.into())
}

fn power_of_ten(power: i32) -> Rational {
    let size = pow(whole(10), power.unsigned_abs() as usize);
    if power < 0 { size.recip() } else { size }
}

/// A decimal number at the start of a text, exactly, and what follows it.
fn number(text: &str) -> Option<(Rational, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = usize::from(text.starts_with(['-', '+']));
    let whole_end = sign + digits(&text[sign..]);
    let mut end = whole_end;
    let mut fraction = "";
    if let Some(rest) = text[end..].strip_prefix('.') {
        fraction = &rest[..digits(rest)];
        end += 1 + fraction.len();
    }
    let mantissa = format!("{}{fraction}", &text[sign..whole_end]);
    if mantissa.is_empty() || mantissa.len() > DIGITS {
        return None;
    }
    let mut power = -i32::try_from(fraction.len()).ok()?;
    // E without digits is the multiplier exa.
    if let Some(rest) = text[end..].strip_prefix(['e', 'E']) {
        let sign = usize::from(rest.starts_with(['-', '+']));
        let count = digits(&rest[sign..]);
        if count > 0 {
            power = power.checked_add(rest[..sign + count].parse().ok()?)?;
            end += 1 + sign + count;
        }
    }
    if power.unsigned_abs() as usize > DIGITS {
        return None;
    }
    let value: Rational = mantissa.parse().ok()?;
    let value = value * power_of_ten(power);
    Some((if text.starts_with('-') { -value } else { value }, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(text: &str) -> Rational {
        text.parse().expect("a fraction")
    }

    #[test]
    fn numbers_are_exact_and_keep_their_units() {
        assert_eq!(number("0.1us"), Some((exact("1/10"), "us")));
        assert_eq!(number("-2.50e-2"), Some((exact("-1/40"), "")));
        assert_eq!(number("5EB"), Some((exact("5"), "EB")), "exa, no exponent");
        assert_eq!(number("1e30"), Some((exact("1000000000000000000000000000000"), "")));
        for text in ["", "us", "-", "1e999", ".", "e5"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn units_have_multipliers_and_rates_any_time() {
        let size = |quantity: Quantity, unit| quantity.size(unit);
        assert_eq!(size(Quantity::Time, "ms"), Some(exact("1/1000")));
        assert_eq!(size(Quantity::Time, "m"), Some(exact("60")), "minutes");
        assert_eq!(size(Quantity::Data, "kB"), Some(exact("8000")));
        assert_eq!(size(Quantity::Rate, "MBps"), Some(exact("8000000")));
        assert_eq!(size(Quantity::Rate, "bpm"), Some(exact("1/60")));
        for (quantity, unit) in
            [(Quantity::Time, "B"), (Quantity::Rate, "Mbit/s"), (Quantity::Data, "µb")]
        {
            assert_eq!(size(quantity, unit), None, "{unit}");
        }
    }
}
