//! The credit of a class along time: how the port's line and gates move it.

use tsn::credit::{Credit, Slopes};
use tsn::{Gates, QUEUES};
use wire::{Duration, Instant};

use super::config::{Algorithm, Config, Counted, CreditBased};

/// The credit of one class.
#[derive(Clone, Debug)]
pub(super) struct ClassCredit {
    config: CreditBased,
    slopes: Slopes,
    credit: Credit,
    /// Until when `credit` is up to date.
    at: Instant,
    /// The class's own bits pass during this time.
    spends: (Instant, Instant),
    /// When another gate control list takes over.
    next_list: Option<Instant>,
}

impl ClassCredit {
    /// By class: its credit, if the class has a credit-based shaper.
    pub fn of(config: &Config) -> [Option<Self>; QUEUES] {
        std::array::from_fn(|class| {
            let Algorithm::CreditBased(shaper) = config.classes[class].algorithm else {
                return None;
            };
            let rate = config.rate.bits_per_second();
            let slopes = Slopes::new(shaper.idle_slope, rate).expect("checked before");
            let mut credit = Self {
                config: shaper,
                slopes,
                credit: Credit::new(slopes),
                at: Instant::ZERO,
                spends: (Instant::ZERO, Instant::ZERO),
                next_list: None,
            };
            credit.take_list(class, config.gates.as_ref());
            Some(credit)
        })
    }

    /// Sets the slopes by the list that runs now.
    fn take_list(&mut self, class: usize, gates: Option<&Gates>) {
        let Some(gates) = gates else { return };
        let (open, cycle) = gates.open_share_of(class, self.at);
        self.credit.set_slopes(self.slopes.scaled(open, cycle).unwrap_or(self.slopes));
        self.next_list = gates.next_list(self.at);
    }

    /// Brings the credit up to `now`; until then nothing has changed but time. `head` is the
    /// duration of the next frame if one waits.
    pub fn advance(
        &mut self,
        class: usize,
        now: Instant,
        head: Option<Duration>,
        gates: Option<&Gates>,
    ) {
        while let Some(change) = self.next_list.filter(|change| *change <= now) {
            self.advance_within_list(class, change.max(self.at), head, gates);
            self.take_list(class, gates);
        }
        self.advance_within_list(class, now, head, gates);
    }

    fn advance_within_list(
        &mut self,
        class: usize,
        now: Instant,
        head: Option<Duration>,
        gates: Option<&Gates>,
    ) {
        let (from, until) = self.spends;
        self.gain(class, now.min(from), head, gates);
        if self.at < until && self.at < now {
            let to = now.min(until);
            self.credit.spend(to.since(self.at));
            self.at = to;
        }
        self.gain(class, now, head, gates);
    }

    fn gain(&mut self, class: usize, to: Instant, head: Option<Duration>, gates: Option<&Gates>) {
        // No time, no change: the empty queue of a frame that passes takes no credit away.
        if to <= self.at {
            return;
        }
        let open = match gates {
            None => to.since(self.at),
            Some(gates) => gates.open_time(class, self.at, to, self.guard_band(head)),
        };
        self.credit.gain(open, head.is_some());
        self.at = to;
    }

    /// The end of a window in which credit does not rise.
    fn guard_band(&self, head: Option<Duration>) -> Duration {
        match self.config.rises_in_guard_band {
            true => Duration::ZERO,
            false => head.unwrap_or_default(),
        }
    }

    /// The first moment from `now` on at which the credit lets `head` start; it is up to date.
    pub fn ready(
        &self,
        class: usize,
        now: Instant,
        head: Duration,
        gates: Option<&Gates>,
    ) -> Option<Instant> {
        let from = now.max(self.spends.1);
        match (self.credit.until_ready(), gates) {
            (Duration::ZERO, _) => Some(now),
            (needed, None) => Some(from + needed),
            (needed, Some(gates)) => {
                gates.after_open_time(class, from, needed, self.guard_band(Some(head)))
            }
        }
    }

    /// The class's own bits pass from `from` until `until`, the gap behind them not counted.
    pub fn spend(&mut self, from: Instant, until: Instant, gap: Duration, preamble: Duration) {
        self.spends = match self.config.counted {
            Counted::WithGap => (from, until + gap),
            Counted::FrameOnly => (from + preamble, until),
        };
    }

    /// Its bits stop passing.
    pub fn stop(&mut self, now: Instant) {
        self.spends.1 = self.spends.1.min(now);
    }

    /// Credit in bits when it was last up to date.
    pub fn bits(&self) -> f64 {
        self.credit.bits()
    }

    /// The lowest and highest credit so far, in picobits.
    pub fn extremes(&self) -> [i128; 2] {
        [self.credit.lowest(), self.credit.highest()]
    }
}
