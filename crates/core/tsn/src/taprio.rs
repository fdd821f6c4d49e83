//! Writes a gate control list as a command for Linux, `tc qdisc replace … taprio` (iproute2,
//! tc-taprio(8)), and parses such a command.

use std::fmt::Write;
use thiserror::Error;
use wire::units::with_unit;
use wire::{Duration, Instant};

use crate::{Entry, GateControlList, GateStates, Operation, QUEUES};

/// Options of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// The network interface.
    pub device: &'a str,
    /// Full offload (`flags 0x2`): the network controller runs the list. Otherwise the kernel runs
    /// it with the clock `CLOCK_TAI`.
    pub offload: bool,
    /// The traffic class of each priority from 0 to 7, 0 to 7.
    pub class_of_priority: [u8; QUEUES],
    /// The longest payload of each class in bytes (`max-sdu`); 0: no limit.
    pub max_sdu: [usize; QUEUES],
    /// Bit n: frames of class n are express, all others preemptable (`fp`), which requires offload.
    pub express: Option<u8>,
    /// Bytes that a frame occupies the line in addition to the bytes that the kernel counts, header
    /// to payload (`stab overhead`); 0: the kernel counts its own bytes alone.
    pub overhead: usize,
}

impl<'a> Options<'a> {
    /// Options for an interface on which each priority has its own class, without limits,
    /// preemption and overhead.
    pub const fn new(device: &'a str, offload: bool) -> Self {
        let class_of_priority = [0, 1, 2, 3, 4, 5, 6, 7];
        let max_sdu = [0; QUEUES];
        Self { device, offload, class_of_priority, max_sdu, express: None, overhead: 0 }
    }
}

/// The command, in one line, that sets `list` on an interface with a queue for each class.
///
/// The command has the base time of `list`. Linux counts base times from 1970 (TAI), and advances a
/// past one by whole cycles.
pub fn command(list: &GateControlList, options: &Options<'_>) -> String {
    let &Options { device, offload, class_of_priority, max_sdu, express, overhead } = options;
    let mut line = format!("tc qdisc replace dev {device} parent root handle 100");
    if overhead > 0 {
        write!(line, " stab overhead {overhead}").expect("a String takes all");
    }
    let classes = classes(&class_of_priority);
    write!(line, " taprio {classes} {}", words(list)).expect("a String takes all");
    if max_sdu != [0; QUEUES] {
        let each = max_sdu.map(|bytes| bytes.to_string()).join(" ");
        write!(line, " max-sdu {each}").expect("a String takes all");
    }
    if let Some(express) = express {
        write!(line, " {}", preemption(express, &class_of_priority)).expect("a String takes all");
    }
    line + if offload { " flags 0x2" } else { " flags 0x0 clockid CLOCK_TAI" }
}

/// The words that give each class its own queue, as in tc-mqprio(8) too: `num_tc`, `map` and
/// `queues`. The kernel's priorities 8 to 15 use class 0.
pub fn classes(class_of_priority: &[u8; QUEUES]) -> String {
    let count = count(class_of_priority);
    let map = class_of_priority.iter().map(u8::to_string).collect::<Vec<_>>().join(" ");
    let queues = (0..count).map(|queue| format!("1@{queue}")).collect::<Vec<_>>().join(" ");
    format!("num_tc {count} map {map} 0 0 0 0 0 0 0 0 queues {queues}")
}

/// The words that make classes express or preemptable, as in tc-mqprio(8) too: `fp`. Bit n of
/// `express` is class n.
pub fn preemption(express: u8, class_of_priority: &[u8; QUEUES]) -> String {
    let letter = |class| if express >> class & 1 == 1 { "E" } else { "P" };
    let letters: Vec<_> = (0..count(class_of_priority)).map(letter).collect();
    format!("fp {}", letters.join(" "))
}

/// The number of classes: one more than the highest class of a priority.
fn count(class_of_priority: &[u8; QUEUES]) -> u8 {
    class_of_priority.iter().max().map_or(1, |highest| highest + 1)
}

/// The words of a list in the command, in the format of [`parse`].
pub fn words(list: &GateControlList) -> String {
    let mut words = format!("base-time {}", list.base_time().as_ns());
    for entry in list.entries() {
        let (states, interval) = (entry.states.0, entry.interval.as_ns());
        let letter = entry.operation.letter();
        write!(words, " sched-entry {letter} {states:02x} {interval}").expect("a String takes all");
    }
    write!(words, " cycle-time {}", list.cycle_time().as_ns()).expect("a String takes all");
    words
}

/// Why a text is not a list.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line number, from 1.
    pub line: usize,
    /// The invalid part and the allowed values.
    pub message: String,
}

/// Parses the words of an entry, such as `S 01 300us`: operation, open gates in hexadecimal, and
/// interval. The function `time` parses the interval. `None` if a word is invalid.
pub fn entry(words: &[&str], time: impl FnOnce(&str) -> Option<Duration>) -> Option<Entry> {
    let [operation, states, interval] = words else { return None };
    let operations =
        [Operation::SetGateStates, Operation::SetAndHoldMac, Operation::SetAndReleaseMac];
    let letter = operations.map(|one| one.letter().to_string());
    let operation = operations[letter.iter().position(|letter| letter == operation)?];
    let states = states.strip_prefix("0x").unwrap_or(states);
    let states = GateStates(u8::from_str_radix(states, 16).ok()?);
    Some(Entry { operation, states, interval: time(interval)? })
}

/// Parses a list: the `base-time`, `sched-entry` and `cycle-time` of tc-taprio(8), on any lines. As
/// in tc, a number without a unit is nanoseconds. All other words are ignored, so `text` may be a
/// whole [`command`]. `#` begins a comment.
///
/// # Errors
/// The line, the invalid part and the allowed values.
pub fn parse(text: &str) -> Result<GateControlList, ParseError> {
    let (mut base, mut cycle, mut entries) = (0, None, Vec::new());
    let mut last = 1;
    for (line, content) in (1..).zip(text.lines()) {
        let fail = |message: String| ParseError { line, message };
        let content = content.split('#').next().unwrap_or_default();
        let mut words = content.split_whitespace();
        while let Some(key) = words.next() {
            let mut take = |count| words.by_ref().take(count).collect::<Vec<_>>();
            match key {
                "base-time" => {
                    let value = take(1).join(" ");
                    let ns = value.parse().ok();
                    let ns = ns.or_else(|| nanoseconds(&value).map(Duration::as_ns));
                    base = ns.ok_or_else(|| fail(wrong_time(key, &value)))?;
                }
                "cycle-time" => {
                    let value = take(1).join(" ");
                    let time = nanoseconds(&value);
                    cycle = Some(time.ok_or_else(|| fail(wrong_time(key, &value)))?);
                }
                "sched-entry" => {
                    let value = take(3);
                    let wrong = || {
                        let entry = value.join(" ");
                        fail(format!(
                            "invalid sched-entry '{entry}': expected S, H or R, the open gates in \
                             hexadecimal and a time, such as 'S 01 300us'"
                        ))
                    };
                    entries.push(entry(&value, nanoseconds).ok_or_else(wrong)?);
                    last = line;
                }
                _ => {}
            }
        }
    }
    let sum = || entries.iter().fold(Duration::ZERO, |sum, entry| sum + entry.interval);
    let base = base_time(base, cycle.unwrap_or_else(sum));
    let list = match cycle {
        Some(cycle) => GateControlList::new(base, cycle, &entries),
        None => GateControlList::of_entries(base, &entries),
    };
    list.map_err(|error| ParseError { line: last, message: error.to_string() })
}

/// A base time in ns since 1970. Beyond the range of a list, only its position within a cycle stays.
pub fn base_time(ns: u64, cycle: Duration) -> Instant {
    let fits = ns <= u64::MAX / 1_000;
    Instant::from_ns(if fits { ns } else { ns % cycle.as_ns().max(1) })
}

fn wrong_time(key: &str, value: &str) -> String {
    format!("invalid {key} '{value}': expected a time such as 500us, or nanoseconds")
}

/// A time with its unit, or a number of nanoseconds.
fn nanoseconds(text: &str) -> Option<Duration> {
    with_unit(text, "ns").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_back() {
        let text = "base-time 1s # on CLOCK_TAI\nsched-entry S 08 200us\nsched-entry H 0xf7 300000\n\
                    sched-entry R 00 1us cycle-time 1ms";
        let list = parse(text).unwrap();
        assert_eq!(list.base_time(), Instant::ZERO + Duration::from_ms(1_000));
        assert_eq!(list.cycle_time(), Duration::from_ms(1));
        let states: Vec<_> = list.entries().iter().map(|entry| entry.states.0).collect();
        assert_eq!(states, [8, 0xf7, 0]);
        assert_eq!(list.entries()[1].interval, Duration::from_us(300));
        let line = command(&list, &Options::new("eth0", false));
        let back = parse(&line).unwrap();
        assert_eq!((back.entries(), back.base_time()), (list.entries(), list.base_time()));
        assert_eq!(back.cycle_time(), list.cycle_time());
    }

    #[test]
    fn classes_limits_and_preemption_are_words_of_the_command() {
        let list = parse("sched-entry S ff 1ms").unwrap();
        let options = Options {
            class_of_priority: [1, 0, 2, 2, 2, 2, 2, 3],
            max_sdu: [0, 0, 0, 1500, 0, 0, 0, 0],
            express: Some(0b1000),
            overhead: 24,
            ..Options::new("eth0", true)
        };
        let expected = "tc qdisc replace dev eth0 parent root handle 100 stab overhead 24 taprio \
                        num_tc 4 map 1 0 2 2 2 2 2 3 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 \
                        base-time 0 sched-entry S ff 1000000 cycle-time 1000000 \
                        max-sdu 0 0 0 1500 0 0 0 0 fp P P P E flags 0x2";
        assert_eq!(command(&list, &options), expected);
    }

    #[test]
    fn a_base_of_today_keeps_its_place_in_a_cycle() {
        let list = parse("base-time 1700000000001500000 sched-entry S 01 20ms").unwrap();
        assert_eq!(list.base_time(), Instant::from_ns(1_500_000));
    }

    #[test]
    fn parse_errors_name_line_and_part() {
        for (text, line, part) in [
            ("", 1, "at least one entry"),
            ("\nsched-entry X 01 1ms", 2, "'X 01 1ms': expected S, H or R"),
            ("sched-entry S 100 1ms", 1, "'S 100 1ms'"),
            ("sched-entry S 01", 1, "'S 01'"),
            ("sched-entry S 01 1ms\ncycle-time soon", 2, "cycle-time 'soon'"),
            ("sched-entry S 01 1ms\nsched-entry S 02 0", 2, "entry 2: the interval is zero"),
            ("base-time -1 sched-entry S 01 1ms", 1, "base-time '-1'"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }
}
