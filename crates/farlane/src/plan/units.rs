//! Numbers with units: every one is written out, none is guessed.

use sim::ethernet::port::RateStep;
use std::ops::RangeInclusive;
use switch::aggregate::Policy;
use switch::congestion::{Config as Congestion, Rate, SwiftConfig, Target};
use wire::random::Probability;
use wire::units::{exact, scaled};
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

/// A time that has no range of its own.
pub const SHORT: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_ms(1_000);
/// The same, of something that cannot happen all the time.
pub const INTERVAL: RangeInclusive<Duration> = Duration::from_ns(1)..=Duration::from_ms(1_000);
/// How long something may go on, and when it may happen.
pub const LONG: RangeInclusive<Duration> = Duration::ZERO..=LONGEST;
/// The same of what has to go on.
pub const SPAN: RangeInclusive<Duration> = Duration::from_ns(1)..=LONGEST;
/// PCIe's shortest and longest completion timeout.
pub const COMPLETION: RangeInclusive<Duration> = Duration::from_us(50)..=Duration::from_ms(64_000);
/// How long a tunnel says nothing, and hears nothing.
pub const SILENCE: RangeInclusive<Duration> = Duration::from_us(1)..=Duration::from_ms(3_600_000);
const LONGEST: Duration = Duration::from_ms(1_000_000_000);

/// Of a clock's offset, in picoseconds.
const MOST_OFFSET: i64 = 1_000_000_000_000_000;

/// A number with a unit that has a least and a most value.
pub trait Bounded: PartialOrd + Sized {
    /// Reads it.
    fn read(text: &str) -> Parsed<Self>;
    /// As it is read.
    fn words(&self) -> String;
}

impl Bounded for Duration {
    fn read(text: &str) -> Parsed<Self> {
        time(text)
    }

    fn words(&self) -> String {
        if *self == Self::ZERO { "0ns".to_owned() } else { self.exact() }
    }
}

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Bytes(pub u64);

impl Bounded for Bytes {
    fn read(text: &str) -> Parsed<Self> {
        size(text).map(Self)
    }

    fn words(&self) -> String {
        exact(self.0, &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)])
    }
}

/// Bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct ByteRate(pub u64);

impl ByteRate {
    /// More than anything has.
    pub const MOST: Self = Self(1_000_000_000_000);
}

impl Bounded for ByteRate {
    fn read(text: &str) -> Parsed<Self> {
        byte_rate(text).map(Self)
    }

    fn words(&self) -> String {
        let units = [("B/s", 1), ("kB/s", 1_000), ("MB/s", 1_000_000), ("GB/s", 1_000_000_000)];
        exact(self.0, &units)
    }
}

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
    ps.filter(|ps| *ps <= MOST_OFFSET)
        .map(|ps| sign * ps)
        .ok_or("a time of at most 1000s, either way, such as -250ns: ps, ns, us, ms or s")
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

/// The policy of nodes whose frames bridges aggregate.
pub const HOP: &str = "hop";

/// A policy of aggregation.
pub fn policy(text: &str) -> Parsed<Policy> {
    if text == HOP {
        return Ok(Policy::PerTlp);
    }
    text.parse().map_err(|_| "per-tlp, wait=TIME up to 10ms (such as wait=1us), hop or adaptive")
}

/// What a node may send.
pub fn rate_limit(text: &str) -> Parsed<Rate> {
    let digits = text.strip_suffix("b/s").unwrap_or(text);
    let rate = digits.parse().ok().filter(|rate| fits(*rate));
    rate.ok_or("a rate such as 5G or 250M: bits a second, k, M or G, above 0 and up to 1000G")
}

/// No line is as fast as a terabit a second.
fn fits(rate: Rate) -> bool {
    (1..=1_000_000_000_000).contains(&rate.bits_per_second)
}

/// What lets frames of raw Ethernet go.
pub fn congestion(text: &str) -> Parsed<Congestion> {
    let known = text.parse().ok().filter(|known| match known {
        Congestion::Swift(SwiftConfig { target: Target::RoundTrip(time), .. }) => {
            SHORT.contains(time)
        }
        Congestion::Rate(rate) => fits(*rate),
        _ => true,
    });
    known.ok_or(
        "swift, swift=TIME up to 1s (such as swift=50us), rate=RATE above 0 and up to 1000G \
         (such as rate=5G) or none",
    )
}

/// From when on a port sends so much at most: `10ms 2G`.
pub fn rate_step(text: &str) -> Parsed<RateStep> {
    let step = text.trim().split_once(char::is_whitespace).and_then(|(at, rate)| {
        let at = moment(at).ok()?;
        Some(RateStep { at, bits_per_second: rate_limit(rate.trim()).ok()?.bits_per_second })
    });
    step.ok_or("a time up to 1000000s and a rate of 1 b/s to 1000G such as \"10ms 2G\"")
}

fn moment(text: &str) -> Parsed<Instant> {
    let span = time(text.trim())?;
    let fits = LONG.contains(&span).then(|| Instant::from_ps(span.as_ps()));
    fits.ok_or("a time up to 1000000s")
}

/// From when to when: `10ms..12ms`.
pub fn span(text: &str) -> Parsed<(Instant, Instant)> {
    let ends = text.split_once("..").and_then(|(from, to)| {
        Some((moment(from).ok()?, moment(to).ok()?)).filter(|(from, to)| from < to)
    });
    ends.ok_or("a span of time up to 1000000s such as 10ms..12ms")
}

/// The same, or for good: `10ms..`.
pub fn outage(text: &str) -> Parsed<(Instant, Option<Instant>)> {
    let for_good = text.strip_suffix("..").and_then(|from| moment(from).ok());
    match for_good {
        Some(from) => Ok((from, None)),
        None => span(text)
            .map(|(from, until)| (from, Some(until)))
            .map_err(|_| "a span of time up to 1000000s such as 10ms..12ms, or 10ms.. for good"),
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
