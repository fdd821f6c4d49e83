//! The longest delay of a class.

use super::LIMIT;
use super::higher::{Credit, Higher, Peer};
use super::load::{Load, Measure};
use super::windows::Windows;

/// Places in a cycle of cyclic queues.
const PARTS: u64 = 64;

/// A class at a port, and all that may delay its frames.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its frames.
    pub own: Load,
    /// Classes with precedence, and flows of the class that need not wait for earlier frames.
    pub higher: Vec<Higher>,
    /// Such flows of a class with credit, windows, rounds or cyclic queues.
    pub peers: Vec<Peer>,
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
    fn higher(&self, t: u64, before: u64) -> u64 {
        let own = if self.higher.iter().any(|class| class.turns.is_some()) {
            self.own.frames(t)
        } else {
            0
        };
        self.higher
            .iter()
            .fold(0, |sum: u64, class| sum.saturating_add(class.work(t, (own, before))))
    }

    /// The most work of higher classes that waits at some time, and comes within `t` after it.
    ///
    /// It waits since a time `y` before, from which on these classes kept the line busy.
    fn higher_waiting(&self, t: u64, ahead: u64) -> Option<u64> {
        let end = {
            let mut time = 0;
            loop {
                let next = self.block.checked_add(self.higher(time, ahead))?;
                if next <= time {
                    break time;
                }
                time = (next < LIMIT).then_some(next)?;
            }
        };
        let rises = self.higher.iter().flat_map(|class| class.rises(end.saturating_add(t)));
        let since = rises.filter_map(|at| at.checked_sub(t)).chain([0]);
        since.map(|y| self.higher(y.saturating_add(t), ahead).saturating_sub(y)).max()
    }

    fn measure(&self) -> Measure {
        if self.credit.is_some() { Measure::Credit } else { Measure::Line }
    }

    /// Offered load, and the load that the class can carry, as shares of the line.
    pub fn utilisation(&self) -> (f64, f64) {
        let peers = self.peers.iter().map(|peer| peer.load.rate(self.measure()));
        let own = self.own.rate(self.measure()) + peers.sum::<f64>();
        let higher: f64 = self.higher.iter().map(|class| class.rate(own)).sum();
        let share = self.windows.as_ref().map_or(1.0, Windows::share);
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
            return self.block.checked_add(self.higher(p, 0));
        };
        // Each window may begin behind a frame of another class, and end with a guard band, in which
        // credit may rise.
        let shortest = windows.spans.iter().map(|(from, to)| to - from).min()?;
        let idle = self.block.checked_add(windows.margin)?;
        let blocks = idle.checked_mul(p / shortest.max(1) + 2)?;
        let wall = windows.serve(p, 0)?;
        let mut waiting = self.clone();
        waiting.higher.iter_mut().for_each(|class| class.before = class.before.max(class.wait));
        blocks.checked_add(waiting.higher(wall, 0))
    }

    /// The longest time from the begin of the busy period until work of the class `before` a frame
    /// has started, so that the frame starts. `None`: unbounded.
    pub(super) fn start(&self, before: u64) -> Option<u64> {
        if self.peers.is_empty() {
            return self.start_after(before);
        }
        let mut time = 0;
        loop {
            let next = self.start_after(before.saturating_add(self.of_peers(time)))?;
            if next <= time {
                return Some(time);
            }
            time = next;
        }
    }

    /// The most work of peers from the begin of the busy period until `time`.
    fn of_peers(&self, time: u64) -> u64 {
        let own = self.own.frames(time);
        let work = self.peers.iter().map(|peer| peer.work(time, own, self.measure()));
        work.fold(0, u64::saturating_add)
    }

    /// [`Self::start`] behind work of the class that includes its peers.
    fn start_after(&self, before: u64) -> Option<u64> {
        let demand = self
            .credit
            .map_or(before, |credit| credit.regain(before).saturating_add(credit.uncounted));
        if let (Some(credit), None) = (&self.credit, &self.windows) {
            let time = demand.checked_add(self.blocked(credit)?);
            return time.filter(|time| *time < LIMIT);
        }
        let most = match &self.credit {
            Some(credit) => {
                self.blocked(credit).map_or(u64::MAX, |wait| demand.saturating_add(wait))
            }
            None => u64::MAX,
        };
        let mut time = demand;
        loop {
            let need = demand.saturating_add(self.higher(time, before));
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
    ///
    /// Between two rises of the stairs, work comes at the rate of a line. So a cycle has
    /// [`PARTS`] places too: a frame comes at the earliest place, and behind all work until the
    /// next one.
    fn cyclic(&self, line: u64, cycle: u64) -> Option<u64> {
        let mut places = self.own.rises(cycle, Measure::Line);
        places.extend((0..PARTS).map(|part| cycle / PARTS * part));
        places.push(cycle + 1);
        places.sort_unstable();
        places.dedup();
        if !self.peers.is_empty() {
            // A frame may be behind all of its cycle.
            places = vec![0, cycle + 1];
        }
        let mut longest = 0;
        for (from, to) in places.iter().zip(&places[1..]) {
            let all = self.own.work(to - 1).max(line).saturating_add(self.of_peers(to - 1));
            let start = self.start_after(all - line)?;
            if start + line > cycle {
                return None;
            }
            longest = longest.max(cycle - from + start);
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
            None if full
                && self.higher.is_empty()
                && self.peers.is_empty()
                && self.own.rate(measure) <= self.utilisation().1 =>
            {
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
        if let Some(cycle) = self.cycle {
            return self.cyclic(0, cycle);
        }
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
        let fixed = self.higher.iter().all(|class| class.before == 0 && class.turns.is_none())
            && self.peers.is_empty();
        if self.windows.is_none() && self.credit.is_none() && fixed {
            let higher = self.higher_waiting(delay, ahead)?;
            return ahead.checked_add(self.block)?.checked_add(higher);
        }
        let mut waiting = self.clone();
        for class in &mut waiting.higher {
            class.before = class.before.max(class.wait);
        }
        waiting.peers.iter_mut().for_each(|peer| peer.before = peer.wait);
        waiting.start(ahead)
    }

    /// The longest time from the begin of the transmission of a frame that takes `line` to its end,
    /// if express frames may cut it. `None`: unbounded.
    pub fn sent(&self, line: u64) -> Option<u64> {
        let express = || self.higher.iter().filter(|class| class.cut > 0);
        let mut time = line.checked_add(self.held)?;
        loop {
            let more =
                express().fold(0, |sum: u64, class| sum.saturating_add(class.work(time, (0, 0))));
            let next = line.checked_add(self.held)?.checked_add(more)?;
            if next <= time {
                return Some(time);
            }
            time = (next < LIMIT).then_some(next)?;
        }
    }
}
