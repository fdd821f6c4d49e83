//! The parameters of a port.

use tsn::ets::{Ets, EtsError};
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Cqf, GateControlList, Gates, QUEUES};
use wire::{Duration, Instant};

use super::super::Rate;
use super::super::frame::{FCS, GAP, HEADER, PREAMBLE, TAG, Tag};
use super::super::traffic::StreamId;
use super::shaper::NewShaper;

/// Bytes on the line of a tagged frame with a payload of 1500 bytes, gap included (IEEE
/// 802.3-2022, 3.2.7).
const LARGEST: usize = PREAMBLE + HEADER + TAG + 1500 + FCS + GAP;

/// Which length a port uses to decide whether a frame fits into the rest of an open window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Guard {
    /// The frame's own length (IEEE 802.1Q-2022, 8.6.8.4).
    #[default]
    FrameLength,
    /// The length of a tagged frame with this payload in bytes, as in equipment that uses the MTU.
    /// A longer frame uses its own length.
    MaximumFrame(usize),
}

/// A rate limit of a port from a time on, until the next step. The limit includes preamble and gap.
/// The port sends each frame at the line's rate and delays the next frame (a shaper with a burst of
/// one frame).
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
    /// From the preamble to the end of the gap after the FCS.
    #[default]
    WithGap,
    /// From the destination address to the FCS.
    FrameOnly,
}

/// The credit-based shaper of a class (IEEE 802.1Q-2022, 8.6.8.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditBased {
    /// operIdleSlope in bits per second, above 0 and at most the port's rate. If a gate closes the
    /// class for a part of the cycle, credit rises faster while the gate is open (8.6.8.2 d).
    pub idle_slope: u64,
    /// The bits that reduce the credit.
    pub counted: Counted,
    /// Whether credit rises while the gate is open but the next frame no longer fits.
    pub rises_in_guard_band: bool,
}

/// A committed rate and burst (IEEE 802.1Q-2022, 8.6.5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// CommittedInformationRate in bits per second, above 0.
    pub rate: u64,
    /// CommittedBurstSize in bits, at least the longest frame.
    pub burst: u64,
}

/// Asynchronous traffic shaping of a class (IEEE 802.1Q-2022, 8.6.8.5 and 8.6.11). Each stream has
/// its own scheduler, and so has each address pair of other frames. For groups of schedulers, see
/// [`super::SchedulerGroups`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ats {
    /// Rate and burst of every scheduler except the schedulers of `streams`.
    pub committed: Committed,
    /// Streams with their own rate and burst.
    pub streams: Vec<(StreamId, Committed)>,
    /// The longest wait. Frames that would wait longer are dropped. `None`: no limit.
    pub max_residence: Option<Duration>,
    /// The bits that count for rate and burst.
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
    /// The classes with this algorithm share the bandwidth that all other classes leave.
    Ets {
        /// The share of the class, in percent. The sum over all classes is 100.
        weight: u8,
    },
    /// Frames may leave when a custom shaper permits it. Not available in plans.
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
    /// The longest payload in bytes after the EtherType: queueMaxSDU (IEEE 802.1Q-2022, 8.6.8.4).
    /// Frames with a longer one are dropped. `None`: no limit.
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
    /// addFragSize, which determines the shortest fragments that the port sends.
    pub fragment: FragmentSize,
    /// How long before a gate operation the port requests hold or release from its MAC.
    pub advance: HoldAdvance,
    /// How the port verifies that its partner supports fragments.
    pub verify: verification::Config,
}

/// A port's parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// The line's rate.
    pub rate: Rate,
    /// The gates of the queues; `None`: all gates are always open.
    pub gates: Option<Gates>,
    /// The clock of asynchronous traffic shaping. `gates` contains its own clock.
    pub clock: Clock,
    /// Which length decides whether a frame fits before its gate closes.
    pub guard: Guard,
    /// The traffic classes of the port.
    pub classes: [Class; QUEUES],
    /// The queue of each priority code point. A frame without a tag has priority 0.
    pub queue_of_priority: [u8; QUEUES],
    /// Pairs of classes with cyclic queuing and forwarding; see [`Self::with_cqf`].
    pub cqf: Vec<Cqf>,
    /// Frame preemption, if the port supports it.
    pub preemption: Option<Preemption>,
    /// Rate limits below the line's rate, in the order of time.
    pub rate_steps: Vec<RateStep>,
    /// VLANs of which the port is a member (IEEE 802.1Q-2022, 8.8.10); empty: of all. Only bridges
    /// filter.
    pub vlans: Vec<u16>,
    /// The VLAN of received frames without a VLAN (IEEE 802.1Q-2022, 6.9.1: PVID).
    pub pvid: u16,
    /// Bytes that MACsec adds to each frame on the line (IEEE 802.1AE-2018, 9: a SecTAG of 8, or 16
    /// bytes with SCI, and an ICV of 16); 0 without MACsec.
    pub security: u8,
    /// Merges waiting frames of raw Ethernet between the same addresses, up to this payload in
    /// bytes; 0: never. Ignored by a port with gates.
    pub merge: usize,
    /// The times of gate control lists that the hardware can run are multiples of this
    /// (IEEE 802.1Q-2022, 12.29.1: TickGranularity). A schedule's search respects it.
    pub gate_grain: Duration,
    /// The most entries of a list that the hardware can run (12.29.1: SupportedListMax). Likewise.
    pub gate_entries: usize,
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
            vlans: Vec::new(),
            pvid: 1,
            security: 0,
            merge: 0,
            gate_grain: Duration::from_ns(1),
            gate_entries: GateControlList::MAX_ENTRIES,
        }
    }

    /// Whether the port is a member of the VLAN.
    pub fn is_member(&self, vlan: u16) -> bool {
        self.vlans.is_empty() || self.vlans.contains(&vlan)
    }

    /// The VLAN of a frame that the port receives.
    pub fn vlan_of(&self, tag: Option<Tag>) -> u16 {
        tag.map(|tag| tag.vid).filter(|vid| *vid > 0).unwrap_or(self.pvid)
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
