//! The selection of commands.

use crate::commands::{Command, command_names};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::str::FromStr;
use wire::Bdf;

/// A range of numbers, both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span(pub RangeInclusive<u64>);

impl FromStr for Span {
    type Err = String;

    /// Parses `N`, `N..M` (M included) or `N+LENGTH`; numbers may be hexadecimal.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not N, N..M or N+LENGTH");
        let number = |text: &str| number(text).ok_or_else(wrong);
        let (first, last) = if let Some((first, last)) = text.split_once("..") {
            (number(first)?, number(last)?)
        } else if let Some((first, length)) = text.split_once('+') {
            let (first, length) = (number(first)?, number(length)?);
            (first, first.checked_add(length).and_then(|end| end.checked_sub(1)).ok_or_else(wrong)?)
        } else {
            (number(text)?, number(text)?)
        };
        if first > last { Err(wrong()) } else { Ok(Self(first..=last)) }
    }
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim().replace('_', "");
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

impl Span {
    fn meets(&self, first: u64, length: u64) -> bool {
        let last = first.saturating_add(length.max(1) - 1);
        first <= *self.0.end() && last >= *self.0.start()
    }
}

/// Parses a time since the beginning of the trace, in nanoseconds.
///
/// # Errors
/// A line with the accepted forms.
pub fn parse_time(text: &str) -> Result<u64, String> {
    report::span::time(text).map(wire::Duration::as_ns)
}

/// An opcode by its number, or a command by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Opcode number, on any queue.
    Number(u8),
    /// Command name in lower case, with letters and digits only.
    Name(String),
}

impl FromStr for Opcode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digit = text.starts_with(|first: char| first.is_ascii_digit());
        match number(text).and_then(|number| u8::try_from(number).ok()) {
            Some(number) => Ok(Self::Number(number)),
            None if !digit && command_names().any(|name| plain(name) == plain(text)) => {
                Ok(Self::Name(plain(text)))
            }
            None => {
                let names: BTreeSet<String> = command_names().map(dashed).collect();
                let names = Vec::from_iter(names).join(", ");
                Err(format!("neither an opcode nor the name of a command: {names}"))
            }
        }
    }
}

fn dashed(name: &str) -> String {
    name.replace([' ', '/'], "-").to_lowercase()
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// A selection of commands. Fields that are not set match all commands.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Numbers of the commands, from 1 in the order in which commands ended.
    pub command: Option<Span>,
    /// Drive.
    pub drive: Option<Bdf>,
    /// Submission queue.
    pub queue: Option<u16>,
    /// Command identifier.
    pub cid: Option<u16>,
    /// Opcode.
    pub opcode: Option<Opcode>,
    /// Logical blocks; a command matches if it accesses at least one of these blocks.
    pub lba: Option<Span>,
    /// Bus addresses; a command matches if one of its TLPs accesses at least one of these
    /// addresses.
    pub address: Option<Span>,
    /// Tag; a command matches if one of its TLPs has the tag.
    pub tag: Option<u16>,
    /// Commands that end at this time or later, in nanoseconds.
    pub from_ns: Option<u64>,
    /// Commands that begin at this time or earlier, in nanoseconds.
    pub to_ns: Option<u64>,
    /// Commands that take longer than this, from the tail doorbell to the head doorbell, in
    /// nanoseconds.
    pub slower_than_ns: Option<u64>,
    /// Commands that failed or have no completion.
    pub failed: bool,
}

impl Selection {
    /// Returns whether the command with this number is selected.
    pub fn has(&self, number: u64, command: &Command) -> bool {
        let span = |selected: &Option<Span>, first: Option<u64>, length: u64| {
            let meets = |selected: &Span| first.is_some_and(|first| selected.meets(first, length));
            selected.as_ref().is_none_or(meets)
        };
        let name = |selected: &Opcode| match selected {
            Opcode::Number(number) => *number == command.entry.opcode,
            Opcode::Name(name) => *name == plain(&command.name()),
        };
        let slower = |least: u64| command.duration_ns().is_some_and(|total| total > least);
        let failed = || command.status.is_none_or(|status| !status.is_success());
        let last = command.steps.last().map_or(command.start, |step| step.at);
        span(&self.command, Some(number), 1)
            && self.drive.is_none_or(|drive| drive == command.device)
            && self.queue.is_none_or(|queue| queue == command.queue)
            && self.cid.is_none_or(|cid| cid == command.entry.cid)
            && self.opcode.as_ref().is_none_or(name)
            && span(&self.lba, command.slba(), u64::from(command.blocks().unwrap_or(1)))
            && self.from_ns.is_none_or(|from| last.as_ns() >= from)
            && self.to_ns.is_none_or(|to| command.start.as_ns() <= to)
            && self.slower_than_ns.is_none_or(slower)
            && (!self.failed || failed())
            && self.has_step(command)
    }

    fn has_step(&self, command: &Command) -> bool {
        let meets = |selected: &Span| {
            let mut steps = command.steps.iter();
            steps.any(|step| selected.meets(step.address, u64::from(step.bytes)))
        };
        let tagged = |tag: u16| {
            command.steps.iter().any(|step| step.tag.is_some_and(|found| found.get() == tag))
        };
        self.address.as_ref().is_none_or(meets) && self.tag.is_none_or(tagged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_times_are_parsed() {
        assert_eq!("7".parse(), Ok(Span(7..=7)));
        assert_eq!("0x10..0x1F".parse(), Ok(Span(16..=31)));
        assert_eq!("4096+8".parse(), Ok(Span(4096..=4103)));
        for wrong in ["", "x", "5..4", "1+0", "0x", "-1", "1.5"] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
        assert!(Span(10..=19).meets(5, 6) && Span(10..=19).meets(19, 0));
        assert!(!Span(10..=19).meets(5, 5) && !Span(10..=19).meets(20, 1));
        assert_eq!(parse_time("1.5ms"), Ok(1_500_000));
        assert_eq!(parse_time("2s"), Ok(2_000_000_000));
        assert_eq!((parse_time("0"), parse_time("0ms")), (Ok(0), Ok(0)));
        for wrong in ["", "5", "00", "-0", "0 x", "ms", "-1s", "1y", "NaNs", "infs"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn opcodes_have_numbers_and_names() {
        assert_eq!("0x02".parse(), Ok(Opcode::Number(2)));
        assert_eq!("Write Zeroes".parse(), Ok(Opcode::Name("writezeroes".into())));
        assert_eq!("write-zeroes".parse(), Ok(Opcode::Name("writezeroes".into())));
        assert!("999".parse::<Opcode>().is_err() && "--".parse::<Opcode>().is_err());
        let wrong = "raed".parse::<Opcode>().unwrap_err();
        assert!(wrong.contains(" read, ") && wrong.contains(" create-i-o-submission-queue, "));
        let name: Opcode = "create-i-o-submission-queue".parse().unwrap();
        assert_eq!(name, Opcode::Name("createiosubmissionqueue".into()));
    }
}
