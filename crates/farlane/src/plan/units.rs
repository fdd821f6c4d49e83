//! Numbers with units: every one is written out, none is guessed.

use sim::ethernet::port::RateStep;
use sim::ethernet::random::Probability;
use switch::aggregate::Policy;
use switch::congestion::{Config as Congestion, Rate};
use wire::units::scaled;
use wire::{Duration, Instant};

/// What a text may be, and what it is.
type Parsed<T> = Result<T, &'static str>;

const SIZES: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Bits a second count in bits: eight of them are a byte.
const RATES: [(&str, u64); 7] = [
    ("B/s", 8),
    ("kB/s", 8_000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
    ("KiB/s", 8 << 10),
    ("MiB/s", 8 << 20),
    ("GiB/s", 8 << 30),
];

const BIT_RATES: [(&str, u64); 3] = [("kb/s", 1_000), ("Mb/s", 1_000_000), ("Gb/s", 1_000_000_000)];

/// A time.
pub fn time(text: &str) -> Parsed<Duration> {
    text.parse().map_err(|_| "a time such as 250ns: ps, ns, us, ms or s")
}

/// A time with a sign, in picoseconds.
pub fn signed_time(text: &str) -> Parsed<i64> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let ps = rest.parse::<Duration>().ok().and_then(|time| i64::try_from(time.as_ps()).ok());
    ps.map(|ps| sign * ps).ok_or("a time such as -250ns: ps, ns, us, ms or s")
}

/// Bytes.
pub fn size(text: &str) -> Parsed<u64> {
    scaled(text, &SIZES).ok_or("a size such as 4KiB: B, kB, MB, GB, KiB, MiB or GiB")
}

/// Bytes a second.
pub fn byte_rate(text: &str) -> Parsed<u64> {
    let bits = scaled(text, &RATES).or_else(|| scaled(text, &BIT_RATES));
    bits.map(|bits| bits / 8).ok_or("a rate such as 800MB/s or 6.4Gb/s")
}

/// A chance: `0.1%`, `20ppm`, `3ppb`.
pub fn chance(text: &str) -> Parsed<Probability> {
    let units = [("%", 10_000_000_000), ("ppm", 1_000_000), ("ppb", 1_000)];
    let parts = scaled(text, &units);
    parts
        .and_then(Probability::from_parts_per_trillion)
        .ok_or("a share of at most 100% such as 0.1%, 20ppm or 3ppb")
}

/// A drift in parts per billion: `10ppm`, `-250ppb`.
pub fn drift(text: &str) -> Parsed<i32> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let most = tsn::Clock::MAX_DRIFT_PPB;
    let ppb = scaled(rest, &[("ppb", 1), ("ppm", 1_000)]).and_then(|ppb| i32::try_from(ppb).ok());
    ppb.filter(|ppb| *ppb <= most)
        .map(|ppb| sign * ppb)
        .ok_or("a drift of at most 1000ppm such as 10ppm or -250ppb")
}

/// A policy of aggregation.
pub fn policy(text: &str) -> Parsed<Policy> {
    text.parse().map_err(|_| "per-tlp, wait=TIME up to 10ms (such as wait=1us) or adaptive")
}

/// What a node may send.
pub fn rate_limit(text: &str) -> Parsed<Rate> {
    let digits = text.strip_suffix("b/s").unwrap_or(text);
    digits.parse().map_err(|_| "a rate such as 5G or 250M: bits a second, k, M or G")
}

/// What lets frames of raw Ethernet go.
pub fn congestion(text: &str) -> Parsed<Congestion> {
    text.parse()
        .map_err(|_| "swift, swift=TIME (such as swift=50us), rate=RATE (such as rate=5G) or none")
}

/// From when on a port sends so much at most: `10ms 2G`.
pub fn rate_step(text: &str) -> Parsed<RateStep> {
    let step = text.trim().split_once(char::is_whitespace).and_then(|(at, rate)| {
        let at = Instant::from_ps(time(at).ok()?.as_ps());
        Some(RateStep { at, bits_per_second: rate_limit(rate.trim()).ok()?.bits_per_second })
    });
    step.ok_or("a time and a rate such as \"10ms 2G\"")
}

/// From when to when: `10ms..12ms`.
pub fn span(text: &str) -> Parsed<(Instant, Instant)> {
    let ends = text.split_once("..").and_then(|(from, to)| {
        let at = |text: &str| time(text.trim()).ok().map(|span| Instant::from_ps(span.as_ps()));
        Some((at(from)?, at(to)?)).filter(|(from, to)| from < to)
    });
    ends.ok_or("a span of time such as 10ms..12ms")
}

/// The same, or for good: `10ms..`.
pub fn outage(text: &str) -> Parsed<(Instant, Option<Instant>)> {
    let for_good = text.strip_suffix("..").and_then(|from| time(from.trim()).ok());
    match for_good {
        Some(from) => Ok((Instant::from_ps(from.as_ps()), None)),
        None => span(text)
            .map(|(from, until)| (from, Some(until)))
            .map_err(|_| "a span of time such as 10ms..12ms, or 10ms.. for good"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_exact() {
        assert_eq!(time("250ns"), Ok(Duration::from_ns(250)));
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        assert_eq!(outage("10ms..12ms"), Ok((at(10), Some(at(12)))));
        assert_eq!(outage("10 ms.."), Ok((at(10), None)));
        assert!(outage("12ms..10ms").is_err() && outage("..").is_err());
        assert_eq!(time("1.5us"), Ok(Duration::from_ns(1_500)));
        assert_eq!(time("0.001 ns"), Ok(Duration::from_ps(1)));
        assert_eq!(signed_time("-250ns"), Ok(-250_000));
        assert_eq!(size("4KiB"), Ok(4096));
        assert_eq!(byte_rate("6.4Gb/s"), Ok(800_000_000));
        assert_eq!(byte_rate("800MB/s"), Ok(800_000_000));
        assert_eq!(drift("-10ppm"), Ok(-10_000));
        assert_eq!(Ok(Probability::from_ppm(1000).unwrap()), chance("0.1%"));
        assert_eq!(span("1us..2us"), Ok((Instant::from_ns(1_000), Instant::from_ns(2_000))));
        for bad in ["", "5", "ns", "1.5", "0.0001ps", "1 m", "-1ns", "99999999999999s", "1e3ns"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        assert!(size("0.3B").is_err() && chance("101%").is_err() && span("2us..1us").is_err());
        assert!(drift("2000ppm").is_err());
    }
}
