//! The longest time from the arrival of a frame in a queue to its transmission.
//!
//! All times are picoseconds. The *work* of a frame is its time on the line with preamble and gap.
//! A frame of a class waits for the frames of its class that came before it, for classes with
//! precedence, for one frame of the other classes that had begun, for gates and for credit. The
//! functions try every time `x` by which the frame may arrive after the queue was last empty, with
//! the most work that can arrive meanwhile (busy-period analysis; network calculus with the service
//! curves of J.-Y. Le Boudec and P. Thiran, "Network Calculus", and frames instead of bits).

use super::arrivals::Steps;

/// The longest time that counts; beyond it a class is unbounded.
pub const LIMIT: u64 = 2_000_000_000_000;

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

    fn of(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Line => self.line,
            Measure::Credit => self.counted,
        }
    }

    /// Frames per picosecond in the long run.
    fn rate(&self) -> f64 {
        let rates = self.constraints.iter().map(|one| one.steps.rate());
        rates.fold(f64::INFINITY, f64::min) * self.copies as f64
    }
}

impl Group {
    fn sum(&self, t: u64, measure: Measure) -> Option<u64> {
        self.flows.iter().try_fold(0u64, |sum, flow| {
            Some(sum.saturating_add(flow.frames(t)?.saturating_mul(flow.of(measure))))
        })
    }

    /// The most work that came within the last `t` and still waits.
    fn backlog(&self, t: u64, measure: Measure) -> Option<u64> {
        let sum = self.flows.iter().try_fold(0u64, |sum, flow| {
            let frames = flow.frames(t).into_iter().chain(flow.in_flight).min()?;
            Some(sum.saturating_add(frames.saturating_mul(flow.of(measure))))
        });
        let caps = self.caps.iter().map(|cap| cap.at(t, measure));
        sum.into_iter().chain(caps).min()
    }

    /// Whether the line, not the flows, limits the work in the long run.
    fn is_full(&self, measure: Measure) -> bool {
        let flows = self.flow_rate(measure);
        self.caps.iter().any(|cap| cap.rate(measure) <= flows)
    }

    fn flow_rate(&self, measure: Measure) -> f64 {
        self.flows.iter().map(|flow| flow.rate() * flow.of(measure) as f64).sum()
    }

    fn work(&self, t: u64, measure: Measure) -> u64 {
        let caps = self.caps.iter().map(|cap| cap.at(t, measure));
        self.sum(t, measure).into_iter().chain(caps).min().unwrap_or(u64::MAX)
    }

    fn rate(&self, measure: Measure) -> f64 {
        let flows = self.flow_rate(measure);
        self.caps.iter().map(|cap| cap.rate(measure)).fold(flows, f64::min)
    }

    fn rises(&self, until: u64, measure: Measure, out: &mut Vec<u64>) {
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
    fn parts(&self, measure: Measure) -> (u64, u64) {
        let at = usize::from(measure == Measure::Credit);
        (self.largest[at], self.rate[at])
    }

    fn at(&self, t: u64, measure: Measure) -> u64 {
        let (largest, rate) = self.parts(measure);
        let t = u128::from(t.saturating_add(self.slack));
        let rest = (t * u128::from(rate)).div_ceil(u128::from(self.per));
        largest.saturating_add(u64::try_from(rest).unwrap_or(u64::MAX))
    }

    fn rate(&self, measure: Measure) -> f64 {
        self.parts(measure).1 as f64 / self.per as f64
    }

    /// The time after which the limit is above a limit that begins higher.
    fn meets(&self, other: &Self, measure: Measure) -> Option<u64> {
        let (begin, end) = (self.at(0, measure), other.at(0, measure));
        let faster = self.rate(measure) - other.rate(measure);
        (begin < end && faster > 0.0).then(|| ((end - begin) as f64 / faster) as u64 + 1)
    }

    /// The time at which the limit reaches `work`, above 0.
    fn reaches(&self, work: u64, measure: Measure) -> Option<u64> {
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

    fn by(&self, t: u64, measure: Measure) -> u64 {
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

    fn rises(&self, until: u64, measure: Measure) -> Vec<u64> {
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

/// A class with precedence.
#[derive(Clone, Debug)]
pub struct Higher {
    /// Its frames.
    pub load: Load,
    /// Frames that came this long before the busy period may still wait at its begin.
    pub before: u64,
    /// The longest time from the arrival of its frames to the end of their transmission.
    pub wait: u64,
    /// Its credit-based shaper, if it has one.
    pub credit: Option<Credit>,
    /// The time that each frame costs by cutting a preemptable frame in two.
    pub cut: u64,
    /// The windows of its gate; `None`: always open.
    pub open: Option<Open>,
    /// If the flow takes turns with the flow under analysis: its longest frame, and the frames that
    /// go before the first turn.
    pub turns: Option<(u64, u64)>,
}

/// A credit-based shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// idleSlope and portTransmitRate, in the same unit.
    pub slope: (u64, u64),
    /// The highest and the lowest credit of a higher class together, in time of the line.
    pub range: u64,
    /// Preamble and gap, if they do not count.
    pub uncounted: u64,
}

impl Credit {
    /// The time in which credit rises by what `counted` costs.
    fn regain(&self, counted: u64) -> u64 {
        let (idle, rate) = self.slope;
        let time = (u128::from(counted) * u128::from(rate)).div_ceil(u128::from(idle));
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// The work that the shaper lets pass in a time `t`.
    fn passes(&self, t: u64) -> u64 {
        let (idle, rate) = self.slope;
        let passes = (u128::from(t) * u128::from(idle)).div_ceil(u128::from(rate));
        self.range.saturating_add(u64::try_from(passes).unwrap_or(u64::MAX))
    }
}

impl Higher {
    /// The most work of turns while the flow under analysis sends `own` frames. A tunnel that has to
    /// refill its connection may miss every other turn.
    fn in_turn(&self, own: u64) -> u64 {
        self.turns.map_or(u64::MAX, |(longest, first)| {
            own.saturating_mul(2).saturating_add(first + 2).saturating_mul(longest)
        })
    }

    fn work(&self, t: u64, own: u64) -> u64 {
        let t_all = t.saturating_add(self.before);
        let cuts = match self.cut {
            0 => 0,
            cut => self.load.frames(t_all).saturating_mul(cut),
        };
        let arrives = self.load.work(t_all).min(self.in_turn(own));
        let passes = self.credit.map_or(u64::MAX, |credit| credit.passes(t));
        let open = self.open.as_ref().map_or(u64::MAX, |open| open.most(t));
        arrives.min(passes).min(open).saturating_add(cuts)
    }

    fn rises(&self, until: u64) -> impl Iterator<Item = u64> {
        let rises = self.load.rises(until.saturating_add(self.before), Measure::Line);
        rises.into_iter().filter_map(|at| at.checked_sub(self.before))
    }

    fn rate(&self) -> f64 {
        let open = self.open.as_ref().map_or(1.0, |open| {
            let windows = open.spans.len() as u64;
            let sum: u64 = open.spans.iter().map(|(from, to)| to - from).sum();
            (sum + windows * open.longest) as f64 / open.cycle as f64
        });
        let frames = self.load.groups.iter().flat_map(|group| &group.flows);
        let cuts: f64 = frames.map(|flow| flow.rate() * self.cut as f64).sum();
        self.load.rate(Measure::Line).min(open) + if self.cut > 0 { cuts } else { 0.0 }
    }
}

/// The time for which a gate is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Open {
    /// Length of the cycle.
    pub cycle: u64,
    /// Start and end of each window, in order; the last end may be after the cycle.
    pub spans: Vec<(u64, u64)>,
    /// The longest frame, with its gap, which may end after a window.
    pub longest: u64,
}

impl Open {
    /// The most work in a time `t`.
    fn most(&self, t: u64) -> u64 {
        let sum: u64 = self.spans.iter().map(|(from, to)| to - from).sum();
        let (cycles, rest) = (t / self.cycle, t % self.cycle);
        let from = |at: usize| {
            let begin = self.spans[at].0;
            let next = (at..).map(|index| {
                let shift = self.cycle * (index / self.spans.len()) as u64;
                let (from, to) = self.spans[index % self.spans.len()];
                (from + shift - begin, to + shift - begin)
            });
            next.take_while(|(from, _)| *from < rest).map(|(from, to)| to.min(rest) - from).sum()
        };
        let most: u64 = (0..self.spans.len()).map(from).max().unwrap_or(0);
        let windows = self.spans.len() as u64 * (cycles + 1) + 1;
        (cycles * sum).saturating_add(most).saturating_add(windows.saturating_mul(self.longest))
    }
}

/// The windows in which frames of a class may start, all other conditions met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Length of the cycle.
    pub cycle: u64,
    /// Start and end of each window, in order; the last end may be after the cycle.
    pub spans: Vec<(u64, u64)>,
    /// Whether another class may have begun a frame at the end of a window.
    pub blocks: bool,
    /// The time after each window in which the gate is open, but the longest frame does not fit.
    pub margin: u64,
}

impl Windows {
    /// The longest time until `demand` of a class has started, if a frame of length `block` may come
    /// first. `None`: beyond [`LIMIT`].
    pub fn serve(&self, demand: u64, block: u64) -> Option<u64> {
        let sum: u64 = self.spans.iter().map(|(from, to)| to - from).sum();
        if sum == 0 {
            return None;
        }
        let block = if self.blocks { block } else { 0 };
        let cycles = demand / sum;
        let (whole, rest) = (cycles.checked_mul(self.cycle)?, demand % sum);
        let most = (0..self.spans.len()).map(|at| self.after(at, rest)).max()?;
        block.checked_add(whole)?.checked_add(most).filter(|time| *time < LIMIT)
    }

    /// The time from the end of window `at` until `demand`, which fits into a cycle, has started.
    fn after(&self, at: usize, mut demand: u64) -> u64 {
        let count = self.spans.len();
        let end = self.spans[at].1;
        for step in 1.. {
            let (index, cycles) = ((at + step) % count, (at + step) / count);
            let (from, to) = self.spans[index];
            let shift = self.cycle * cycles as u64;
            if demand <= to - from {
                return from + shift + demand - end;
            }
            demand -= to - from;
        }
        unreachable!("the demand fits into a cycle")
    }

    /// The share of time in the windows.
    pub fn share(&self) -> f64 {
        let sum: u64 = self.spans.iter().map(|(from, to)| to - from).sum();
        sum as f64 / self.cycle as f64
    }
}

/// A class at a port, and all that may delay its frames.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its frames.
    pub own: Load,
    /// Classes with precedence, and flows of the class that need not wait for earlier frames.
    pub higher: Vec<Higher>,
    /// The longest time of a frame of another class that has begun.
    pub block: u64,
    /// The windows of the gate; `None`: always open.
    pub windows: Option<Windows>,
    /// The credit-based shaper.
    pub credit: Option<Credit>,
    /// The longest time for which a frame that is cut may be held.
    pub held: u64,
    /// Length of a cycle of cyclic queues: frames wait until the next cycle, in which they must be
    /// sent.
    pub cycle: Option<u64>,
}

impl Class {
    fn higher(&self, t: u64) -> u64 {
        let own = if self.higher.iter().any(|class| class.turns.is_some()) {
            self.own.frames(t)
        } else {
            0
        };
        self.higher.iter().fold(0, |sum: u64, class| sum.saturating_add(class.work(t, own)))
    }

    /// The most work of higher classes that waits at some time, and comes within `t` after it.
    ///
    /// It waits since a time `y` before, from which on these classes kept the line busy.
    fn higher_waiting(&self, t: u64) -> Option<u64> {
        let end = {
            let mut time = 0;
            loop {
                let next = self.block.checked_add(self.higher(time))?;
                if next <= time {
                    break time;
                }
                time = (next < LIMIT).then_some(next)?;
            }
        };
        let rises = self.higher.iter().flat_map(|class| class.rises(end.saturating_add(t)));
        let since = rises.filter_map(|at| at.checked_sub(t)).chain([0]);
        since.map(|y| self.higher(y.saturating_add(t)).saturating_sub(y)).max()
    }

    fn measure(&self) -> Measure {
        if self.credit.is_some() { Measure::Credit } else { Measure::Line }
    }

    /// Offered load, and the load that the class can carry, as shares of the line.
    pub fn utilisation(&self) -> (f64, f64) {
        let higher: f64 = self.higher.iter().map(Higher::rate).sum();
        let share = self.windows.as_ref().map_or(1.0, Windows::share);
        let own = self.own.rate(self.measure());
        match self.credit {
            Some(credit) => (own, credit.slope.0 as f64 / credit.slope.1 as f64 * share),
            None => (own + higher, share),
        }
    }

    /// The longest time for which a class with credit waits for other frames. `None`: unbounded.
    ///
    /// Credit above 0 is `idleSlope * p - rate * own` after a time `p` since it was 0, of which the
    /// class sent for `own`, and the others for at most `block + higher(p)`. So the credit is at
    /// most `rate * (block + higher(p)) - (rate - idleSlope) * p`, and the frame waits for as long
    /// as that credit takes to rise.
    pub fn blocked(&self, credit: &Credit) -> Option<u64> {
        let (idle, rate) = (u128::from(credit.slope.0), u128::from(credit.slope.1));
        let others = |p: u64| Some(u128::from(self.others(p)?));
        let until = |scale: u128| {
            let mut p = 0;
            loop {
                let next = u64::try_from((others(p)? * rate).div_ceil(scale.max(1))).ok()?;
                if next <= p {
                    return Some(p);
                }
                p = (next < LIMIT).then_some(next)?;
            }
        };
        let alone = until(rate)?;
        let end = until(rate - idle)?;
        let rises: Vec<u64> = match self.windows {
            None => self.higher.iter().flat_map(|class| class.rises(end)).collect(),
            // Frames of the others may come at any place of the windows.
            Some(_) => vec![end],
        };
        let wait = |p: u64| {
            // With windows, the most others at the end, and the least time.
            let from = if self.windows.is_some() { alone } else { p };
            let credit = (others(p)? * rate).checked_sub((rate - idle) * u128::from(from))?;
            u64::try_from(credit.div_ceil(idle)).ok()
        };
        let later = rises.into_iter().filter(|p| *p > alone);
        Some(later.filter_map(wait).fold(alone, u64::max))
    }

    /// The most time that other classes send while the gate of the class is open for `p`.
    fn others(&self, p: u64) -> Option<u64> {
        let Some(windows) = &self.windows else {
            return self.block.checked_add(self.higher(p));
        };
        // Each window may begin behind a frame of another class, and end with a guard band, in which
        // credit may rise.
        let shortest = windows.spans.iter().map(|(from, to)| to - from).min()?;
        let idle = self.block.checked_add(windows.margin)?;
        let blocks = idle.checked_mul(p / shortest.max(1) + 2)?;
        let wall = windows.serve(p, 0)?;
        let mut waiting = self.clone();
        waiting.higher.iter_mut().for_each(|class| class.before = class.before.max(class.wait));
        blocks.checked_add(waiting.higher(wall))
    }

    /// The longest time from the begin of the busy period until work of the class `before` a frame
    /// has started, so that the frame starts. `None`: unbounded.
    fn start(&self, before: u64) -> Option<u64> {
        let demand = self.credit.map_or(before, |credit| {
            credit.regain(before).saturating_add(credit.uncounted)
        });
        if let (Some(credit), None) = (&self.credit, &self.windows) {
            let time = demand.checked_add(self.blocked(credit)?);
            return time.filter(|time| *time < LIMIT);
        }
        let most = match &self.credit {
            Some(credit) => self.blocked(credit).map_or(u64::MAX, |wait| demand.saturating_add(wait)),
            None => u64::MAX,
        };
        let mut time = demand;
        loop {
            let need = demand.saturating_add(self.higher(time));
            let next = match &self.windows {
                None => need.saturating_add(self.block),
                // Other frames may begin whenever credit is below 0.
                Some(windows) if self.credit.is_some() => {
                    let need = need.saturating_add(self.block).min(most);
                    windows.serve(need, 0)?
                }
                Some(windows) => windows.serve(need, self.block)?,
            };
            if next <= time {
                return Some(time);
            }
            if next >= LIMIT {
                return None;
            }
            time = next;
        }
    }

    /// The time in which the class is busy at most. `None`: unbounded.
    fn busy(&self) -> Option<u64> {
        let (offered, limit) = self.utilisation();
        if offered >= limit {
            return None;
        }
        let mut time = 1;
        loop {
            let next = self.start(self.own.by(time, self.measure()))?;
            if next <= time {
                return Some(time);
            }
            time = next;
        }
    }

    /// The longest time from the arrival of a frame in a cyclic queue to the begin of its
    /// transmission. `None`: a cycle is too short for the frames of the previous one.
    fn cyclic(&self, line: u64, cycle: u64) -> Option<u64> {
        let mut longest = 0;
        for x in self.own.rises(cycle, Measure::Line) {
            let all = self.own.work(x).max(line);
            let start = self.start(all - line)?;
            if start + line > cycle {
                return None;
            }
            longest = longest.max(cycle - x + start);
        }
        Some(longest)
    }

    /// The longest time from the arrival of a frame to the begin of its transmission, for each work
    /// of a frame in `lines` (as [`Entering::line`], and as [`Entering::counted`]). `None`:
    /// unbounded.
    pub fn delays(&self, lines: &[(u64, u64)]) -> Option<Vec<u64>> {
        if let Some(cycle) = self.cycle {
            return lines.iter().map(|(line, _)| self.cyclic(*line, cycle)).collect();
        }
        let busy = self.while_busy(lines);
        let backlog = self.after_backlog(lines);
        match (busy, backlog) {
            (Some(busy), Some(backlog)) => {
                Some(busy.into_iter().zip(backlog).map(|(one, other)| one.min(other)).collect())
            }
            (busy, backlog) => busy.or(backlog),
        }
    }

    /// [`Self::delays`] by the arrivals since the begin of the busy period.
    fn while_busy(&self, lines: &[(u64, u64)]) -> Option<Vec<u64>> {
        let measure = self.measure();
        let full = self.own.groups.iter().all(|group| group.is_full(measure));
        let rises = match self.busy() {
            Some(busy) => self.own.rises(busy, measure),
            // Lines no faster than this one, and nothing else: the backlog never grows.
            None if full && self.higher.is_empty() && self.own.rate(measure) <= self.utilisation().1 => {
                vec![0]
            }
            None => return None,
        };
        let delay = |(line, counted): &(u64, u64)| {
            let own = if measure == Measure::Credit { *counted } else { *line };
            let mut longest = 0;
            for x in &rises {
                let before = self.own.by(*x, measure).saturating_sub(own);
                longest = longest.max(self.start(before)?.saturating_sub(*x));
            }
            Some(longest)
        };
        lines.iter().map(delay).collect()
    }

    /// [`Self::delays`] by the frames that may wait when a frame arrives: of each flow those that
    /// came within the longest delay, or all in flight. Frames of higher classes may wait too.
    ///
    /// The delays of all earlier frames are below a fixed point by induction.
    fn after_backlog(&self, lines: &[(u64, u64)]) -> Option<Vec<u64>> {
        let flows = || self.own.groups.iter().flat_map(|group| &group.flows);
        if flows().all(|flow| flow.in_flight.is_none()) {
            return None;
        }
        let measure = self.measure();
        let debt = match self.credit {
            Some(_) => flows().map(|flow| flow.counted).max().unwrap_or(0),
            None => 0,
        };
        let longest = flows().map(|flow| flow.line).max().unwrap_or(0);
        let mut delay = 0;
        loop {
            let groups = self.own.groups.iter();
            let ahead = groups.map(|group| group.backlog(delay, measure));
            let ahead = ahead.sum::<Option<u64>>()?.checked_add(debt)?;
            let next = self.start_behind(ahead, delay)?.checked_add(longest)?;
            if next <= delay {
                return Some(vec![delay; lines.len()]);
            }
            delay = (next < LIMIT).then_some(next)?;
        }
    }

    /// The longest time for which anything but the `own` work of a flow keeps its frames waiting,
    /// while that work is sent. `None`: unbounded, or frames in flight have no limit.
    pub fn interference(&self, own: u64) -> Option<u64> {
        let measure = self.measure();
        let flows = || self.own.groups.iter().flat_map(|group| &group.flows);
        let longest = flows().map(|flow| flow.line / flow.pieces.max(1)).max().unwrap_or(0);
        let mut delay = 0;
        loop {
            let mut ahead = 0u64;
            for flow in flows() {
                let frames = flow.frames(delay).into_iter().chain(flow.in_flight).min()?;
                ahead = ahead.checked_add(frames.checked_mul(flow.of(measure))?)?;
            }
            let next = self.start_behind(ahead, delay)?.checked_add(longest)?;
            if next <= delay {
                return Some(delay.saturating_sub(own));
            }
            delay = (next < LIMIT).then_some(next)?;
        }
    }

    /// The longest time until a frame starts behind work `ahead` of its class that waits, if it
    /// starts after `delay` at the earliest.
    fn start_behind(&self, ahead: u64, delay: u64) -> Option<u64> {
        let fixed = self.higher.iter().all(|class| class.before == 0 && class.turns.is_none());
        if self.windows.is_none() && self.credit.is_none() && fixed {
            let higher = self.higher_waiting(delay)?;
            return ahead.checked_add(self.block)?.checked_add(higher);
        }
        let mut waiting = self.clone();
        for class in &mut waiting.higher {
            class.before = class.before.max(class.wait);
        }
        waiting.start(ahead)
    }

    /// The longest time from the begin of the transmission of a frame that takes `line` to its end,
    /// if express frames may cut it. `None`: unbounded.
    pub fn sent(&self, line: u64) -> Option<u64> {
        let express = || self.higher.iter().filter(|class| class.cut > 0);
        let mut time = line.checked_add(self.held)?;
        loop {
            let more = express().fold(0, |sum: u64, class| sum.saturating_add(class.work(time, 0)));
            let next = line.checked_add(self.held)?.checked_add(more)?;
            if next <= time {
                return Some(time);
            }
            time = (next < LIMIT).then_some(next)?;
        }
    }
}
