//! The selection of the next frame: gates, credit, eligibility, weights, hold.

use tsn::QUEUES;
use tsn::ets::Ets;
use tsn::gates::Hold;
use wire::{Duration, Instant};

use super::super::frame::{self, GAP, HEADER, PREAMBLE};
use super::config::{Algorithm, Config, Guard, Preemption};
use super::credit::{ClassCredit, CreditCourse};
use super::queues::Queues;
use super::shaper::{Shaper, Transmits};

/// The state of all classes for the selection.
#[derive(Debug)]
pub(super) struct Selection {
    /// Whether a class has a shaper or eligibility times.
    shapes: bool,
    credits: [Option<ClassCredit>; QUEUES],
    /// Custom shapers ([`Algorithm::Own`]) by class.
    own: [Option<Box<dyn Shaper>>; QUEUES],
    ets: Option<Ets>,
    /// For each class, start and end of the time for which the shaper delayed the first frame.
    shaped: [Option<(Instant, Instant)>; QUEUES],
    /// Whether the partner supports fragments.
    pub preempts: bool,
}

/// When the gate of `class` permits a transmission of `duration`, from `now` on. `None`: never.
pub(super) fn gate_permits(
    config: &Config,
    class: usize,
    now: Instant,
    duration: Duration,
) -> Option<Instant> {
    let Some(gates) = &config.gates else { return Some(now) };
    let needed = match config.guard {
        Guard::FrameLength => duration,
        Guard::MaximumFrame(payload) => {
            let longest = PREAMBLE + frame::length(HEADER + payload, true);
            duration.max(config.rate.duration(longest))
        }
    };
    gates.earliest_start(class, now, needed)
}

impl Selection {
    pub(super) fn new(config: &Config) -> Self {
        let shapes = config.classes.iter().any(|class| {
            !matches!(class.algorithm, Algorithm::StrictPriority | Algorithm::Ets { .. })
        });
        Self {
            shapes,
            credits: ClassCredit::from_config(config),
            own: std::array::from_fn(|class| match config.classes[class].algorithm {
                Algorithm::Own(new) => Some(new(config, class)),
                _ => None,
            }),
            ets: config.ets().expect("checked before"),
            shaped: [None; QUEUES],
            preempts: config.preemption.is_some_and(|preemption| !preemption.verify.enabled),
        }
    }

    /// Preemption, if it is active.
    pub(super) fn active_preemption<'a>(&self, config: &'a Config) -> Option<&'a Preemption> {
        config.preemption.as_ref().filter(|_| self.preempts)
    }

    /// The classes whose frames cannot be interrupted.
    pub(super) fn express(&self, config: &Config) -> u8 {
        self.active_preemption(config).map_or(0xff, |preemption| preemption.express)
    }

    pub(super) fn is_express(&self, config: &Config, class: usize) -> bool {
        self.express(config) >> class & 1 != 0
    }

    /// Whether preemptable frames are held at `now`, and until when.
    pub(super) fn hold(&self, config: &Config, now: Instant) -> Hold {
        match (self.active_preemption(config), &config.gates) {
            (Some(preemption), Some(gates)) => gates.hold_until(now, &preemption.advance),
            _ => Hold::Released { until: None },
        }
    }

    fn shaper(&mut self, class: usize) -> Option<&mut dyn Shaper> {
        match &mut self.credits[class] {
            Some(credit) => Some(credit),
            None => self.own[class].as_deref_mut().map(|own| own as &mut dyn Shaper),
        }
    }

    /// Updates the shaper of a class to `now`, before its queue or the line changes.
    pub(super) fn advance(&mut self, config: &Config, queues: &Queues, class: usize, now: Instant) {
        if let Some(shaper) = self.shaper(class) {
            let head = queues.head(class).map(|head| head.duration);
            shaper.advance(now, head, config.gates.as_ref());
        }
    }

    /// Handles a change of the gates' clock; all shapers must be up to date.
    pub(super) fn clock_changed(&mut self, config: &Config) {
        for class in 0..QUEUES {
            if let Some(shaper) = self.shaper(class) {
                shaper.clock_changed(config.gates.as_ref());
            }
        }
    }

    /// When the first frame of a class may start, from `now` on; `None`: never.
    pub(super) fn start(
        &mut self,
        config: &Config,
        queues: &Queues,
        class: usize,
        now: Instant,
    ) -> Option<Instant> {
        let duration = queues.head(class)?.duration;
        if !self.shapes {
            return gate_permits(config, class, now, duration);
        }
        self.advance(config, queues, class, now);
        let ready = match self.shaper(class) {
            Some(shaper) => shaper.ready(now, duration, config.gates.as_ref())?,
            None => config.clock.global(queues.head(class)?.eligible).max(now),
        };
        if ready > now {
            let from = self.shaped[class].map_or(now, |(from, _)| from);
            self.shaped[class] = Some((from, ready));
        }
        gate_permits(config, class, ready, duration)
    }

    /// Whether some classes share bandwidth by weights.
    pub(super) fn takes_turns(&self) -> bool {
        self.ets.is_some()
    }

    /// The class with a weight that sends next; see [`Ets::select`].
    pub(super) fn turn(&mut self, heads: [Option<usize>; QUEUES]) -> Option<usize> {
        self.ets.as_mut()?.select(heads)
    }

    /// Start and end of the time for which the shaper delayed the frame that starts now.
    pub(super) fn shaped(&mut self, class: usize) -> Option<(Instant, Instant)> {
        self.shaped[class].take()
    }

    /// Handles the start of a frame of `class`, which takes `bytes` of the line and ends at `end`.
    pub(super) fn begins(
        &mut self,
        config: &Config,
        class: usize,
        now: Instant,
        end: Instant,
        bytes: usize,
    ) {
        if let Some(shaper) = self.shaper(class) {
            let [preamble, gap] = [PREAMBLE, GAP].map(|bytes| config.rate.duration(bytes));
            shaper.transmits(Transmits { from: now, preamble, until: end, gap });
        }
        if let Some(ets) = &mut self.ets {
            ets.sent(class, bytes);
        }
    }

    /// Handles the interruption of the frame of `class` on the line.
    pub(super) fn stops(&mut self, class: usize, now: Instant) {
        if let Some(shaper) = self.shaper(class) {
            shaper.stops(now);
        }
    }

    /// Handles the continuation of the interrupted frame of `class` from `from` until `end`.
    pub(super) fn goes_on(&mut self, config: &Config, class: usize, from: Instant, end: Instant) {
        if let Some(shaper) = self.shaper(class) {
            let gap = config.rate.duration(GAP);
            shaper.transmits(Transmits { from, preamble: Duration::ZERO, until: end, gap });
        }
    }

    pub(super) fn credit(&self, class: usize) -> Option<f64> {
        self.credits[class].as_ref().map(ClassCredit::bits)
    }

    pub(super) fn credit_course(&self, queues: &Queues, class: usize) -> Option<CreditCourse> {
        let head = queues.head(class).map(|head| head.duration);
        self.credits[class].as_ref().map(|credit| CreditCourse::new(credit, head))
    }

    pub(super) fn credit_extremes(&self, class: usize) -> Option<[i128; 2]> {
        self.credits[class].as_ref().map(ClassCredit::extremes)
    }
}
