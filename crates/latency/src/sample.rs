//! What is known of one frame.

use std::num::NonZeroU64;

/// Nanoseconds of TAI since 1970, or unknown.
pub type Stamp = Option<NonZeroU64>;

/// Nanoseconds as a stamp; 0 is unknown.
pub fn stamp(ns: u64) -> Stamp {
    NonZeroU64::new(ns)
}

/// The stamps of one frame, in the order in which it passes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Its number, from 0.
    pub sequence: u64,
    /// When the talker was to send it.
    pub scheduled: u64,
    /// When the talker woke.
    pub woken: u64,
    /// When the talker's application handed it over; 0 if the kernel did not take it.
    pub sent: u64,
    /// When it entered the queueing discipline (`SCM_TSTAMP_SCHED`, Linux
    /// Documentation/networking/timestamping.rst, 1.3.1).
    pub queued: Stamp,
    /// When the driver took it (`SCM_TSTAMP_SND`, software).
    pub driver: Stamp,
    /// When it was on the wire (`SCM_TSTAMP_SND`, hardware).
    pub wire: Stamp,
    /// When it came from the wire (receive stamp, hardware).
    pub arrived_wire: Stamp,
    /// When the listener's kernel had it (receive stamp, software).
    pub arrived: Stamp,
    /// When the listener's application had it.
    pub received: Stamp,
    /// When the listener's application sent it back.
    pub returned: Stamp,
    /// When the talker's kernel had it again.
    pub back_arrived: Stamp,
    /// When the talker's application had it again.
    pub back_received: Stamp,
    /// When the window opens in which it is scheduled; 0 without windows.
    pub opens: u64,
}

impl Sample {
    /// When it left the talker, by the stamp nearest to the wire.
    pub fn departed(&self) -> u64 {
        self.wire.or(self.driver).map_or(self.sent, u64::from)
    }

    /// When it was at the listener, by the stamp nearest to the wire.
    pub fn came(&self) -> Stamp {
        self.arrived_wire.or(self.arrived).or(self.received)
    }
}

/// A part of a frame's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Scheduled to woken.
    Wake,
    /// Scheduled to the talker's last stamp: wire, or driver where there is none.
    ToWire,
    /// Handed over by the application to the queueing discipline.
    ToQueue,
    /// The queueing discipline to the talker's last stamp: there a gate holds frames back.
    InQueue,
    /// The talker's hardware to the listener's.
    WireToWire,
    /// Handed over by the application to the listener's kernel: the latency of Linaro's article.
    SentToKernel,
    /// The talker's last stamp to the listener's kernel.
    WireToKernel,
    /// The listener's kernel to its application.
    KernelToApplication,
    /// Scheduled to the listener's application.
    EndToEnd,
    /// The listener's application: received to returned.
    Turn,
    /// Returned to the talker's kernel.
    BackToKernel,
    /// Returned to the talker's application.
    BackEndToEnd,
    /// Handed over to received again, both by the talker's application.
    RoundTrip,
}

impl Segment {
    /// All, along the way.
    pub const ALL: [Self; 13] = [
        Self::Wake,
        Self::ToQueue,
        Self::InQueue,
        Self::ToWire,
        Self::WireToWire,
        Self::SentToKernel,
        Self::WireToKernel,
        Self::KernelToApplication,
        Self::EndToEnd,
        Self::Turn,
        Self::BackToKernel,
        Self::BackEndToEnd,
        Self::RoundTrip,
    ];

    /// Its name in tables and documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wake => "schedule to wake-up",
            Self::ToWire => "schedule to wire",
            Self::ToQueue => "sent to queue",
            Self::InQueue => "queue to wire",
            Self::WireToWire => "wire to wire",
            Self::SentToKernel => "sent to kernel",
            Self::WireToKernel => "wire to kernel",
            Self::KernelToApplication => "kernel to application",
            Self::EndToEnd => "end to end",
            Self::Turn => "turn at the listener",
            Self::BackToKernel => "back to kernel",
            Self::BackEndToEnd => "back to application",
            Self::RoundTrip => "round trip",
        }
    }

    /// Whether its ends are stamped by the clocks of two machines.
    pub fn crosses_clocks(self) -> bool {
        use Segment::{EndToEnd, SentToKernel, WireToKernel, WireToWire};
        let there = matches!(self, WireToWire | SentToKernel | WireToKernel | EndToEnd);
        there || self.is_back()
    }

    /// Whether a time below zero proves that clocks are apart: frames with a launch time may leave
    /// before they are scheduled.
    pub fn proves(self) -> bool {
        self.crosses_clocks() && self != Self::EndToEnd
    }

    /// Whether it leads from the listener to the talker: a clock error counts the other way.
    pub fn is_back(self) -> bool {
        matches!(self, Self::BackToKernel | Self::BackEndToEnd)
    }

    /// How long a frame took, in ns; `None` if a stamp is missing.
    pub fn of(self, sample: &Sample) -> Option<i64> {
        let kernel = sample.arrived.map(u64::from);
        let [received, returned] = [sample.received, sample.returned].map(|at| at.map(u64::from));
        let (from, to) = match self {
            Self::Wake => (Some(sample.scheduled), Some(sample.woken)),
            Self::ToWire => (Some(sample.scheduled), (sample.sent > 0).then(|| sample.departed())),
            Self::ToQueue => (Some(sample.sent), sample.queued.map(u64::from)),
            Self::InQueue => {
                let left = sample.wire.or(sample.driver);
                (sample.queued.map(u64::from), left.map(u64::from))
            }
            Self::WireToWire => (sample.wire.map(u64::from), sample.arrived_wire.map(u64::from)),
            Self::SentToKernel => (Some(sample.sent), kernel),
            Self::WireToKernel => (Some(sample.departed()), kernel),
            Self::KernelToApplication => (kernel, received),
            Self::EndToEnd => (Some(sample.scheduled), received),
            Self::Turn => (received, returned),
            Self::BackToKernel => (returned, sample.back_arrived.map(u64::from)),
            Self::BackEndToEnd => (returned, sample.back_received.map(u64::from)),
            Self::RoundTrip => (Some(sample.sent), sample.back_received.map(u64::from)),
        };
        Some(to?.wrapping_sub(from?) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scheduled at 1000, woken 10 later, sent at 1020, queued at 1023, driver at 1030, wire at 1040,
    /// at the far wire at 1090, kernel at 1100,
    /// application at 1150, returned at 1160, kernel at 1220, application at 1300.
    #[test]
    fn segments_of_a_frame() {
        let mut sample = Sample {
            scheduled: 1000,
            woken: 1010,
            sent: 1020,
            queued: stamp(1023),
            driver: stamp(1030),
            arrived_wire: stamp(1090),
            arrived: stamp(1100),
            received: stamp(1150),
            returned: stamp(1160),
            back_arrived: stamp(1220),
            back_received: stamp(1300),
            ..Sample::default()
        };
        assert_eq!(Segment::WireToWire.of(&sample), None, "no stamp of the talker's hardware");
        assert_eq!(Segment::WireToKernel.of(&sample), Some(70));
        sample.wire = stamp(1040);
        let all = Segment::ALL.map(|segment| segment.of(&sample).unwrap());
        assert_eq!(all, [10, 3, 17, 40, 50, 80, 60, 50, 150, 10, 60, 140, 280]);
        assert_eq!(Segment::WireToKernel.of(&sample), Some(60), "the wire is nearer");
        sample.arrived = None;
        assert_eq!(Segment::WireToKernel.of(&sample), None);
        sample.arrived = stamp(900);
        assert_eq!(Segment::SentToKernel.of(&sample), Some(-120), "the clocks disagree");
    }
}
