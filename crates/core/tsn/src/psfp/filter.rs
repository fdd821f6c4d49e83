//! Stream filters: one instance for each stream at each bridge (IEEE 802.1Q-2022, 8.6.5.3).

use wire::Instant;

use crate::Clock;

use super::gate::Held;
use super::{Color, GateConfig, GateError, Meter, MeterConfig, MeterError, StreamGate};

/// The configuration of a stream's filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The longest SDU, in bytes; frames with a longer one are discarded (8.6.5.3.1). `None`: no
    /// limit.
    pub max_sdu: Option<u64>,
    /// StreamBlockedDueToOversizeFrameEnable: a frame above `max_sdu` blocks the stream
    /// permanently.
    pub block_on_oversize: bool,
    /// The stream gate.
    pub gate: Option<GateConfig>,
    /// The flow meter.
    pub meter: Option<MeterConfig>,
}

/// An invalid filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The gate is invalid.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// The meter is invalid.
    #[error(transparent)]
    Meter(#[from] MeterError),
}

/// The properties of a frame that a filter uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Bytes between the EtherType and the FCS.
    pub sdu: u64,
    /// Bytes that the meter counts: from the destination address to the FCS (MEF 10.3, 12.2).
    pub length: u64,
    /// The drop eligible bit of the VLAN tag.
    pub drop_eligible: bool,
}

/// The result for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame passes.
    Pass {
        /// The internal priority value, which selects the queue. `None`: the frame's own priority
        /// selects it.
        ipv: Option<u8>,
        /// Whether the frame is drop eligible from here on.
        drop_eligible: bool,
    },
    /// The frame is discarded.
    Drop(Reason),
}

/// Why a frame is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// An earlier violation has blocked the stream permanently.
    Blocked,
    /// The SDU is longer than [`Config::max_sdu`].
    Oversize,
    /// The stream gate is closed.
    GateClosed,
    /// The frame exceeds the octets that may still pass in the gate's interval.
    Octets,
    /// The frame is yellow, and the meter drops yellow frames.
    Yellow,
    /// The frame is red.
    Red,
}

/// Counters of a filter (12.31.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// MatchingFramesCount.
    pub matching: u64,
    /// PassingSDUCount.
    pub passing_sdu: u64,
    /// NotPassingSDUCount; includes all frames after an oversize frame has blocked the stream.
    pub not_passing_sdu: u64,
    /// PassingFramesCount: frames that passed the gate.
    pub passing: u64,
    /// NotPassingFramesCount: frames that the gate discarded.
    pub not_passing: u64,
    /// Frames that the meter marked yellow.
    pub yellow: u64,
    /// RedFramesCount.
    pub red: u64,
    /// Frames discarded for any reason.
    pub dropped: u64,
    /// The first violation that blocked the stream permanently, and its time.
    pub blocked: Option<(Reason, Instant)>,
}

/// A filter.
#[derive(Clone, Debug)]
pub struct Filter {
    max_sdu: Option<u64>,
    block_on_oversize: bool,
    /// StreamBlockedDueToOversizeFrame.
    oversize: bool,
    gate: Option<StreamGate>,
    meter: Option<(Meter, bool)>,
    counters: Counters,
}

impl Filter {
    /// A filter before the first frame.
    ///
    /// # Errors
    /// An invalid gate or meter.
    pub fn new(config: &Config) -> Result<Self, FilterError> {
        let meter = |config: MeterConfig| Ok((Meter::new(config)?, config.drop_on_yellow));
        Ok(Self {
            max_sdu: config.max_sdu,
            block_on_oversize: config.block_on_oversize,
            oversize: false,
            gate: config.gate.clone().map(StreamGate::new).transpose()?,
            meter: config.meter.map(meter).transpose().map_err(FilterError::Meter)?,
            counters: Counters::default(),
        })
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Ends all permanent blocks and fills the buckets, as after a power loss. The counters stay.
    pub fn restart(&mut self) {
        self.oversize = false;
        self.gate.iter_mut().for_each(StreamGate::restart);
        self.meter.iter_mut().for_each(|(meter, _)| meter.restart());
    }

    /// Sets the clock of the stream gate.
    pub fn set_clock(&mut self, clock: Clock) {
        self.gate.iter_mut().for_each(|gate| gate.set_clock(clock));
    }

    /// Decides about a frame received at `now`, and counts it.
    pub fn take(&mut self, now: Instant, frame: Frame) -> Verdict {
        self.counters.matching += 1;
        let found = self.judge(now, frame);
        if let Verdict::Drop(reason) = found {
            self.counters.dropped += 1;
            if self.counters.blocked.is_none() && self.is_blocked() {
                self.counters.blocked = Some((reason, now));
            }
        }
        found
    }

    /// Whether a violation has blocked the stream permanently.
    pub fn is_blocked(&self) -> bool {
        self.oversize
            || self.gate.as_ref().is_some_and(StreamGate::is_blocked)
            || self.meter.as_ref().is_some_and(|(meter, _)| meter.is_blocked())
    }

    fn judge(&mut self, now: Instant, frame: Frame) -> Verdict {
        let too_long = self.max_sdu.is_some_and(|most| frame.sdu > most);
        if self.oversize || too_long {
            self.counters.not_passing_sdu += 1;
            let before = self.oversize;
            self.oversize |= self.block_on_oversize;
            return Verdict::Drop(if before { Reason::Blocked } else { Reason::Oversize });
        }
        self.counters.passing_sdu += 1;
        let mut ipv = None;
        if let Some(gate) = &mut self.gate {
            match gate.pass(now, frame.sdu) {
                Ok(priority) => ipv = priority,
                Err(held) => {
                    self.counters.not_passing += 1;
                    return Verdict::Drop(match held {
                        Held::Blocked => Reason::Blocked,
                        Held::Closed => Reason::GateClosed,
                        Held::Octets => Reason::Octets,
                    });
                }
            }
        }
        self.counters.passing += 1;
        self.metered(now, frame, ipv)
    }

    fn metered(&mut self, now: Instant, frame: Frame, ipv: Option<u8>) -> Verdict {
        let Frame { length, drop_eligible, .. } = frame;
        let Some((meter, drop_on_yellow)) = &mut self.meter else {
            return Verdict::Pass { ipv, drop_eligible };
        };
        let blocked = meter.is_blocked();
        match meter.color(now, length, drop_eligible) {
            Color::Green => Verdict::Pass { ipv, drop_eligible },
            Color::Yellow => {
                self.counters.yellow += 1;
                match drop_on_yellow {
                    true => Verdict::Drop(Reason::Yellow),
                    false => Verdict::Pass { ipv, drop_eligible: true },
                }
            }
            Color::Red => {
                self.counters.red += 1;
                Verdict::Drop(if blocked { Reason::Blocked } else { Reason::Red })
            }
        }
    }
}
