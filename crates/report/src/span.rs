//! Times as options take them; times and sizes as they are printed.

use wire::Duration;

/// No option takes a longer time.
const LONGEST: Duration = Duration::from_ms(1_000_000_000);

/// A time of up to 1000000 s with its unit, such as `1.5s`, or 0.
///
/// # Errors
/// The forms that are understood.
pub fn time(text: &str) -> Result<Duration, String> {
    let known = if text == "0" { Some(Duration::ZERO) } else { text.parse().ok() };
    let known = known.filter(|time| *time <= LONGEST);
    known.ok_or_else(|| format!("'{text}' is no time up to 1000000s such as 1.5s, 20ms or 300us"))
}

/// The same; a number without a unit is seconds.
///
/// # Errors
/// As [`time`].
pub fn seconds(text: &str) -> Result<Duration, String> {
    time(&with_unit(text, "s"))
}

/// The same; a number without a unit is microseconds.
///
/// # Errors
/// As [`time`].
pub fn microseconds(text: &str) -> Result<Duration, String> {
    time(&with_unit(text, "us"))
}

/// Nanoseconds as microseconds with three decimals.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Bytes in the largest unit in which they are a whole number.
pub fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// The text, with `unit` behind it if it is a number alone.
fn with_unit(text: &str, unit: &str) -> String {
    let number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if number { format!("{text}{unit}") } else { text.to_owned() }
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
        for bad in ",.,s,-1,-1s,1h,1 000,1m,1000001,99999999999999999999,1e3".split(',') {
            assert!(seconds(bad).unwrap_err().contains("is no time"), "{bad}");
        }
    }
}
