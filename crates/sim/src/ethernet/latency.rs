//! Where a frame's time went.

use wire::{Duration, Instant};

/// What a frame spent time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameStage {
    /// In the pipelines of network interfaces.
    Nic,
    /// In an egress queue, behind other frames.
    Queue,
    /// In an egress queue, for a gate to open.
    Gate,
    /// On a line, bit after bit. What a cut-through bridge does not wait for
    /// is not counted.
    Serialisation,
    /// On the way through cables, with what a fault plan delays.
    Propagation,
    /// In the pipelines of bridges.
    Bridge,
}

impl FrameStage {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// All, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Nic, Self::Queue, Self::Gate, Self::Serialisation, Self::Propagation, Self::Bridge];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nic => "nic",
            Self::Queue => "queue",
            Self::Gate => "gate",
            Self::Serialisation => "serialisation",
            Self::Propagation => "propagation",
            Self::Bridge => "bridge",
        }
    }
}

/// A frame's account: every picosecond since it was made, booked to one
/// stage, over all hops. The sum of the stages is the time from
/// [`Self::created`] to [`Self::until`], always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLatency {
    created: Instant,
    until: Instant,
    spent: [Duration; FrameStage::COUNT],
}

impl FrameLatency {
    /// The account of a frame made at `created`.
    pub fn new(created: Instant) -> Self {
        Self { created, until: created, spent: [Duration::ZERO; FrameStage::COUNT] }
    }

    /// Books the time since the last entry to `stage`.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn book(&mut self, stage: FrameStage, until: Instant) {
        assert!(until >= self.until, "{stage:?} until {until}, already at {}", self.until);
        let spent = &mut self.spent[stage as usize];
        *spent = *spent + until.since(self.until);
        self.until = until;
    }

    /// When the frame was made.
    pub fn created(&self) -> Instant {
        self.created
    }

    /// Up to when time has been booked.
    pub fn until(&self) -> Instant {
        self.until
    }

    /// The time spent on `stage`.
    pub fn spent(&self, stage: FrameStage) -> Duration {
        self.spent[stage as usize]
    }

    /// The sum of all stages.
    pub fn total(&self) -> Duration {
        self.until.since(self.created)
    }
}
