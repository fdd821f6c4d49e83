//! The stamps of one frame.

use std::num::NonZeroU64;

/// Nanoseconds of TAI since 1970, or unknown.
pub type Stamp = Option<NonZeroU64>;

/// Nanoseconds as a stamp; 0 means unknown.
pub fn stamp(ns: u64) -> Stamp {
    NonZeroU64::new(ns)
}

/// When a frame left a machine. The kernel reports these stamps later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// When the frame entered the queueing discipline (`SCM_TSTAMP_SCHED`, Linux
    /// Documentation/networking/timestamping.rst, 1.3.1).
    pub queued: Stamp,
    /// When the driver took the frame (`SCM_TSTAMP_SND`, software).
    pub driver: Stamp,
    /// When the frame was on the wire (`SCM_TSTAMP_SND`, hardware).
    pub wire: Stamp,
}

impl Departure {
    /// The stamp nearest to the wire: of the hardware, otherwise of the driver.
    pub fn last(&self) -> Stamp {
        self.wire.or(self.driver)
    }

    /// Fills in missing stamps from `more`. Returns whether this added a stamp.
    pub fn fill(&mut self, more: &Self) -> bool {
        let before = *self;
        self.queued = self.queued.or(more.queued);
        self.driver = self.driver.or(more.driver);
        self.wire = self.wire.or(more.wire);
        *self != before
    }
}

/// The stamps of one frame, in the order of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Sequence number, from 0.
    pub sequence: u64,
    /// When the frame was due.
    pub scheduled: u64,
    /// When the talker woke for the frame.
    pub woken: u64,
    /// When the talker's application sent the frame; 0 if the kernel did not accept it.
    pub sent: u64,
    /// When the frame left the talker.
    pub departure: Departure,
    /// When the frame arrived at the listener's hardware (receive stamp).
    pub arrived_wire: Stamp,
    /// When the listener's kernel received the frame (receive stamp).
    pub arrived: Stamp,
    /// When the listener's application received the frame.
    pub received: Stamp,
    /// When the listener's application returned the frame.
    pub returned: Stamp,
    /// When the frame left the listener.
    pub back_departure: Departure,
    /// When the frame arrived at the talker's hardware (receive stamp).
    pub back_arrived_wire: Stamp,
    /// When the talker's kernel received the returned frame.
    pub back_arrived: Stamp,
    /// When the talker's application received the returned frame.
    pub back_received: Stamp,
    /// When the window of the frame opens; 0 without windows.
    pub opens: u64,
}

impl Sample {
    /// When the frame left the talker, by the stamp nearest to the wire; without a stamp, when the
    /// application sent the frame.
    pub fn departed(&self) -> u64 {
        self.departure.last().map_or(self.sent, u64::from)
    }

    /// When the frame arrived at the listener, by the stamp nearest to the wire.
    pub fn came(&self) -> Stamp {
        self.arrived_wire.or(self.arrived).or(self.received)
    }

    /// When the frame left the listener, by the stamp nearest to the wire.
    pub fn departed_back(&self) -> Stamp {
        self.back_departure.last().or(self.returned)
    }

    /// When the frame returned to the talker, by the stamp nearest to the wire.
    pub fn came_back(&self) -> Stamp {
        self.back_arrived_wire.or(self.back_arrived).or(self.back_received)
    }
}

/// A part of the path of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Segment {
    /// From the due time to the wake-up of the talker.
    Wake,
    /// From the due time to the talker's last stamp: wire, otherwise driver.
    ToWire,
    /// From the talker's application to the queueing discipline.
    ToQueue,
    /// From the queueing discipline to the talker's last stamp. Gates hold frames back here.
    InQueue,
    /// From the talker's hardware to the listener's hardware.
    WireToWire,
    /// From the talker's application to the listener's kernel, as in Linaro's article.
    SentToKernel,
    /// From the talker's last stamp to the listener's kernel.
    WireToKernel,
    /// From the listener's kernel to its application.
    KernelToApplication,
    /// From the due time to the listener's application.
    EndToEnd,
    /// From receiving to returning a frame, both by the listener's application.
    Turn,
    /// From the listener's application to its queueing discipline.
    BackToQueue,
    /// From the listener's queueing discipline to the listener's last stamp.
    BackInQueue,
    /// From the listener's hardware to the talker's hardware.
    BackWireToWire,
    /// From the listener's application to the talker's kernel.
    BackToKernel,
    /// From the listener's last stamp to the talker's kernel.
    BackWireToKernel,
    /// From the talker's kernel to its application.
    BackKernelToApplication,
    /// From the listener's application to the talker's application.
    BackEndToEnd,
    /// From sending to receiving, both by the talker's application.
    RoundTrip,
}

impl Segment {
    /// All segments, in the order of the path.
    pub const ALL: [Self; 18] = [
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
        Self::BackToQueue,
        Self::BackInQueue,
        Self::BackWireToWire,
        Self::BackToKernel,
        Self::BackWireToKernel,
        Self::BackKernelToApplication,
        Self::BackEndToEnd,
        Self::RoundTrip,
    ];

    /// Name of the segment in tables and documents.
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
            Self::BackToQueue => "sent back to queue",
            Self::BackInQueue => "back, queue to wire",
            Self::BackWireToWire => "back, wire to wire",
            Self::BackToKernel => "back to kernel",
            Self::BackWireToKernel => "back, wire to kernel",
            Self::BackKernelToApplication => "back, kernel to application",
            Self::BackEndToEnd => "back to application",
            Self::RoundTrip => "round trip",
        }
    }

    /// Whether the clocks of two machines measure the start and the end.
    pub fn crosses_clocks(self) -> bool {
        use Segment::{EndToEnd, SentToKernel, WireToKernel, WireToWire};
        let there = matches!(self, WireToWire | SentToKernel | WireToKernel | EndToEnd);
        there || self.is_back()
    }

    /// Whether a latency below zero proves a clock error. False for [`Self::EndToEnd`], because
    /// frames with a launch time may leave before they are due.
    pub fn proves(self) -> bool {
        self.crosses_clocks() && self != Self::EndToEnd
    }

    /// Whether the segment starts by the listener's clock and ends by the talker's clock, so that a
    /// clock error has the opposite sign.
    pub fn is_back(self) -> bool {
        use Segment::{BackEndToEnd, BackToKernel, BackWireToKernel, BackWireToWire};
        matches!(self, BackWireToWire | BackToKernel | BackWireToKernel | BackEndToEnd)
    }

    /// The latency of a frame on the segment, in ns. `None` if a stamp is missing.
    pub fn latency(self, sample: &Sample) -> Option<i64> {
        let Sample { departure, back_departure, arrived, received, returned, .. } = *sample;
        let Sample { back_arrived, back_received, .. } = *sample;
        let [scheduled, woken, sent] = [sample.scheduled, sample.woken, sample.sent].map(stamp);
        let departed = sent.and(stamp(sample.departed()));
        let (from, to) = match self {
            Self::Wake => (scheduled, woken),
            Self::ToWire => (scheduled, departed),
            Self::ToQueue => (sent, departure.queued),
            Self::InQueue => (departure.queued, departure.last()),
            Self::WireToWire => (departure.wire, sample.arrived_wire),
            Self::SentToKernel => (sent, arrived),
            Self::WireToKernel => (departed, arrived),
            Self::KernelToApplication => (arrived, received),
            Self::EndToEnd => (scheduled, received),
            Self::Turn => (received, returned),
            Self::BackToQueue => (returned, back_departure.queued),
            Self::BackInQueue => (back_departure.queued, back_departure.last()),
            Self::BackWireToWire => (back_departure.wire, sample.back_arrived_wire),
            Self::BackToKernel => (returned, back_arrived),
            Self::BackWireToKernel => (sample.departed_back(), back_arrived),
            Self::BackKernelToApplication => (back_arrived, back_received),
            Self::BackEndToEnd => (returned, back_received),
            Self::RoundTrip => (sent, back_received),
        };
        Some(to?.get().wrapping_sub(from?.get()) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scheduled at 1000, woken 10 later, sent at 1020, queued at 1023, driver at 1030, wire at
    /// 1040, at the far wire at 1090, kernel at 1100, application at 1150, returned at 1160, queued
    /// at 1164, driver at 1170, wire at 1182, at the near wire at 1210, kernel at 1220, application
    /// at 1300.
    #[test]
    fn segments_of_a_frame() {
        let departure = Departure { queued: stamp(1023), driver: stamp(1030), wire: None };
        let back_departure =
            Departure { queued: stamp(1164), driver: stamp(1170), wire: stamp(1182) };
        let mut sample = Sample {
            sequence: 0,
            scheduled: 1000,
            woken: 1010,
            sent: 1020,
            departure,
            arrived_wire: stamp(1090),
            arrived: stamp(1100),
            received: stamp(1150),
            returned: stamp(1160),
            back_departure,
            back_arrived_wire: stamp(1210),
            back_arrived: stamp(1220),
            back_received: stamp(1300),
            opens: 0,
        };
        assert_eq!(Segment::WireToWire.latency(&sample), None, "no stamp of the talker's hardware");
        assert_eq!(Segment::WireToKernel.latency(&sample), Some(70));
        sample.departure.wire = stamp(1040);
        let all = Segment::ALL.map(|segment| segment.latency(&sample).unwrap());
        let there = [10, 3, 17, 40, 50, 80, 60, 50, 150];
        let back = [10, 4, 18, 28, 60, 38, 80, 140, 280];
        assert_eq!(all[..], [there, back].concat());
        assert_eq!(Segment::WireToKernel.latency(&sample), Some(60), "the wire is nearer");
        sample.arrived = None;
        assert_eq!(Segment::WireToKernel.latency(&sample), None);
        sample.arrived = stamp(900);
        assert_eq!(Segment::SentToKernel.latency(&sample), Some(-120), "the clocks disagree");
        let refused = Sample { sent: 0, ..sample };
        for segment in
            [Segment::ToQueue, Segment::ToWire, Segment::WireToKernel, Segment::RoundTrip]
        {
            assert_eq!(segment.latency(&refused), None, "{}", segment.name());
        }
    }

    #[test]
    fn the_first_stamp_of_a_departure_counts() {
        let mut departure = Departure { queued: stamp(5), ..Departure::default() };
        assert!(departure.fill(&Departure { queued: stamp(6), driver: stamp(7), wire: None }));
        assert_eq!(departure, Departure { queued: stamp(5), driver: stamp(7), wire: None });
        assert!(!departure.fill(&Departure { driver: stamp(8), ..Departure::default() }));
    }
}
