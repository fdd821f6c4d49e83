//! The classes of a port: what delays their frames, from the configuration of the port.

use super::service::{Class, Credit, Higher, LIMIT, Load, Open, Weights, Windows};
use sim::ethernet::frame::{FCS, GAP, HEADER, MINIMUM, MTU, PREAMBLE, TAG};
use sim::ethernet::port::{Algorithm, Config, Counted, Guard, RateStep};
use tsn::preemption::{CONTINUATION_PREAMBLE, MCRC};
use tsn::{CycleWindows, QUEUES};
use wire::Instant;

/// The frames of a port by class.
pub struct Classes<'a> {
    /// The port.
    pub config: &'a Config,
    /// The frames of each class.
    pub loads: [Load; QUEUES],
    /// The longest frame of each class in bytes on the line, without gap; 0: no frames.
    pub longest: [usize; QUEUES],
    /// The longest time from arrival to transmission of each class, as far as it is known.
    pub waits: [u64; QUEUES],
    /// Whether preemption is active; before that, all frames are whole.
    pub preempts: bool,
    /// By how much clocks run fast or slow, in parts per million.
    pub drift: u64,
    /// Rate limits of the port.
    pub steps: Vec<RateStep>,
    /// Whether a stream gate puts frames of one flow into several classes.
    pub spread: bool,
}

/// The time of a byte at a port, at the slowest of its rate steps, in picoseconds.
pub fn per_byte(config: &Config, steps: &[RateStep]) -> u64 {
    let slowest = steps.iter().chain(&config.rate_steps).map(|step| step.bits_per_second).min();
    let slowest = slowest.map_or(0, |bits| 8_000_000_000_000u64.div_ceil(bits.max(1)));
    slowest.max(config.rate.ps_per_byte())
}

/// The time of a byte at a port, at the fastest of its rate steps, in picoseconds.
pub fn least_per_byte(config: &Config, steps: &[RateStep]) -> u64 {
    let fastest = |steps: &[RateStep]| {
        // Before the first step, frames pass at the rate of the line.
        let limited = steps.first().is_some_and(|step| step.at == Instant::ZERO);
        let fastest = steps.iter().map(|step| step.bits_per_second).max();
        fastest.filter(|_| limited).map_or(0, |bits| 8_000_000_000_000 / bits.max(1))
    };
    fastest(steps).max(fastest(&config.rate_steps)).max(config.rate.ps_per_byte())
}

impl Classes<'_> {
    fn time(&self, bytes: usize) -> u64 {
        self.config.rate.duration(bytes).as_ps()
    }

    /// The time that bytes, preamble and gap included, occupy the port, at its slowest rate step.
    pub fn work(&self, bytes: usize) -> u64 {
        per_byte(self.config, &self.steps) * bytes as u64
    }

    fn express(&self) -> Option<u8> {
        self.config.preemption.filter(|_| self.preempts).map(|preemption| preemption.express)
    }

    /// Whether express frames may cut frames of a class.
    pub fn is_cut(&self, class: usize) -> bool {
        self.express().is_some_and(|express| express >> class & 1 == 0)
    }

    /// The pair of cyclic queues of a class.
    fn pair(&self, class: usize) -> Option<[usize; 2]> {
        super::flows::cyclic(self.config, class).map(|pair| pair.classes.map(usize::from))
    }

    /// Whether frames of `other` go before frames of `class`, both waiting.
    fn precedes(&self, other: usize, class: usize) -> bool {
        let weighted =
            |class: usize| matches!(self.config.classes[class].algorithm, Algorithm::Ets { .. });
        let queues = |class: usize| self.pair(class).unwrap_or([class; 2]).into_iter();
        match (self.is_cut(other), self.is_cut(class)) {
            (false, true) => true,
            (true, false) => false,
            // Classes with weights take turns, after all others.
            _ if weighted(class) => true,
            _ if weighted(other) => false,
            _ => queues(other).max() > queues(class).min(),
        }
    }

    /// The time for which a frame of another class that has begun occupies the line.
    fn block(&self, class: usize) -> u64 {
        let lower = (0..QUEUES).filter(|other| *other != class && self.longest[*other] > 0);
        let lower = lower.filter(|other| !self.precedes(*other, class));
        lower.map(|other| self.occupies(other, class)).max().unwrap_or(0)
    }

    fn occupies(&self, other: usize, class: usize) -> u64 {
        let whole = self.longest[other];
        let bytes = match self.config.preemption {
            Some(preemption) if self.is_cut(other) && !self.is_cut(class) => {
                let fragment = preemption.fragment;
                let unsplit = PREAMBLE + fragment.longest_unsplittable();
                let begin = PREAMBLE + fragment.min_sent() + MCRC;
                whole.min(unsplit.max(begin))
            }
            _ => whole,
        };
        self.work(bytes + GAP)
    }

    /// The open windows of a class without margins: none if always open.
    fn gate(&self, class: usize) -> Result<Option<CycleWindows>, String> {
        let Some(gates) = &self.config.gates else { return Ok(None) };
        // One of two cyclic queues is always open.
        if self.pair(class).is_some() {
            return Ok(None);
        }
        let windows = gates.cycle_windows(class).ok_or("its gate control list changes")?;
        let whole = windows.open.first().is_some_and(|(from, to)| *to - *from == windows.cycle);
        Ok((!whole).then_some(windows))
    }

    /// The windows in which frames of at most `frame` bytes of a class may start.
    fn windows(&self, class: usize, frame: usize) -> Result<Option<Windows>, String> {
        let Some(gate) = self.gate(class)? else { return Ok(None) };
        let frame = match self.config.guard {
            Guard::FrameLength => frame,
            Guard::MaximumFrame(payload) => frame.max(PREAMBLE + HEADER + TAG + payload + FCS),
        };
        let blocks = self.block(class);
        let mut any = false;
        let margin = self.time(frame);
        let drifted = |span: u64| span + (span * self.drift).div_ceil(1_000_000);
        let mut spans = Vec::new();
        let holds = if self.is_cut(class) { self.holds()? } else { Vec::new() };
        for (from, to) in &gate.open {
            let (from, to) = (from.as_ps(), to.as_ps());
            let crosses = self.crosses(class, from, gate.cycle.as_ps())?;
            any |= self.overlaps(class, (from, to))?;
            let start = if crosses { from + blocks } else { from };
            let parts = without((start, to), &holds, gate.cycle.as_ps());
            for (start, to) in parts {
                // Windows are shorter, and the times between them longer, by a drifting clock.
                let end = to.saturating_sub(drifted(margin) + to * self.drift / 1_000_000);
                if end > start {
                    spans.push((start, end));
                }
            }
        }
        let cycle = drifted(gate.cycle.as_ps());
        Ok(Some(Windows { cycle, spans, blocks: any, margin: drifted(margin) }))
    }

    /// Whether a frame of another class may be on the line when the gate of `class` opens at `at`.
    fn crosses(&self, class: usize, at: u64, cycle: u64) -> Result<bool, String> {
        if self.is_cut(class) {
            return Ok(true);
        }
        if self.is_held(class, at, cycle)? {
            return Ok(false);
        }
        self.any_other(class, |open, length| {
            let at = at % cycle;
            length != cycle
                || open
                    .iter()
                    .any(|(from, to)| [at, at + cycle].iter().any(|at| from < at && at < to))
        })
    }

    /// Whether all frames that could block an express class are preemptable, and are held when its
    /// gate opens at `at`.
    fn is_held(&self, class: usize, at: u64, cycle: u64) -> Result<bool, String> {
        let Some(preemption) = self.config.preemption.filter(|_| self.preempts) else {
            return Ok(false);
        };
        let mut lower = (0..QUEUES).filter(|other| *other != class && self.longest[*other] > 0);
        let all_cut = lower.all(|other| self.precedes(other, class) || self.is_cut(other));
        let early = preemption.advance.hold.as_ps() >= self.block(class);
        let holds = self.holds()?;
        let held = [1, 2].iter().any(|cycles| {
            let at = at % cycle + cycles * cycle;
            holds.iter().any(|(from, to)| *from < at && at < *to)
        });
        Ok(all_cut && early && held)
    }

    /// Whether a frame of another class may begin in a window of `class`.
    fn overlaps(&self, class: usize, window: (u64, u64)) -> Result<bool, String> {
        self.any_other(class, |open, cycle| {
            let meets = |shift: u64, (from, to): &(u64, u64)| {
                *from < window.1 + shift && window.0 + shift < *to
            };
            open.iter().any(|span| {
                meets(0, span) || meets(cycle, span) || meets(0, &(span.0 + cycle, span.1 + cycle))
            })
        })
    }

    fn any_other(
        &self,
        class: usize,
        is_so: impl Fn(&[(u64, u64)], u64) -> bool,
    ) -> Result<bool, String> {
        for other in (0..QUEUES).filter(|other| *other != class && self.longest[*other] > 0) {
            if self.precedes(other, class) {
                continue;
            }
            let so = match self.gate(other)? {
                None => true,
                Some(gate) => {
                    let open = gate.open.iter().map(|(from, to)| (from.as_ps(), to.as_ps()));
                    is_so(&open.collect::<Vec<_>>(), gate.cycle.as_ps())
                }
            };
            if so {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When preemptable frames are held, with the advances.
    fn holds(&self) -> Result<Vec<(u64, u64)>, String> {
        let (Some(gates), Some(preemption)) = (&self.config.gates, &self.config.preemption) else {
            return Ok(Vec::new());
        };
        let holds = gates.cycle_holds().ok_or("its gate control list changes")?;
        let (cycle, advance) = (holds.cycle.as_ps(), preemption.advance);
        let span = |(from, to): &(wire::Duration, wire::Duration)| {
            let from = (from.as_ps() + cycle).saturating_sub(advance.hold.as_ps());
            (from, to.as_ps() + cycle - advance.release.as_ps().min(to.as_ps()))
        };
        Ok(holds.open.iter().map(span).filter(|(from, to)| from < to).collect())
    }

    fn open(&self, gate: &CycleWindows, class: usize) -> Open {
        let spans = gate.open.iter().map(|(from, to)| (from.as_ps(), to.as_ps())).collect();
        // A frame that was cut may end after its window.
        let longest = if self.is_cut(class) { self.longest[class] } else { 0 } + GAP;
        let (cycle, longest) = (gate.cycle.as_ps(), self.work(longest));
        Open { cycle: cycle - cycle * self.drift / 1_000_000, spans, longest }
    }

    fn longest_hold(&self) -> Result<u64, String> {
        Ok(self.holds()?.iter().map(|(from, to)| to - from).max().unwrap_or(0))
    }

    /// Whether the gate of `other` is open whenever the gate of `class` is.
    fn covers(&self, other: usize, class: usize) -> Result<bool, String> {
        let (Some(outer), inner) = (self.gate(other)?, self.gate(class)?) else { return Ok(true) };
        let Some(inner) = inner else { return Ok(false) };
        if outer.cycle != inner.cycle || outer.base != inner.base {
            return Ok(false);
        }
        let cycle = outer.cycle;
        Ok(inner.open.iter().all(|(from, to)| {
            outer.open.iter().any(|(start, end)| {
                (start <= from && to <= end) || (*start <= *from + cycle && *to + cycle <= *end)
            })
        }))
    }

    /// Whether the gates of two classes are never open together.
    fn excludes(&self, other: usize, class: usize) -> Result<bool, String> {
        let (Some(a), Some(b)) = (self.gate(other)?, self.gate(class)?) else { return Ok(false) };
        if a.cycle != b.cycle || a.base != b.base {
            return Ok(false);
        }
        let meets = |(from, to): &(wire::Duration, wire::Duration)| {
            b.open.iter().any(|(start, end)| {
                let cycle = a.cycle;
                (start < to && from < end)
                    || (*start + cycle < *to && *from < *end + cycle)
                    || (*start < *to + cycle && *from + cycle < *end)
            })
        };
        Ok(!a.open.iter().any(meets))
    }

    /// The credit of a class.
    pub fn credit(&self, class: usize) -> Option<Credit> {
        let Algorithm::CreditBased(shaper) = &self.config.classes[class].algorithm else {
            return None;
        };
        let rate = self.config.rate.bits_per_second();
        let mut slope = (shaper.idle_slope, rate);
        if let Ok(Some(gate)) = self.gate(class) {
            let open: u64 = gate.open.iter().map(|(from, to)| (*to - *from).as_ps()).sum();
            let scaled = u128::from(shaper.idle_slope) * u128::from(gate.cycle.as_ps());
            let scaled = scaled / u128::from(open.max(1));
            slope.0 = u64::try_from(scaled).ok().filter(|idle| *idle <= rate).unwrap_or(slope.0);
        }
        let uncounted = match shaper.counted {
            Counted::WithGap => 0,
            Counted::FrameOnly => self.time(PREAMBLE + GAP),
        };
        Some(Credit { slope, range: 0, uncounted })
    }

    /// The bytes of a frame that count for credit.
    pub fn counted(&self, class: usize, on_line: usize) -> u64 {
        match &self.config.classes[class].algorithm {
            Algorithm::CreditBased(shaper) if shaper.counted == Counted::FrameOnly => {
                self.time(on_line - PREAMBLE)
            }
            _ => self.work(on_line + GAP),
        }
    }

    /// The range of the credit of a higher class, from its own waits.
    pub fn range(&self, class: usize) -> Option<Credit> {
        let credit = self.credit(class)?;
        let (idle, rate) = credit.slope;
        let part = |time: u64, of: u64| {
            let part = (u128::from(time) * u128::from(of)).div_ceil(u128::from(rate));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let Algorithm::CreditBased(shaper) = &self.config.classes[class].algorithm else {
            return None;
        };
        let own = self.class(class).ok()?;
        let highest = own.blocked(&credit)?;
        let longest = self.work(self.longest[class] + GAP);
        let range = part(highest, idle) + part(longest, rate - idle) + credit.uncounted;
        // In windows credit rises faster, and in the long run as without.
        let window = match self.gate(class) {
            Ok(Some(gate)) => gate.open.iter().map(|(from, to)| (*to - *from).as_ps()).max(),
            _ => None,
        };
        let range = range + window.map_or(0, |window| part(window, idle));
        // The line carries preamble and gap, too: up to 84 bytes for 64.
        let (more, less) = match shaper.counted {
            Counted::WithGap => (1, 1),
            Counted::FrameOnly => ((PREAMBLE + MINIMUM + GAP) as u64, MINIMUM as u64),
        };
        let slope = ((shaper.idle_slope * more).div_ceil(less).min(rate), rate);
        Some(Credit { range: (range * more).div_ceil(less), slope, ..credit })
    }

    /// The weights of two classes that share the line by weights.
    fn weights(&self, class: usize, other: usize) -> Option<Weights> {
        let weight = |class: usize| match self.config.classes[class].algorithm {
            Algorithm::Ets { weight } => Some(u64::from(weight)),
            _ => None,
        };
        let (own, others) = (weight(class)?, weight(other)?);
        let least = (0..QUEUES).filter_map(weight).min()?;
        // The class with the least weight may send one largest frame in a round.
        let largest = (PREAMBLE + HEADER + TAG + MTU + FCS + GAP) as u64;
        let quantum = |weight: u64| self.work((largest * weight / least) as usize);
        let longest = self.work(self.longest[other] + GAP);
        let (own, quantum) = (quantum(own), quantum(others));
        let rounds = 3 + self.work(self.longest[class] + GAP) / own.max(1);
        Some(Weights { own, quantum, longest, rounds })
    }

    /// Refuses combinations whose bounds were found below simulated latencies.
    fn covered(&self, class: usize) -> Result<(), String> {
        let sends = |class: &usize| self.longest[*class] > 0;
        let mut used = (0..QUEUES).filter(sends);
        let shaped = used
            .any(|class| matches!(self.config.classes[class].algorithm, Algorithm::CreditBased(_)));
        let is_cyclic = (0..QUEUES).filter(sends).any(|class| self.pair(class).is_some());
        let others = self.config.gates.is_some() || self.preempts || shaped || is_cyclic;
        let changes = !self.steps.is_empty() || !self.config.rate_steps.is_empty();
        if changes && others {
            let what = "gates, preemption, and credit-based or cyclic queues";
            return Err(format!(
                "its line changes its rate, which has no bound together with {what}"
            ));
        }
        if self.spread && shaped {
            return Err(
                "a stream gate changes the priority of frames to credit-based classes".into()
            );
        }
        // Express frames go first whenever verification is tried again.
        let express = self.config.preemption.filter(|_| !self.preempts).map(|own| own.express);
        let preemptable = express.is_some_and(|express| express >> class & 1 == 0);
        let behind = |other: usize| express.is_some_and(|express| express >> other & 1 == 1);
        if preemptable && (0..class).filter(sends).any(behind) {
            return Err(
                "the other end of its line does not answer, so that preemption is not verified"
                    .into(),
            );
        }
        if self.preempts && self.pair(class).is_some() {
            return Err("its cyclic queues are preempted or preempt others".into());
        }
        Ok(())
    }

    /// All that may delay the frames of a class.
    ///
    /// # Errors
    /// Why the port is not covered.
    pub fn class(&self, class: usize) -> Result<Class, String> {
        if matches!(self.config.classes[class].algorithm, Algorithm::Own(_)) {
            return Err("its shaper is a custom one".into());
        }
        self.covered(class)?;
        let cycle = super::flows::cyclic(self.config, class).map(|pair| pair.cycle.as_ps());
        let mut higher = Vec::new();
        let mut margin = self.longest[class];
        let others = (0..QUEUES).filter(|other| *other != class && self.longest[*other] > 0);
        for other in others.filter(|other| self.precedes(*other, class)) {
            if self.excludes(other, class)? {
                continue;
            }
            // Frames of these classes are sent whenever frames of `class` could be: they do not
            // wait for credit or for the next cycle.
            let shaped = matches!(self.config.classes[other].algorithm, Algorithm::CreditBased(_))
                || self.pair(other).is_some();
            let longer = margin.max(self.longest[other]);
            let serves = || {
                let windows = self.windows(class, longer)?;
                Ok::<_, String>(windows.is_none_or(|windows| windows.share() > 0.0))
            };
            let inside = !shaped && cycle.is_none() && self.covers(other, class)? && serves()?;
            if inside {
                margin = longer;
            }
            let cut = match self.is_cut(class) && !self.is_cut(other) {
                true => self.time(MCRC + GAP + CONTINUATION_PREAMBLE),
                false => 0,
            };
            higher.push(Higher {
                load: self.loads[other].clone(),
                before: if inside { 0 } else { self.waits[other].min(LIMIT) },
                wait: self.waits[other].min(LIMIT),
                credit: self.range(other),
                cut,
                open: self.gate(other)?.map(|gate| self.open(&gate, other)),
                weights: self.weights(class, other),
                turns: None,
            });
        }
        Ok(Class {
            own: self.loads[class].clone(),
            higher,
            peers: Vec::new(),
            block: self.block(class),
            windows: self.windows(class, margin)?,
            credit: self.credit(class),
            held: if self.is_cut(class) { self.longest_hold()? } else { 0 },
            cycle,
        })
    }
}

/// The parts of a window outside of spans that repeat every `cycle`.
fn without(window: (u64, u64), holes: &[(u64, u64)], cycle: u64) -> Vec<(u64, u64)> {
    let mut parts = vec![window];
    for hole in holes {
        for shift in 0..4 {
            let (from, to) = (hole.0 + shift * cycle, hole.1 + shift * cycle);
            // Holes are given one cycle late.
            let (from, to) = (from.saturating_sub(2 * cycle), to.saturating_sub(2 * cycle));
            if from == to {
                continue;
            }
            parts = parts
                .into_iter()
                .flat_map(|(start, end)| [(start, end.min(from)), (start.max(to), end)])
                .filter(|(start, end)| start < end)
                .collect();
        }
    }
    parts
}
