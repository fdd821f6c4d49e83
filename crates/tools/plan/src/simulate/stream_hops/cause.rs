//! The causes of latency at a hop.

use sim::ethernet::FrameStage;
use std::ops::{AddAssign, Index, IndexMut};

wire::named! {
    /// What a frame spends time on at a hop.
    pub enum Cause {
        /// Waits behind frames of its own class.
        OwnClass "own_class",
        /// Waits behind frames of higher classes.
        HigherClass "higher_class",
        /// Waits behind frames of lower classes that were on the line, and packets between MACs.
        LowerClass "lower_class",
        /// Waits for a gate, including one that frames of its own class in front wait for.
        Gate "gate",
        /// Waits for credit or for its eligibility time, its own or that of frames in front.
        Shaper "shaper",
        /// Waits for the rate limit of the cable.
        RateLimit "rate_limit",
        /// Waits although the line is free, for the processor of the station; or waits behind more
        /// than 512 frames.
        Other "other",
        /// Is interrupted by express frames.
        Preempted "preempted",
        /// Is on the line. At a cut-through bridge only preamble and header.
        Transmission "transmission",
        /// Is in the cable, including delays by faults.
        Propagation "propagation",
        /// Is in the pipeline of a bridge.
        Bridge "bridge",
        /// Is in the pipeline of a network interface.
        Nic "nic",
    }
}

impl Cause {
    /// Number of causes.
    pub const COUNT: usize = Self::ALL.len();
}

/// A time in picoseconds for each cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Causes(pub [u64; Cause::COUNT]);

impl Causes {
    /// Returns the sum of all causes in picoseconds.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Index<Cause> for Causes {
    type Output = u64;

    fn index(&self, cause: Cause) -> &u64 {
        &self.0[cause as usize]
    }
}

impl IndexMut<Cause> for Causes {
    fn index_mut(&mut self, cause: Cause) -> &mut u64 {
        &mut self.0[cause as usize]
    }
}

impl AddAssign<&Self> for Causes {
    fn add_assign(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, ps)| *sum += ps);
    }
}

/// Picoseconds since the creation of a frame, by stage.
pub(super) type Spent = [u64; FrameStage::COUNT];

/// Sums of many frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of frames.
    pub count: u64,
    /// Sum of each cause in picoseconds.
    pub ps: [u128; Cause::COUNT],
    /// The longest time of a frame in picoseconds.
    pub longest: u64,
}

impl Sums {
    /// Adds a frame.
    pub(super) fn add(&mut self, causes: &Causes) {
        self.count += 1;
        self.ps.iter_mut().zip(causes.0).for_each(|(sum, ps)| *sum += u128::from(ps));
        self.longest = self.longest.max(causes.total());
    }

    /// Returns the mean of each cause in nanoseconds. Their sum is the mean of the whole.
    pub fn mean_ns(&self) -> [u64; Cause::COUNT] {
        super::in_ns(self.ps, self.count)
    }
}
