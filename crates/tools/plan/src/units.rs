//! Parsers of values that only plans have. Sizes, times and rates have the grammar of
//! [`wire::units`].

use super::filters::Policing;
use super::paths::PathNames;
use super::shapers::ClassShaper;
use super::traffic::ListenerDeadline;
use super::variants::Setting;
use keys::KeyValue;
use keys::units::{LONG, Parsed, SHORT, SPAN, Span, size};
use node::push::Mode as Push;
use sim::ethernet::Mac;
use sim::ethernet::port::RateStep;
use stats::random::Probability;
use switch::aggregate::Policy;
use switch::congestion::{Config as Congestion, Rate, SwiftConfig, Target};
use tsn::Entry;
use tsn::psfp::{GateEntry, MAX_INTERVAL};
use wire::units::scaled;
use wire::{Duration, Instant};

/// A MAC address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacText(pub Mac);

/// Range of PCIe's completion timeout: 50 us to 64 s.
pub const COMPLETION: Span = (Duration::from_us(50), Duration::from_ms(64_000));
/// Range of the time for which a port waits for an answer to a verify packet: 1 to 128 ms.
pub const VERIFY: Span = (Duration::from_ms(1), Duration::from_ms(128));
/// Range of the time between two tests for latent errors, from 1 ms: whole milliseconds in IEEE
/// 802.1CB-2017, 10.4.1.12.
pub const TESTS: Span = (Duration::from_ms(1), LONG.1);
/// Range of the cycle of gates.
pub const CYCLE: Span = (Duration::from_ns(1), tsn::GateControlList::MAX_CYCLE);
/// Range of the idle and loss intervals of a tunnel: 1 us to 1 hour.
pub const SILENCE: Span = (Duration::from_us(1), Duration::from_ms(3_600_000));
/// How long a link waits for a connection.
pub const SURVIVAL: Span = (Duration::ZERO, SILENCE.1);

/// Maximum offset of a clock in picoseconds.
const MOST_OFFSET: u64 = 1_000_000_000_000_000;

/// A parser for values of types that other crates define.
pub trait Form: Sized {
    fn parse(text: &str) -> Parsed<Self>;

    fn check(text: &str) -> Parsed<()> {
        Self::parse(text).map(drop)
    }
}

/// Offset of a clock from true time in picoseconds.
pub struct Offset(pub i64);

impl KeyValue for Offset {
    fn parse(text: &str) -> Parsed<Self> {
        let (sign, rest) = signed(text);
        let time = rest.parse::<Duration>().ok().filter(|time| time.as_ps() <= MOST_OFFSET);
        time.map(|time| Self(sign * time.as_ps() as i64))
            .ok_or("a time of at most 1000s, either way, such as -250ns: ps, ns, us, ms or s")
    }
}

/// Frequency error of a clock in parts per billion.
pub struct Drift(pub i32);

impl KeyValue for Drift {
    fn parse(text: &str) -> Parsed<Self> {
        let (sign, rest) = signed(text);
        let ppb = scaled(rest, &[("ppb", 1), ("ppm", 1_000)]).and_then(|p| i32::try_from(p).ok());
        ppb.filter(|ppb| *ppb <= tsn::Clock::MAX_DRIFT_PPB)
            .map(|ppb| Self(ppb * sign as i32))
            .ok_or("a drift of at most 1000ppm such as 10ppm or -250ppb")
    }
}

/// A frequency error, or a change of it, in parts per 10^12.
pub struct Frequency(pub i64);

impl KeyValue for Frequency {
    fn parse(text: &str) -> Parsed<Self> {
        let ppt = scaled(text, &[("ppb", 1_000), ("ppm", 1_000_000)]);
        let ppt = ppt.and_then(|ppt| i64::try_from(ppt).ok());
        ppt.filter(|ppt| *ppt <= tsn::Clock::MAX_RATE_PPT)
            .map(Self)
            .ok_or("a frequency of at most 100000ppm such as 0.1ppm or 50ppb")
    }
}

/// An interval between messages of 802.1AS: log2 of seconds.
pub struct LogInterval(pub i8);

impl KeyValue for LogInterval {
    fn parse(text: &str) -> Parsed<Self> {
        let time: Option<Duration> = text.parse().ok();
        (-7..=7)
            .find(|log| time == Some(tsn::gptp::domain::interval(*log)))
            .map(Self)
            .ok_or("a power of two of seconds such as 125ms or 2s, 7.8125ms to 128s")
    }
}

/// A step of a clock, such as `2s -5ms`.
pub struct ClockStep {
    /// Time of the step.
    pub at: Instant,
    /// Size of the step in picoseconds.
    pub ps: i64,
}

impl KeyValue for ClockStep {
    fn parse(text: &str) -> Parsed<Self> {
        let step = text.trim().split_once(char::is_whitespace).and_then(|(at, by)| {
            let Offset(ps) = Offset::parse(by.trim()).ok()?;
            Some(Self { at: moment(at)?, ps })
        });
        step.ok_or("a time up to 1000000s and a step of at most 1000s such as \"2s -5ms\"")
    }
}

fn signed(text: &str) -> (i64, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

impl Form for Probability {
    fn parse(text: &str) -> Parsed<Self> {
        let parts = scaled(text, &[("%", 10_000_000_000), ("ppm", 1_000_000), ("ppb", 1_000)]);
        parts
            .and_then(Self::from_parts_per_trillion)
            .ok_or("a share of at most 100% such as 0.1%, 20ppm or 3ppb")
    }
}

/// The policy of nodes whose frames bridges aggregate.
pub const HOP: &str = "hop";

impl Form for Policy {
    fn parse(text: &str) -> Parsed<Self> {
        if text == HOP {
            return Ok(Self::PerTlp);
        }
        let expected = "per-tlp, wait=TIME up to 10ms (such as wait=1us), hop or adaptive";
        text.parse().map_err(|_| expected)
    }
}

/// The data that a host pushes.
impl Form for Push {
    fn parse(text: &str) -> Parsed<Self> {
        text.parse().map_err(|_| "one of off, entries, all")
    }
}

/// The rate of a line.
impl Form for sim::ethernet::Rate {
    fn parse(text: &str) -> Parsed<Self> {
        let expected = "one of 10M, 100M, 1G, 2.5G, 5G, 10G, 25G, 40G, 50G, 100G, 200G, 400G";
        text.parse().map_err(|_| expected)
    }
}

/// The rate limit of a node.
impl Form for Rate {
    fn parse(text: &str) -> Parsed<Self> {
        let rate = text.parse().ok().filter(|rate| fits(*rate));
        rate.ok_or("a rate such as 5G or 250M: bits a second, k, M or G, above 0 and up to 1000G")
    }
}

/// Returns whether a rate is in the range of lines: 1 bit/s to 1 Tb/s.
fn fits(rate: Rate) -> bool {
    (1..=1_000_000_000_000).contains(&rate.bits_per_second)
}

/// The congestion control of raw Ethernet.
impl Form for Congestion {
    fn parse(text: &str) -> Parsed<Self> {
        let known = text.parse().ok().filter(|known| match known {
            Self::Swift(SwiftConfig { target: Target::RoundTrip(time), .. }) => *time <= SHORT.1,
            Self::Rate(rate) => fits(*rate),
            _ => true,
        });
        known.ok_or(
            "swift, swift=TIME up to 1s (such as swift=50us), rate=RATE above 0 and up to 1000G \
             (such as rate=5G) or none",
        )
    }
}

/// A rate limit from a time on: `10ms 2G`.
impl Form for RateStep {
    fn parse(text: &str) -> Parsed<Self> {
        let step = text.trim().split_once(char::is_whitespace).and_then(|(at, rate)| {
            let bits_per_second = Rate::parse(rate.trim()).ok()?.bits_per_second;
            Some(Self { at: moment(at)?, bits_per_second })
        });
        step.ok_or("a time up to 1000000s and a rate of 1 b/s to 1000G such as \"10ms 2G\"")
    }
}

fn moment(text: &str) -> Option<Instant> {
    let span = Duration::parse(text.trim()).ok().filter(|span| *span <= LONG.1)?;
    Some(Instant::ZERO + span)
}

/// Start and end of an interval; without an end it is permanent.
pub type OpenSpan = (Instant, Option<Instant>);

/// A time since the start: `10ms`.
impl Form for Instant {
    fn parse(text: &str) -> Parsed<Self> {
        moment(text).ok_or("a time up to 1000000s such as 10ms")
    }
}

/// An interval: `10ms..12ms`.
impl Form for (Instant, Instant) {
    fn parse(text: &str) -> Parsed<Self> {
        let ends = text.split_once("..").and_then(|(from, to)| Some((moment(from)?, moment(to)?)));
        let expected = "a span of time up to 1000000s such as 10ms..12ms";
        ends.filter(|(from, to)| from < to).ok_or(expected)
    }
}

/// An interval that may be permanent: `10ms..`.
impl Form for OpenSpan {
    fn parse(text: &str) -> Parsed<Self> {
        let for_good = text.strip_suffix("..").and_then(moment).map(|from| (from, None));
        let span = || <(Instant, Instant)>::parse(text).map(|(from, until)| (from, Some(until)));
        let expected = "a span of time up to 1000000s such as 10ms..12ms, or 10ms.. for good";
        for_good.or_else(|| span().ok()).ok_or(expected)
    }
}

/// `5 video`: a class and its shaper.
impl KeyValue for Setting {
    fn parse(text: &str) -> Parsed<Self> {
        let parts =
            text.split_once('=').filter(|(path, value)| !path.is_empty() && !value.is_empty());
        let (path, value) = parts.ok_or("KEY=VALUE, as of --set")?;
        Ok(Self { path: path.trim().to_owned(), value: value.trim().to_owned() })
    }
}

impl KeyValue for ClassShaper {
    fn parse(text: &str) -> Parsed<Self> {
        let parts = text.trim().split_once(char::is_whitespace);
        let read = parts.and_then(|(class, name)| {
            let class = class.parse().ok().filter(|class| usize::from(*class) < tsn::QUEUES)?;
            Some(Self { class, shaper: name.trim().to_owned() })
        });
        read.ok_or("a class, 0 to 7, and the name of its shaper such as \"5 video\"")
    }
}

/// `S 01 300us`, with or without `sched-entry` before it, as in `tc … taprio`.
impl Form for Entry {
    fn parse(text: &str) -> Parsed<Self> {
        let text = text.trim().strip_prefix("sched-entry").unwrap_or(text);
        let time = |text: &str| {
            let time = Duration::parse(text).ok()?;
            (SPAN.0..=SPAN.1).contains(&time).then_some(time)
        };
        tsn::taprio::entry(&text.split_whitespace().collect::<Vec<_>>(), time).ok_or(
            "an entry such as 'S 01 300us': S, H or R, the open gates in hexadecimal, a time with \
             its unit, 1ns to 1000000s",
        )
    }
}

/// `left camera`: a bridge and its filter.
impl KeyValue for Policing {
    fn parse(text: &str) -> Parsed<Self> {
        let parts = text.trim().split_once(char::is_whitespace);
        let read = parts.map(|(bridge, filter)| {
            let [bridge, filter] = [bridge, filter.trim()].map(str::to_owned);
            Self { bridge, filter }
        });
        read.ok_or("a bridge and the name of its filter such as \"left camera\"")
    }
}

/// `left > upper > right`: bridges and cables in the order in which frames pass them; `shortest`,
/// `disjoint`.
impl KeyValue for PathNames {
    fn parse(text: &str) -> Parsed<Self> {
        match text {
            "shortest" => return Ok(Self::Shortest),
            "disjoint" => return Ok(Self::Disjoint),
            _ => {}
        }
        let names: Vec<String> = text.split('>').map(|name| name.trim().to_owned()).collect();
        let known = names.iter().all(|name| !name.is_empty());
        known.then_some(Self::Given(names)).ok_or(
            "\"shortest\", \"disjoint\" or the bridges of a path such as \"left > upper > right\"",
        )
    }
}

/// `02:00:00:00:00:01`.
impl KeyValue for MacText {
    fn parse(text: &str) -> Parsed<Self> {
        let byte = |part: &str| match part.len() {
            2 if !part.starts_with('+') => u8::from_str_radix(part, 16).ok(),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        let read = bytes.and_then(|bytes| bytes.try_into().ok());
        read.map(|bytes| Self(Mac(bytes))).ok_or("a MAC address such as \"02:00:00:00:00:01\"")
    }
}

/// `display 2ms`.
impl KeyValue for ListenerDeadline {
    fn parse(text: &str) -> Parsed<Self> {
        let read = || {
            let (name, deadline) = text.trim().rsplit_once(' ')?;
            let deadline = Duration::parse(deadline).ok()?;
            let within = (SPAN.0..=SPAN.1).contains(&deadline);
            within.then(|| Self { listener: name.trim().to_owned(), deadline })
        };
        read().ok_or("a listener and its deadline, such as \"display 2ms\"")
    }
}

/// `open 200us ipv=5 octets=1500B`, `closed 800us`.
impl Form for GateEntry {
    fn parse(text: &str) -> Parsed<Self> {
        let read = || {
            let mut words = text.split_whitespace();
            let open = match words.next()? {
                "open" => true,
                "closed" => false,
                _ => return None,
            };
            let interval = Duration::parse(words.next()?).ok()?;
            let mut entry = Self { open, ipv: None, interval, octets: None };
            for word in words.filter(|_| open) {
                match word.split_once('=')? {
                    ("ipv", value) => {
                        entry.ipv =
                            value.parse().ok().filter(|ipv| usize::from(*ipv) < tsn::QUEUES);
                        entry.ipv?;
                    }
                    ("octets", value) => entry.octets = Some(size(value).ok()?),
                    _ => return None,
                }
            }
            let bare = open || text.split_whitespace().count() == 2;
            (bare && (SPAN.0..=MAX_INTERVAL).contains(&interval)).then_some(entry)
        };
        read().ok_or(
            "an entry such as 'open 200us ipv=5 octets=1500B' or 'closed 800us': 1ns to \
             4294967295ns; an internal priority of 0 to 7 and bytes, if it is open",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_exact() {
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let outage = <(Instant, Option<Instant>)>::parse;
        assert_eq!(outage("10ms..12ms"), Ok((at(10), Some(at(12)))));
        assert_eq!(outage("10 ms.."), Ok((at(10), None)));
        assert!(outage("12ms..10ms").is_err() && outage("..").is_err());
        assert_eq!(Offset::parse("-250ns").map(|offset| offset.0), Ok(-250_000));
        assert_eq!(Drift::parse("-10ppm").map(|drift| drift.0), Ok(-10_000));
        assert_eq!(Ok(Probability::from_ppm(1000).unwrap()), Probability::parse("0.1%"));
        let span = <(Instant, Instant)>::parse;
        assert_eq!(span("1us..2us"), Ok((Instant::from_ns(1_000), Instant::from_ns(2_000))));
        assert!(span("2us..1us").is_err());
        for (form, text, requested) in [
            (Congestion::check as fn(&str) -> _, "rate=0", "rate=RATE above 0 and up to 1000G"),
            (Congestion::check, "swift=2s", "swift=TIME up to 1s"),
            (Policy::check, "wait=1s", "wait=TIME up to 10ms"),
            (Rate::check, "0G", "above 0 and up to 1000G"),
            (Rate::check, "1001G", "above 0 and up to 1000G"),
            (Probability::check, "101%", "at most 100%"),
            (Offset::check, "-1001s", "at most 1000s"),
            (Drift::check, "2000ppm", "at most 1000ppm"),
            (GateEntry::check, "open 5s", "1ns to 4294967295ns"),
            (GateEntry::check, "closed 5us ipv=1", "if it is open"),
            (GateEntry::check, "open 5us ipv=8", "0 to 7"),
            (PathNames::check, "a > > b", "left > upper > right"),
            (MacText::check, "2:000:00:00:00:01", "a MAC address"),
            (MacText::check, "+2:00:00:00:00:01", "a MAC address"),
            (RateStep::check, "1ms 0G", "1 b/s to 1000G"),
            (Frequency::check, "100001ppm", "at most 100000ppm"),
            (LogInterval::check, "100ms", "7.8125ms to 128s"),
            (ClockStep::check, "1s 1001s", "at most 1000s"),
            (Entry::check, "S ff 0ns", "1ns to 1000000s"),
            (<(Instant, Instant)>::check, "1s..1000001s", "up to 1000000s"),
            (<(Instant, Option<Instant>)>::check, "1000001s..", "up to 1000000s"),
        ] {
            assert!(form(text).unwrap_err().contains(requested), "{text}");
        }
    }
}
