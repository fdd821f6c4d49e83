//! What a run of a talker or a listener is asked for.

use crate::document::Document;
use latency::schedule::Schedule;
use latency::{Band, Sample};
use std::mem::discriminant;
use std::path::PathBuf;
use std::str::FromStr;
use wire::Duration;

/// What a talker is asked for.
#[derive(Clone, Debug)]
pub struct Talk {
    /// When frames are due.
    pub schedule: Schedule,
    /// Frames to send.
    pub count: u64,
    /// Bytes of a payload.
    pub size: u16,
    /// Whether every frame is expected back.
    pub reflect: bool,
    /// Ethernet frames have a tag of this VLAN.
    pub vlan: Option<u16>,
    /// Wakes this much before a frame is due, and reads the clock until then.
    pub spin: Duration,
    /// Hands frames over this much before they are due, with a launch time (SO_TXTIME).
    pub launch: Option<Duration>,
    /// How frames are marked.
    pub marks: Marks,
    /// What is asked of the machine.
    pub machine: Machine,
    /// What the document says of the run.
    pub heading: Heading,
}

/// What a listener is asked for.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Whether every frame is sent back.
    pub reflect: bool,
    /// How long to wait for the first frame.
    pub wait: Duration,
    /// The run ends when the talker was silent for so long.
    pub idle: Duration,
    /// How frames that are sent back are marked.
    pub marks: Marks,
    /// What is asked of the machine.
    pub machine: Machine,
    /// What the document says of the run.
    pub heading: Heading,
}

/// What the document says of a run that nobody measures.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// The name of the run.
    pub label: String,
    /// The far side, or where it listens.
    pub address: String,
    /// Frames whose time lies in this band are counted.
    pub band: Option<Band>,
}

/// How frames are marked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// SO_PRIORITY, and the PCP of their VLAN tag, 0 to 7.
    pub priority: Option<u8>,
    /// DSCP of UDP over IPv4, 0 to 63.
    pub dscp: Option<u8>,
}

/// What both ends ask of the machine.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Run as SCHED_FIFO of this priority, 1 to 99.
    pub fifo: Option<u8>,
    /// Run on this CPU.
    pub cpu: Option<usize>,
    /// Keep all memory of the process in RAM.
    pub lock_memory: bool,
    /// The hardware of this interface stamps frames.
    pub hardware: Option<String>,
    /// What is known of the two ends' clocks.
    pub clocks: Vec<Clock>,
    /// The domain of ptp4l.
    pub ptp_domain: u8,
    /// Added to every stamp of this end, in ns.
    pub stamp_offset: i64,
    /// The number of the run; a talker without one takes one at random, a listener any.
    pub run: Option<u64>,
}

/// What is known of the clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Nothing.
    Unknown,
    /// They are one.
    Shared,
    /// What ptp4l says, at this socket or at those that it has without configuration.
    Ptp4l(Option<PathBuf>),
    /// The system's clock less a hardware clock: a device, or an interface.
    Phc2sys(PathBuf),
}

impl FromStr for Clock {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=').unwrap_or((text, "")) {
            ("unknown", "") => Ok(Self::Unknown),
            ("shared", "") => Ok(Self::Shared),
            ("ptp4l", "") => Ok(Self::Ptp4l(None)),
            ("ptp4l", path) => Ok(Self::Ptp4l(Some(path.into()))),
            ("phc2sys", device) if !device.is_empty() => Ok(Self::Phc2sys(device.into())),
            _ => Err(format!(
                "invalid '{text}': expected unknown, shared, ptp4l[=SOCKET] or phc2sys=DEVICE"
            )),
        }
    }
}

impl Machine {
    /// Whether what is known of the clocks goes together.
    ///
    /// # Errors
    /// Two of them contradict each other.
    pub fn check(&self) -> Result<(), &'static str> {
        let is_part = |clock: &Clock| matches!(clock, Clock::Ptp4l(_) | Clock::Phc2sys(_));
        let twice = |(at, clock): (usize, &Clock)| {
            let same = |other: &Clock| discriminant(other) == discriminant(clock);
            self.clocks[..at].iter().any(same)
        };
        let several = self.clocks.len() > 1;
        if several && !self.clocks.iter().all(is_part) || self.clocks.iter().enumerate().any(twice)
        {
            return Err("--clock can be given twice only as ptp4l and phc2sys");
        }
        Ok(())
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct Run {
    /// The results.
    pub document: Document,
    /// Frames that have no row yet.
    pub unwritten: Vec<Sample>,
    /// Frames that this end sent as a talker, those included that the kernel did not take.
    pub sent: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read() {
        let clock = |text: &str| text.parse::<Clock>();
        assert_eq!(clock("ptp4l=/x"), Ok(Clock::Ptp4l(Some("/x".into()))));
        assert_eq!(clock("phc2sys=eth1"), Ok(Clock::Phc2sys("eth1".into())));
        assert!(clock("phc2sys").is_err() && clock("shared=x").is_err());
        assert!(clock("ntp").unwrap_err().contains("expected unknown"));
    }
}
