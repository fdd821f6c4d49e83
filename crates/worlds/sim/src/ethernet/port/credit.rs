//! The credit of a class over time.

use tsn::credit::{Credit, Slopes};
use tsn::{Gates, QUEUES};
use wire::{Duration, Instant};

use super::config::{Algorithm, Config, Counted, CreditBased};
use super::shaper::{Shaper, Transmits};

/// The credit of one class.
#[derive(Clone, Debug)]
pub(super) struct ClassCredit {
    class: usize,
    config: CreditBased,
    slopes: Slopes,
    credit: Credit,
    /// The time until which `credit` is up to date.
    at: Instant,
    /// Start and end of the class's own transmission.
    spends: (Instant, Instant),
    /// The time at which another gate control list takes over.
    next_list: Option<Instant>,
}

impl ClassCredit {
    /// The credit of each class that has a credit-based shaper.
    pub(super) fn from_config(config: &Config) -> [Option<Self>; QUEUES] {
        std::array::from_fn(|class| {
            let Algorithm::CreditBased(shaper) = config.classes[class].algorithm else {
                return None;
            };
            let rate = config.rate.bits_per_second();
            let slopes = Slopes::new(shaper.idle_slope, rate).expect("checked before");
            let mut credit = Self {
                class,
                config: shaper,
                slopes,
                credit: Credit::new(slopes),
                at: Instant::ZERO,
                spends: (Instant::ZERO, Instant::ZERO),
                next_list: None,
            };
            credit.take_list(config.gates.as_ref());
            Some(credit)
        })
    }

    /// Sets the slopes for the gate control list that applies at `self.at`.
    fn take_list(&mut self, gates: Option<&Gates>) {
        let Some(gates) = gates else { return };
        let (open, cycle) = gates.open_share_of(self.class, self.at);
        self.credit.set_slopes(self.slopes.scaled(open, cycle).unwrap_or(self.slopes));
        self.next_list = gates.next_list(self.at);
    }

    fn advance_within_list(&mut self, now: Instant, head: Option<Duration>, gates: Option<&Gates>) {
        let (from, until) = self.spends;
        // A preamble that does not count. *transmit* is true, so credit above zero is kept.
        if self.at < from {
            self.gain(now.min(from), head, true, gates);
        }
        if self.at < until && self.at < now {
            let to = now.min(until);
            self.credit.spend(to.since(self.at));
            self.at = to;
        }
        if self.at < now || (self.at == now && until <= now) {
            self.gain(now, head, head.is_some(), gates);
        }
    }

    fn gain(&mut self, to: Instant, head: Option<Duration>, keeps: bool, gates: Option<&Gates>) {
        let open = match gates {
            None => to.since(self.at),
            Some(gates) => gates.open_time(self.class, self.at, to, self.guard_band(head)),
        };
        self.credit.gain(open, keeps);
        self.at = to;
    }

    /// Length of the last part of a window, in which credit does not rise.
    fn guard_band(&self, head: Option<Duration>) -> Duration {
        match self.config.rises_in_guard_band {
            true => Duration::ZERO,
            false => head.unwrap_or_default(),
        }
    }

    /// When the slope of the credit may change next, if no event occurs. `None`: the credit stays
    /// constant.
    fn bend(&self, head: Option<Duration>, gates: Option<&Gates>) -> Option<Instant> {
        let (from, until) = self.spends;
        if (from..until).contains(&self.at) {
            return Some(self.next_list.map_or(until, |next| next.min(until)));
        }
        let begins = Some(from).filter(|from| *from > self.at);
        let moves = head.is_some() || self.credit.picobits() < 0;
        if !moves {
            return begins;
        }
        let needed = self.credit.until_ready();
        let zero = match gates {
            _ if needed == Duration::ZERO => None,
            None => Some(self.at + needed),
            Some(gates) => {
                gates.after_open_time(self.class, self.at, needed, self.guard_band(head))
            }
        };
        let change = gates.and_then(|gates| gates.next_change(self.class, self.at));
        let guard = change.map(|change| {
            let guard = change.as_ps().saturating_sub(self.guard_band(head).as_ps());
            Instant::from_ps(guard)
        });
        let all = [begins, zero, change, guard, self.next_list];
        all.into_iter().flatten().filter(|bend| *bend > self.at).min()
    }

    /// Credit in bits at the last update.
    pub(super) fn bits(&self) -> f64 {
        self.credit.bits()
    }

    /// The lowest and the highest credit so far, in picobits.
    pub(super) fn extremes(&self) -> [i128; 2] {
        [self.credit.lowest(), self.credit.highest()]
    }
}

impl Shaper for ClassCredit {
    fn advance(&mut self, now: Instant, head: Option<Duration>, gates: Option<&Gates>) {
        while let Some(change) = self.next_list.filter(|change| *change <= now) {
            self.advance_within_list(change.max(self.at), head, gates);
            self.take_list(gates);
        }
        self.advance_within_list(now, head, gates);
    }

    fn ready(&self, now: Instant, head: Duration, gates: Option<&Gates>) -> Option<Instant> {
        let from = now.max(self.spends.1);
        match (self.credit.until_ready(), gates) {
            (Duration::ZERO, _) => Some(now),
            (needed, None) => Some(from + needed),
            (needed, Some(gates)) => {
                gates.after_open_time(self.class, from, needed, self.guard_band(Some(head)))
            }
        }
    }

    fn transmits(&mut self, Transmits { from, preamble, until, gap }: Transmits) {
        self.spends = match self.config.counted {
            Counted::WithGap => (from, until + gap),
            Counted::FrameOnly => (from + preamble, until),
        };
    }

    fn stops(&mut self, now: Instant) {
        self.spends.1 = self.spends.1.min(now);
    }

    fn clock_changed(&mut self, gates: Option<&Gates>) {
        self.take_list(gates);
    }
}

/// The credit of a class from a time on, until the next event of the class.
#[derive(Clone, Debug)]
pub struct CreditCourse {
    credit: ClassCredit,
    /// The duration of the next frame if one waits.
    head: Option<Duration>,
}

/// The most points of a course. If there are more, the earlier half is removed.
const POINTS: usize = 1024;

impl CreditCourse {
    pub(super) fn new(credit: &ClassCredit, head: Option<Duration>) -> Self {
        Self { credit: credit.clone(), head }
    }

    /// The credit at `at` in picobits.
    pub fn at(mut self, at: Instant, gates: Option<&Gates>) -> i128 {
        self.advance(at, gates)
    }

    /// Appends (time, credit in picobits) for each change of the slope between `from` and `to`, and
    /// for `to`. The credit is linear in between. A jump has an additional point one picosecond
    /// earlier.
    pub fn points(
        mut self,
        from: Instant,
        to: Instant,
        gates: Option<&Gates>,
        out: &mut Vec<(Instant, i128)>,
    ) {
        self.advance(from, gates);
        while let Some(bend) = self.credit.bend(self.head, gates).filter(|at| *at < to) {
            self.point(bend, gates, out);
            if out.len() > POINTS {
                out.drain(..POINTS / 2);
            }
        }
        self.point(to, gates, out);
    }

    fn point(&mut self, at: Instant, gates: Option<&Gates>, out: &mut Vec<(Instant, i128)>) {
        let before = Instant::from_ps(at.as_ps().saturating_sub(1));
        let left = (before > self.credit.at).then(|| self.advance(before, gates));
        let value = self.advance(at, gates);
        // No slope is steeper than the port's rate.
        let jumps = |left: &i128| left.abs_diff(value) > self.credit.slopes.rate.into();
        out.extend(left.filter(jumps).map(|left| (before, left)));
        out.push((at, value));
    }

    fn advance(&mut self, to: Instant, gates: Option<&Gates>) -> i128 {
        self.credit.advance(to, self.head, gates);
        self.credit.credit.picobits()
    }
}
