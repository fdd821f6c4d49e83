//! The latency of a frame by stage.

use wire::{Duration, Instant};

/// A part of the network in which a frame spends time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameStage {
    /// In the pipelines of network interfaces.
    Nic,
    /// In an egress queue, behind other frames.
    Queue,
    /// In an egress queue, for a gate to open.
    Gate,
    /// In an egress queue, for credit or its eligibility time.
    Shaper,
    /// Interrupted by express frames, until the rest of the frame begins.
    Preempted,
    /// Serialisation on a line. At a cut-through bridge only the time of preamble and header.
    Serialisation,
    /// In cables, including delays by faults.
    Propagation,
    /// In the pipelines of bridges.
    Bridge,
}

impl FrameStage {
    /// Number of stages.
    pub const COUNT: usize = 8;

    /// All stages, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Nic,
        Self::Queue,
        Self::Gate,
        Self::Shaper,
        Self::Preempted,
        Self::Serialisation,
        Self::Propagation,
        Self::Bridge,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nic => "nic",
            Self::Queue => "queue",
            Self::Gate => "gate",
            Self::Shaper => "shaper",
            Self::Preempted => "preempted",
            Self::Serialisation => "serialisation",
            Self::Propagation => "propagation",
            Self::Bridge => "bridge",
        }
    }
}

/// The latency of a frame over all hops. Each picosecond since the creation of the frame belongs to
/// one stage. The sum of all stages is the time from [`Self::created`] to [`Self::until`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLatency {
    created: Instant,
    until: Instant,
    spent: [Duration; FrameStage::COUNT],
}

impl FrameLatency {
    /// The latency of a frame created at `created`.
    pub fn new(created: Instant) -> Self {
        Self { created, until: created, spent: [Duration::ZERO; FrameStage::COUNT] }
    }

    /// Adds the time from [`Self::until`] to `until` to `stage`.
    ///
    /// # Panics
    /// If `until` is earlier than [`Self::until`].
    pub fn book(&mut self, stage: FrameStage, until: Instant) {
        assert!(until >= self.until, "{stage:?} until {until}, already at {}", self.until);
        let spent = &mut self.spent[stage as usize];
        *spent = *spent + until.since(self.until);
        self.until = until;
    }

    /// When the frame was created.
    pub fn created(&self) -> Instant {
        self.created
    }

    /// The end of the last added time.
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
