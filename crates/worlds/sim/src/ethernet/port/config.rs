//! The parameters of a port.

use tsn::ets::{Ets, EtsError};
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Cqf, Gates, QUEUES};
use wire::{Duration, Instant};

use super::super::Rate;
use super::super::frame::{FCS, GAP, HEADER, PREAMBLE, TAG};
use super::super::traffic::StreamId;
use super::shaper::NewShaper;

/// Bytes on the line of the longest frame with a payload of 1500 bytes (IEEE 802.3-2022, 3.2.7).
const LARGEST: usize = PREAMBLE + HEADER + TAG + 1500 + FCS + GAP;

/// How a port decides whether a frame still fits into an open window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// By the frame's own length (IEEE 802.1Q-2022, 8.6.8.4).
    #[default]
    FrameLength,
    /// As if each frame had this payload (bytes) and a tag, like equipment that uses only the MTU.
    MaximumFrame(usize),
}

/// From `at` on, a port sends at most `bits_per_second`, including preamble and
/// gap: it sends each frame at the line's rate and delays the next one (a
/// shaper with a burst of one frame).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// Start time.
    pub at: Instant,
    /// Bits per second, above 0.
    pub bits_per_second: u64,
}

/// The bits of a frame that a shaper counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Preamble to FCS and the following gap: everything that occupies the line.
    #[default]
    WithGap,
    /// Destination address to FCS.
    FrameOnly,
}

/// The credit-based shaper of a class (IEEE 802.1Q-2022, 8.6.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditBased {
    /// operIdleSlope, bits per second, above 0 and at most the port's rate. If gates close the
    /// class, credit rises faster in the open time (8.6.8.2 d).
    pub idle_slope: u64,
    /// The bits that reduce the credit.
    pub counted: Counted,
    /// Whether credit rises while the gate is open but the next frame no longer fits.
    pub rises_in_guard_band: bool,
}

/// A committed rate and burst (IEEE 802.1Q-2022, 8.6.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// CommittedInformationRate, bits per second, above 0.
    pub rate: u64,
    /// CommittedBurstSize, bits: at least the longest frame.
    pub burst: u64,
}

/// Asynchronous traffic shaping of a class (IEEE 802.1Q-2022, 8.6.8.5 and 8.6.11). Each stream, and
/// each address pair of other frames, has its own scheduler; see [`super::SchedulerGroups`] for
/// their groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ats {
    /// Rate and burst of every scheduler except the schedulers of `streams`.
    pub committed: Committed,
    /// Rate and burst of the schedulers of these streams.
    pub streams: Vec<(StreamId, Committed)>,
    /// The longest wait; frames that would have to wait longer are dropped.
    pub max_residence: Option<Duration>,
    /// The bits that count for the rate.
    pub counted: Counted,
}

/// How frames of a class are selected (IEEE 802.1Q-2022, 8.6.8).
#[derive(Clone, Debug, Default)]
pub enum Algorithm {
    /// Frames may leave whenever no higher class may send.
    #[default]
    StrictPriority,
    /// Frames may leave while the class has credit.
    CreditBased(CreditBased),
    /// A frame may leave from its eligibility time on.
    Ats(Ats),
    /// The classes of this kind take turns when no class of another kind may send.
    Ets {
        /// The share of the remaining bandwidth of these classes, in percent.
        weight: u8,
    },
    /// Frames may leave when a custom shaper permits. Not available in plans.
    Own(NewShaper),
}

/// The queue of a traffic class.
#[derive(Clone, Debug)]
pub struct Class {
    /// The selection of frames of the class.
    pub algorithm: Algorithm,
    /// The most frames in the queue.
    pub queue_frames: usize,
    /// The most bytes (header to FCS) in the queue.
    pub queue_bytes: usize,
    /// The longest payload in bytes after the EtherType; longer frames are dropped: queueMaxSDU
    /// (IEEE 802.1Q-2022, 8.6.8.4).
    pub max_sdu: Option<usize>,
}

impl Default for Class {
    /// Strict priority, with room for 1024 frames or 512 KiB.
    fn default() -> Self {
        let (queue_frames, queue_bytes) = (1024, 512 << 10);
        Self { algorithm: Algorithm::StrictPriority, queue_frames, queue_bytes, max_sdu: None }
    }
}

/// Frame preemption (IEEE 802.1Q-2022, 6.7.2; IEEE 802.3-2022, clause 99).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemption {
    /// Bit n: frames of class n are express. All others are preemptable.
    pub express: u8,
    /// The shortest fragments that the port sends.
    pub fragment: FragmentSize,
    /// How long before its gate operation the port requests hold or release of its MAC.
    pub advance: HoldAdvance,
    /// How the port verifies that its partner supports fragments.
    pub verify: verification::Config,
}

/// A port's parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// The line's rate.
    pub rate: Rate,
    /// The gates, which open each queue at times; `None`: queues are always open.
    pub gates: Option<Gates>,
    /// The clock of asynchronous traffic shaping; gates have their own.
    pub clock: Clock,
    /// The check whether a frame fits before its gate closes.
    pub guard: Guard,
    /// The traffic classes of the port.
    pub classes: [Class; QUEUES],
    /// The queue of each priority code point; a frame without tag has 0.
    pub queue_of_priority: [u8; QUEUES],
    /// Pairs of classes with cyclic queuing and forwarding; see [`Self::with_cqf`].
    pub cqf: Vec<Cqf>,
    /// Frame preemption, if the port supports it.
    pub preemption: Option<Preemption>,
    /// Rate limits below the line's rate, in the order of time.
    pub rate_steps: Vec<RateStep>,
    /// Merges waiting raw frames of one link up to this payload (bytes); 0:
    /// never. Only without gates.
    pub merge: usize,
}

impl Config {
    /// A port with one queue per priority, strict priority, without gates.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            gates: None,
            clock: Clock::default(),
            guard: Guard::FrameLength,
            classes: Default::default(),
            queue_of_priority: [0, 1, 2, 3, 4, 5, 6, 7],
            cqf: Vec::new(),
            preemption: None,
            rate_steps: Vec::new(),
            merge: 0,
        }
    }

    /// The selection among the classes with weights; `None` without such classes.
    ///
    /// # Errors
    /// If the sum of the weights is not 100 %, or a weight is zero.
    pub(crate) fn ets(&self) -> Result<Option<Ets>, EtsError> {
        let weights = self.classes.each_ref().map(|class| match class.algorithm {
            Algorithm::Ets { weight } => Some(weight),
            _ => None,
        });
        match weights {
            [None, None, None, None, None, None, None, None] => Ok(None),
            _ => Ets::new(weights, LARGEST).map(Some),
        }
    }

    /// Adds cyclic queuing and forwarding for a pair of classes, whose gates alternate.
    #[must_use]
    pub fn with_cqf(mut self, pair: Cqf, clock: Clock) -> Self {
        self.gates = Some(pair.gates(self.gates.unwrap_or_else(|| Gates::always_open(clock))));
        self.cqf.push(pair);
        self
    }

    /// Sets the depth of all queues.
    #[must_use]
    pub fn with_depth(mut self, frames: usize, bytes: usize) -> Self {
        for class in &mut self.classes {
            (class.queue_frames, class.queue_bytes) = (frames, bytes);
        }
        self
    }
}
