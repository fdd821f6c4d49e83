//! The parameters of a talker or a listener.

use crate::document::Document;
use latency::schedule::Schedule;
use latency::{Band, Sample};
use std::mem::discriminant;
use std::path::PathBuf;
use std::str::FromStr;
use wire::Duration;

/// The parameters of a talker.
#[derive(Clone, Debug)]
pub struct Talk {
    /// When frames are due.
    pub schedule: Schedule,
    /// Number of frames to send.
    pub count: u64,
    /// Bytes of a payload, [`latency::frame::LEAST`] to [`latency::frame::MOST`].
    pub size: u16,
    /// Whether the listener returns every frame.
    pub reflect: bool,
    /// VLAN of the tag of Ethernet frames. `None`: no tag.
    pub vlan: Option<u16>,
    /// How long before a due time the talker wakes and polls the clock.
    pub spin: Duration,
    /// How long before its due time the talker sends a frame with a launch time (SO_TXTIME).
    /// `None`: without launch times.
    pub launch: Option<Duration>,
    /// Priority and DSCP of the frames.
    pub marks: Marks,
    /// Settings of the machine.
    pub machine: MachineOptions,
    /// Text for the document.
    pub heading: Heading,
}

/// The parameters of a listener.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Whether the listener returns every frame.
    pub reflect: bool,
    /// How long to wait for the first frame.
    pub wait: Duration,
    /// The run ends if no frame arrives for this time.
    pub idle: Duration,
    /// Priority and DSCP of the returned frames.
    pub marks: Marks,
    /// Settings of the machine.
    pub machine: MachineOptions,
    /// Text for the document.
    pub heading: Heading,
}

/// Texts of the document that are not measured.
#[derive(Clone, Debug, Default)]
pub struct Heading {
    /// The name of the run.
    pub label: String,
    /// The address of the listener.
    pub address: String,
    /// The band whose frames are counted.
    pub band: Option<Band>,
}

/// Priority and DSCP of frames. `None` keeps the kernel's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// SO_PRIORITY and PCP of the VLAN tag, 0 to 7.
    pub priority: Option<u8>,
    /// DSCP of UDP over IPv4, 0 to 63.
    pub dscp: Option<u8>,
}

/// Settings of the machine, for both ends.
#[derive(Clone, Debug, Default)]
pub struct MachineOptions {
    /// Run the threads as SCHED_FIFO with this priority, 1 to 99.
    pub fifo: Option<u8>,
    /// Run the measuring thread on this CPU.
    pub cpu: Option<usize>,
    /// Keep all memory of the process in RAM.
    pub lock_memory: bool,
    /// The interface whose hardware stamps are enabled.
    pub hardware: Option<String>,
    /// The sources of the clock error.
    pub clocks: Vec<Clock>,
    /// The domain of ptp4l.
    pub ptp_domain: u8,
    /// Added to every stamp of this end, in ns; for tests.
    pub stamp_offset: i64,
    /// The number of the run. Without one, a talker chooses a random number, and a listener accepts
    /// any run.
    pub run: Option<u64>,
}

/// A source of the clock error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The clock error is unknown.
    Unknown,
    /// Both ends share one clock.
    Shared,
    /// The offset of ptp4l, at this socket or at the default sockets.
    Ptp4l(Option<PathBuf>),
    /// The system clock minus a hardware clock, which is given as a device or an interface.
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

impl MachineOptions {
    /// Checks that the sources of the clock error can be combined.
    ///
    /// # Errors
    /// Several sources other than one ptp4l and one phc2sys.
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

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The results.
    pub document: Document,
    /// Frames that have no row yet.
    pub unwritten: Vec<Sample>,
    /// Number of frames that this end sent as a talker, including frames that the kernel did not
    /// accept. 0 at a listener.
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
