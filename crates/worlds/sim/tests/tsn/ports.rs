//! Checks of each port in any network of streams.

use super::shapers::{CreditModel, EligibilityModel};
use super::*;
use proptest::prelude::*;
use sim::ethernet::frame::GAP;
use sim::ethernet::port;
use sim::ethernet::port::Algorithm;
use tsn::gates::Hold;
use tsn::preemption::{CONTINUATION_PREAMBLE, MCRC};

/// A frame at a port: when the node received the frame, when it entered its queue, and its
/// transmission.
#[derive(Clone, Debug)]
pub struct Passed {
    pub received: Instant,
    pub entered: Instant,
    pub sent: Transmission,
    pub fragments: Vec<usize>,
}

/// The frames that a port sent, in order.
#[derive(Debug)]
pub struct PortLog {
    pub config: port::Config,
    pub frames: Vec<Passed>,
    /// Start, end and kind of each transmission on the line.
    pub busy: Vec<(Instant, Instant, Carried)>,
}

impl PortLog {
    /// The class of a frame at this port. In a pair of cyclic queues, the class that was filled.
    fn class(&self, passed: &Passed) -> usize {
        let tag = passed.sent.frame.tag.expect("stations tag");
        let class = usize::from(self.config.queue_of_priority[usize::from(tag.pcp)]);
        let pair = self.config.cqf.iter().find(|pair| pair.classes.contains(&(class as u8)));
        let clock = self.config.gates.as_ref().map(|gates| gates.clock()).unwrap_or_default();
        pair.map_or(class, |pair| usize::from(pair.queue_at(&clock, passed.received)))
    }

    fn algorithm(&self, class: usize) -> &Algorithm {
        &self.config.classes[class].algorithm
    }

    /// Checks that frames and fragments have a gap between them, that none starts before its frame
    /// entered the queue, and that each takes the time of its bytes and interruptions.
    pub fn one_at_a_time(&self) -> Result<(), TestCaseError> {
        let rate = self.config.rate;
        for pair in self.busy.windows(2) {
            prop_assert!(pair[1].0 >= pair[0].1 + rate.duration(GAP), "{pair:?}");
        }
        let busy = self.busy.iter().filter(|(.., carried)| *carried != Carried::Control);
        let total = busy.fold(0, |sum, (from, until, _)| sum + until.since(*from).as_ps());
        let mut expected = 0;
        for Passed { entered, sent, fragments, .. } in &self.frames {
            prop_assert!(sent.start >= *entered);
            let extra = rate.duration(fragments.len() * (MCRC + CONTINUATION_PREAMBLE));
            expected += (sent.frame.duration(rate) + extra).as_ps();
            if fragments.is_empty() {
                prop_assert_eq!(sent.end, sent.start + sent.frame.duration(rate));
            }
            // 60 bytes and an mCRC before a cut, 64 with the FCS after it (802.3-2022, 99.4.4).
            prop_assert!(fragments.iter().all(|bytes| *bytes >= 60), "{fragments:?}");
            let rest = sent.frame.length() - fragments.iter().sum::<usize>();
            prop_assert!(rest >= 64, "{rest} bytes are left after {fragments:?}");
        }
        if self.frames.iter().all(|passed| passed.sent.end != UNFINISHED) {
            prop_assert_eq!(total, expected);
        }
        Ok(())
    }

    /// Checks that frames without interruption are on the line only in their window by the node's
    /// clock.
    pub fn windows(&self) -> Result<(), TestCaseError> {
        let Some(gates) = &self.config.gates else { return Ok(()) };
        for passed in self.frames.iter().filter(|passed| passed.fragments.is_empty()) {
            let (class, sent) = (self.class(passed), &passed.sent);
            let last = Instant::from_ps(sent.end.as_ps() - 1);
            prop_assert!(gates.is_open(class, sent.start) && gates.is_open(class, last));
            let closes = gates.next_change(class, sent.start);
            prop_assert!(closes.is_none_or(|at| at >= sent.end), "{sent:?} ends after {closes:?}");
        }
        Ok(())
    }

    /// Checks that the port sends the first frame of a class as soon as line, gate, shaper and
    /// higher classes permit it, and not earlier. Classes with weights are below all others.
    pub fn selection(&self) -> Result<(), TestCaseError> {
        let gap = self.config.rate.duration(GAP);
        let mut queues: [Vec<&Passed>; 8] = Default::default();
        for passed in self.frames.iter().rev() {
            queues[self.class(passed)].push(passed);
        }
        let mut credits = [CreditModel::default(); 8];
        let mut free = Instant::ZERO;
        for passed in &self.frames {
            let (class, start) = (self.class(passed), passed.sent.start);
            for (other, queue) in queues.iter().enumerate() {
                let Some(head) = queue.last() else { continue };
                let Some(earliest) = self.earliest(other, head, free, &mut credits) else {
                    continue;
                };
                if other == class {
                    prop_assert_eq!(start, earliest, "class {} late or too early", class);
                } else {
                    prop_assert!(earliest >= start, "class {other} could send at {earliest}");
                    // A frame that enters at the instant of the decision may be too late for it.
                    let missed = self.below(other, class) || head.entered == start;
                    prop_assert!(missed || earliest > start, "{class} before {other} at {start}");
                }
            }
            let taken = queues[class].pop().expect("one was sent");
            if let Algorithm::CreditBased(shaper) = self.algorithm(class) {
                credits[class].spend(shaper, &passed.sent);
            }
            if !matches!(self.algorithm(class), Algorithm::Ats(_)) {
                let next = queues[class].last();
                prop_assert!(next.is_none_or(|next| next.entered >= taken.entered));
            }
            free = passed.sent.end + gap;
        }
        Ok(())
    }

    /// Whether `class` may be sent after `than`.
    fn below(&self, class: usize, than: usize) -> bool {
        let [weights, of_other] =
            [class, than].map(|class| matches!(self.algorithm(class), Algorithm::Ets { .. }));
        if weights == of_other { weights || class < than } else { weights }
    }

    /// When the first frame of a class could start after `free`. `None`: never, or unknown.
    fn earliest(
        &self,
        class: usize,
        head: &Passed,
        free: Instant,
        credits: &mut [CreditModel; 8],
    ) -> Option<Instant> {
        let from = head.entered.max(free);
        let duration = head.sent.frame.duration(self.config.rate);
        match (self.algorithm(class), &self.config.gates) {
            (Algorithm::Ats(_), _) | (Algorithm::CreditBased(_), Some(_)) => None,
            (Algorithm::CreditBased(shaper), None) => {
                Some(credits[class].ready(shaper, head.entered).max(from))
            }
            (_, None) => Some(from),
            (_, Some(gates)) => gates.earliest_start(class, from, duration),
        }
    }

    /// Checks that no frame is sent before the scheduler of its stream alone would permit it.
    pub fn eligibility(&self) -> Result<(), TestCaseError> {
        let mut schedulers = BTreeMap::<_, EligibilityModel>::new();
        let mut frames: Vec<_> = self.frames.iter().collect();
        frames.sort_by_key(|passed| passed.received);
        for passed in frames {
            let Algorithm::Ats(shaper) = self.algorithm(self.class(passed)) else { continue };
            let frame = &passed.sent.frame;
            let scheduler = schedulers
                .entry(StreamId::of_frame(frame.id))
                .or_insert_with(|| EligibilityModel::new(shaper));
            let eligible = scheduler.admit(shaper, passed.received, frame);
            prop_assert!(i128::from(passed.sent.start.as_ps()) >= eligible, "{passed:?}");
        }
        Ok(())
    }

    /// Checks that with preemption the first frame of the highest class, which is express, waits
    /// for at most 143 bytes.
    pub fn express(&self) -> Result<(), TestCaseError> {
        let highest = |passed: &&Passed| self.class(passed) == 7;
        let mut free = Instant::ZERO;
        for passed in self.frames.iter().filter(highest) {
            let waited = passed.sent.start.since(passed.entered.max(free));
            prop_assert!(waited <= self.config.rate.duration(143), "it waits {waited}");
            free = passed.sent.end + self.config.rate.duration(GAP);
        }
        Ok(())
    }

    /// Checks holds: the port begins or continues no preemptable frame, and a frame that is on the
    /// line when a hold begins ends within 143 bytes, gap included. The world ended at `end`.
    pub fn hold(&self, end: Instant) -> Result<(), TestCaseError> {
        let (Some(preemption), Some(gates)) = (&self.config.preemption, &self.config.gates) else {
            return Ok(());
        };
        let longest = self.config.rate.duration(143 - GAP);
        for (from, until, _) in
            self.busy.iter().filter(|(.., carried)| *carried == Carried::Preemptable)
        {
            let begins = match gates.hold_until(*from, &preemption.advance) {
                Hold::Held { .. } => {
                    return Err(TestCaseError::fail(format!("it begins at {from} although held")));
                }
                Hold::Released { until: Some(begins) } if begins < *until => begins,
                Hold::Released { .. } => continue,
            };
            let last = begins + longest;
            let held = gates.hold_until(begins, &preemption.advance);
            let lasts = held.until().is_none_or(|released| released > last);
            prop_assert!(
                !lasts || last > end || *until <= last,
                "until {until} although held from {begins}"
            );
        }
        Ok(())
    }

    /// Checks that without gates and shapers the line is idle only if no frame waits and no frame
    /// is interrupted.
    pub fn idle_line(&self) -> Result<(), TestCaseError> {
        let shaped = |class: &port::Class| {
            matches!(class.algorithm, Algorithm::CreditBased(_) | Algorithm::Ats(_))
        };
        if self.config.gates.is_some() || self.config.classes.iter().any(shaped) {
            return Ok(());
        }
        let mut free = Instant::ZERO;
        for (from, until, _) in &self.busy {
            if *from > free {
                let waits = |passed: &Passed| {
                    let whole = passed.entered < *from && passed.sent.start >= *from;
                    whole || passed.sent.start < *from && passed.sent.end > *from
                };
                prop_assert!(!self.frames.iter().any(waits), "idle before {from}");
            }
            free = *until + self.config.rate.duration(GAP);
        }
        Ok(())
    }
}
