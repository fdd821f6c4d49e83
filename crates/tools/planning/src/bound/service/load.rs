//! The frames that enter a queue.

use crate::bound::arrivals::Steps;

/// A constraint of arrivals: a staircase, and how much the delays since its place differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The staircase.
    pub steps: Steps,
    /// Difference of the longest and the shortest delay.
    pub jitter: u64,
}

/// Frames that enter a queue by one flow.
#[derive(Clone, Debug)]
pub struct Entering {
    /// The arrivals satisfy all of these; none: any number of frames at once.
    pub constraints: Vec<Constraint>,
    /// Copies of each frame.
    pub copies: u64,
    /// The longest work of a frame.
    pub line: u64,
    /// The longest time of a frame that counts for credit.
    pub counted: u64,
    /// The most counts in the whole network at once, if they are limited (commands in flight).
    pub in_flight: Option<u64>,
    /// Ethernet frames of a count: of a command, or 1.
    pub pieces: u64,
}

/// What the line of a reception port limits: after the longest frame, `rate` work per time.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    /// The longest frame: its work, and its time that counts for credit.
    pub largest: [u64; 2],
    /// Work, and time that counts, in units of `per` per picosecond.
    pub rate: [u64; 2],
    /// See `rate`.
    pub per: u64,
    /// How much the delays from the line to the queue differ.
    pub slack: u64,
}

/// Flows that enter by the same reception port, or a flow of the node itself.
#[derive(Clone, Debug)]
pub struct Group {
    /// The flows.
    pub flows: Vec<Entering>,
    /// The limits of the line and of a shaper that the flows share.
    pub caps: Vec<Cap>,
}

/// What is counted of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Work.
    Line,
    /// The time that counts for credit.
    Credit,
}

/// The frames of a class at a port.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// The flows by reception port.
    pub groups: Vec<Group>,
}

impl Entering {
    /// The most frames in a closed time `t`; `None`: any number.
    pub fn frames(&self, t: u64) -> Option<u64> {
        let all = self.constraints.iter();
        let least = all.map(|one| one.steps.frames(t.saturating_add(one.jitter))).min();
        least.map(|frames| frames.saturating_mul(self.copies))
    }

    pub(super) fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Line => self.line,
            Measure::Credit => self.counted,
        }
    }

    /// Frames per picosecond in the long run.
    pub(super) fn rate(&self) -> f64 {
        let rates = self.constraints.iter().map(|one| one.steps.rate());
        rates.fold(f64::INFINITY, f64::min) * self.copies as f64
    }
}

impl Group {
    pub(super) fn sum(&self, t: u64, measure: Measure) -> Option<u64> {
        self.flows.iter().try_fold(0u64, |sum, flow| {
            Some(sum.saturating_add(flow.frames(t)?.saturating_mul(flow.of(measure))))
        })
    }

    /// The most work that came within the last `t` and still waits.
    pub(super) fn backlog(&self, t: u64, measure: Measure) -> Option<u64> {
        let sum = self.flows.iter().try_fold(0u64, |sum, flow| {
            let frames = flow.frames(t).into_iter().chain(flow.in_flight).min()?;
            Some(sum.saturating_add(frames.saturating_mul(flow.of(measure))))
        });
        let caps = self.caps.iter().map(|cap| cap.at(t, measure));
        sum.into_iter().chain(caps).min()
    }

    /// Whether the line, not the flows, limits the work in the long run.
    pub(super) fn is_full(&self, measure: Measure) -> bool {
        let flows = self.flow_rate(measure);
        self.caps.iter().any(|cap| cap.rate(measure) <= flows)
    }

    pub(super) fn flow_rate(&self, measure: Measure) -> f64 {
        self.flows.iter().map(|flow| flow.rate() * flow.of(measure) as f64).sum()
    }

    pub(super) fn work(&self, t: u64, measure: Measure) -> u64 {
        let caps = self.caps.iter().map(|cap| cap.at(t, measure));
        self.sum(t, measure).into_iter().chain(caps).min().unwrap_or(u64::MAX)
    }

    pub(super) fn rate(&self, measure: Measure) -> f64 {
        let flows = self.flow_rate(measure);
        self.caps.iter().map(|cap| cap.rate(measure)).fold(flows, f64::min)
    }

    pub(super) fn rises(&self, until: u64, measure: Measure, out: &mut Vec<u64>) {
        let begin = out.len();
        for flow in &self.flows {
            for one in &flow.constraints {
                out.extend(one.steps.rises(one.jitter, until));
            }
        }
        // Where a limit reaches a stair or another limit.
        let stairs = begin..out.len();
        let reached = stairs.map(|at| out[at]).chain([0]);
        let reached: Vec<u64> = reached.filter_map(|at| self.sum(at, measure)).collect();
        for cap in &self.caps {
            let crossings = reached.iter().filter_map(|sum| cap.reaches(*sum, measure));
            let others = self.caps.iter().filter_map(|other| cap.meets(other, measure));
            out.extend(crossings.chain(others).filter(|at| *at <= until));
        }
    }
}

impl Cap {
    pub(super) fn parts(&self, measure: Measure) -> (u64, u64) {
        let at = usize::from(measure == Measure::Credit);
        (self.largest[at], self.rate[at])
    }

    pub(super) fn at(&self, t: u64, measure: Measure) -> u64 {
        let (largest, rate) = self.parts(measure);
        let t = u128::from(t.saturating_add(self.slack));
        let rest = (t * u128::from(rate)).div_ceil(u128::from(self.per));
        largest.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX))
    }

    pub(super) fn rate(&self, measure: Measure) -> f64 {
        self.parts(measure).1 as f64 / self.per as f64
    }

    /// The time after which the limit is above a limit that begins higher.
    pub(super) fn meets(&self, other: &Self, measure: Measure) -> Option<u64> {
        let (begin, end) = (self.at(0, measure), other.at(0, measure));
        let faster = self.rate(measure) - other.rate(measure);
        (begin < end && faster > 0.0).then(|| ((end - begin) as f64 / faster) as u64 + 1)
    }

    /// The time at which the limit reaches `work`, above 0.
    pub(super) fn reaches(&self, work: u64, measure: Measure) -> Option<u64> {
        let (largest, rate) = self.parts(measure);
        let rest = u128::from(work.checked_sub(largest)?);
        let t = (rest * u128::from(self.per)).div_ceil(u128::from(rate));
        u64::try_from(t).ok()?.checked_sub(self.slack).filter(|at| *at > 0)
    }
}

impl Load {
    /// The most work that arrives in a closed time `t`.
    pub fn work(&self, t: u64) -> u64 {
        self.by(t, Measure::Line)
    }

    pub(super) fn by(&self, t: u64, measure: Measure) -> u64 {
        let groups = self.groups.iter();
        groups.fold(0, |sum: u64, group| sum.saturating_add(group.work(t, measure)))
    }

    /// Work per time in the long run.
    pub fn rate(&self, measure: Measure) -> f64 {
        self.groups.iter().map(|group| group.rate(measure)).sum()
    }

    /// The most Ethernet frames in a closed time `t`, as far as the flows limit it.
    pub fn frames(&self, t: u64) -> u64 {
        let flows = self.groups.iter().flat_map(|group| &group.flows);
        let frames = |flow: &Entering| {
            let counts = flow.frames(t).into_iter().chain(flow.in_flight).min();
            counts.unwrap_or(u64::MAX).saturating_mul(flow.pieces)
        };
        flows.map(frames).fold(0, u64::saturating_add)
    }

    pub(super) fn rises(&self, until: u64, measure: Measure) -> Vec<u64> {
        let mut out = vec![0];
        self.groups.iter().for_each(|group| group.rises(until, measure, &mut out));
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Whether there are no frames.
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(|group| group.flows.is_empty())
    }
}
