//! What holds in every network of streams, from what an observer saw.

use super::shapers::{CreditModel, EligibilityModel};
use super::*;
use proptest::prelude::*;
use sim::ethernet::frame::{GAP, HEADER, PREAMBLE, TAG};
use sim::ethernet::port::Algorithm;
use sim::ethernet::{FrameStage, Mac, port};
use sim::network::CableEnd;
use std::collections::{BTreeMap, BTreeSet};
use tsn::gates::Hold;
use tsn::preemption::{CONTINUATION_PREAMBLE, MCRC};

/// A world, and the places that its cables join.
#[derive(Clone, Debug)]
pub struct Run {
    pub config: Config,
    pub links: Vec<(Place, Place)>,
}

/// A frame at a port: when it was received by the node and entered its queue, and what became of
/// it.
#[derive(Clone, Debug)]
pub struct Passed {
    received: Instant,
    entered: Instant,
    sent: Transmission,
    fragments: Vec<usize>,
}

/// The frames that a port sent, in their order.
#[derive(Debug)]
pub struct PortLog {
    config: port::Config,
    frames: Vec<Passed>,
    /// When the line was busy, and with what.
    busy: Vec<(Instant, Instant, Carried)>,
}

/// Each frame of a stream arrived once, or was lost, or is on its way.
pub fn counted(report: &Report, seen: &Seen) -> Result<(), TestCaseError> {
    let mut arrived = BTreeMap::<StreamId, u64>::new();
    let mut ids = BTreeSet::new();
    for (_, frame) in &seen.arrived {
        prop_assert!(ids.insert(frame.id), "frame {} arrived twice", frame.id);
        *arrived.entry(StreamId::of_frame(frame.id).expect("of a stream")).or_default() += 1;
    }
    for of in &report.streams {
        prop_assert!(of.arrived + of.lost <= of.sent, "{of:?}");
        prop_assert_eq!(arrived.get(&of.stream).copied().unwrap_or(0), of.arrived);
    }
    // Nothing but full queues and windows that are too short loses frames here.
    let lost: u64 = report.streams.iter().map(|of| of.lost).sum();
    let dropped: u64 = report.queues.iter().map(|queue| queue.dropped).sum();
    prop_assert_eq!(lost, dropped);
    Ok(())
}

/// The frames of a stream, whose ids rise, arrive in their order. (Not those of cyclic queues: a
/// frame that finds no room in its cycle, since no one has counted, comes behind the next cycle's.)
pub fn in_order(run: &Run, seen: &Seen) -> Result<(), TestCaseError> {
    let network = &run.config.network;
    let ways = 0..2 * run.links.len();
    let pairs = ways.flat_map(|way| network.port(network.sender(way)).cqf.clone());
    let cyclic: BTreeSet<u8> = pairs.flat_map(|pair| pair.classes).collect();
    let mut last = BTreeMap::<StreamId, u64>::new();
    for (_, frame) in seen.arrived.iter().filter(|(_, f)| !cyclic.contains(&f.priority)) {
        let stream = StreamId::of_frame(frame.id).expect("of a stream");
        let before = last.insert(stream, frame.id);
        prop_assert!(before.is_none_or(|before| before < frame.id), "{stream:?} is out of order");
    }
    Ok(())
}

/// Where a place sends to for a station: the direction of a cable.
fn way(run: &Run, from: Place, to: usize, came: Option<usize>) -> Option<usize> {
    (0..2 * run.links.len()).filter(|way| Some(*way) != came.map(|came| came ^ 1)).find(|way| {
        let (a, b) = ends(run, *way);
        a == from && (b == Place::Station(to) || way_on(run, b, to, *way))
    })
}

fn way_on(run: &Run, at: Place, to: usize, came: usize) -> bool {
    matches!(at, Place::Bridge(_)) && way(run, at, to, Some(came)).is_some()
}

/// From and to of a direction.
fn ends(run: &Run, way: usize) -> (Place, Place) {
    let (a, b) = run.links[way / 2];
    if way.is_multiple_of(2) { (a, b) } else { (b, a) }
}

fn station_of(mac: Mac) -> usize {
    let [.., a, b] = mac.0;
    usize::from(u16::from_be_bytes([a, b])) - 1
}

/// When a frame that was sent to a bridge is received and enters the queue of its next port.
fn enters(run: &Run, sent: &Transmission, bridge: usize) -> [Instant; 2] {
    let bridge = &run.config.network.bridges[bridge];
    let known = match bridge.mode {
        // Preamble, header and tag have passed; what may be interrupted is stored.
        bridge::Mode::CutThrough if !sent.preemptable => {
            sent.start + sent.rate.duration(PREAMBLE + HEADER + TAG)
        }
        _ => sent.end,
    };
    let received = known + run.config.network.cables[0].propagation;
    [received, received + bridge.delay]
}

/// By direction of the cables: what each port was given and sent.
///
/// # Errors
/// If a frame went another way than the tree's, or a port lost one without counting it.
pub fn ports(run: &Run, report: &Report, seen: &Seen) -> Result<Vec<PortLog>, TestCaseError> {
    let network = &run.config.network;
    let mut logs: Vec<PortLog> = (0..2 * run.links.len())
        .map(|way| PortLog {
            config: network.port(network.sender(way)).clone(),
            frames: Vec::new(),
            busy: Vec::new(),
        })
        .collect();
    for (wire, from, until, carried) in &seen.busy {
        logs[*wire].busy.push((*from, *until, *carried));
    }
    // Where each frame is expected next: the direction, since when received and in the queue.
    let mut expected = BTreeMap::<u64, (usize, [Instant; 2])>::new();
    for Sent { wire, frame: sent, fragments } in &seen.sent {
        let frame = &sent.frame;
        let to = station_of(frame.destination());
        let (way, [received, entered]) = expected.remove(&frame.id).unwrap_or_else(|| {
            let from = Place::Station(station_of(frame.source()));
            (way(run, from, to, None).expect("a tree joins all"), [frame.latency.created(); 2])
        });
        prop_assert_eq!(*wire, way, "frame {} took another way", frame.id);
        if let Place::Bridge(bridge) = ends(run, *wire).1 {
            let next = self::way(run, Place::Bridge(bridge), to, Some(*wire));
            let next = next.expect("a tree joins all");
            expected.insert(frame.id, (next, enters(run, sent, bridge)));
        }
        let fragments = fragments.clone();
        logs[*wire].frames.push(Passed { received, entered, sent: sent.clone(), fragments });
    }
    // What entered a bridge's port and was not sent waits there or was dropped there.
    for (way, queue) in report.queues.iter().enumerate() {
        if matches!(network.sender(way), CableEnd::Station(_)) {
            continue;
        }
        let here =
            |(at, [_, entered]): &&(usize, [Instant; 2])| *at == way && *entered < report.time;
        let unsent = expected.values().filter(here).count() as u64;
        prop_assert_eq!(unsent, queue.left + queue.dropped, "at direction {}", way);
        let sent = logs[way].frames.len() as u64;
        prop_assert_eq!(queue.offered, sent + unsent);
    }
    Ok(logs)
}

/// The stages of each frame that arrived sum to its latency, and each is what its hops took.
pub fn stages(run: &Run, seen: &Seen) -> Result<(), TestCaseError> {
    let network = &run.config.network;
    let mut hops = BTreeMap::<u64, Vec<(usize, &Transmission)>>::new();
    for Sent { wire, frame: sent, .. } in &seen.sent {
        hops.entry(sent.frame.id).or_default().push((*wire, sent));
    }
    for (at, frame) in &seen.arrived {
        let latency = &frame.latency;
        let sum = FrameStage::ALL.iter().fold(Duration::ZERO, |sum, s| sum + latency.spent(*s));
        prop_assert_eq!(sum, at.since(latency.created()));
        prop_assert_eq!(latency.until(), *at);
        let hops = &hops[&frame.id];
        let propagation = network.cables[0].propagation;
        let (mut waited, mut inside, mut cabled) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut entered = latency.created();
        for (wire, sent) in hops {
            waited = waited + sent.start.since(entered);
            cabled = cabled + propagation;
            if let Place::Bridge(bridge) = ends(run, *wire).1 {
                inside = inside + network.bridges[bridge].delay;
                entered = enters(run, sent, bridge)[1];
            }
        }
        let spent = |stage| latency.spent(stage);
        let in_queues = [FrameStage::Queue, FrameStage::Gate, FrameStage::Shaper];
        let in_queues = in_queues.map(spent).into_iter().fold(Duration::ZERO, |sum, s| sum + s);
        prop_assert_eq!(in_queues, waited);
        prop_assert_eq!(spent(FrameStage::Propagation), cabled);
        prop_assert_eq!(spent(FrameStage::Bridge), inside);
        let last = hops.last().expect("it was sent").1;
        prop_assert_eq!(*at, last.end + propagation);
    }
    Ok(())
}

impl PortLog {
    /// The class of a frame here: of a pair of cyclic queues the one that was filled.
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

    /// Frames and fragments follow each other with a gap, none before its frame has entered; each
    /// frame takes its own length, and what its interruptions cost.
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
            // 60 bytes and an mCRC, and 64 with the FCS are left (802.3-2022, 99.4.4).
            prop_assert!(fragments.iter().all(|bytes| *bytes >= 60), "{fragments:?}");
            let rest = sent.frame.length() - fragments.iter().sum::<usize>();
            prop_assert!(rest >= 64, "{rest} bytes are left after {fragments:?}");
        }
        if self.frames.iter().all(|passed| passed.sent.end != UNFINISHED) {
            prop_assert_eq!(total, expected);
        }
        Ok(())
    }

    /// No frame that is not interrupted is on the line outside its window, which its node's clock
    /// measures.
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

    /// The port sends the first frame of a class as soon as line, gate, shaper and higher classes
    /// permit: nobody waits while the line is free, and nobody overtakes a higher class. Classes
    /// with weights are below all others.
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
                    // What enters at the very instant of the decision may miss it.
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

    /// Whether `class` need not be sent before `than`.
    fn below(&self, class: usize, than: usize) -> bool {
        let [weights, of_other] =
            [class, than].map(|class| matches!(self.algorithm(class), Algorithm::Ets { .. }));
        if weights == of_other { weights || class < than } else { weights }
    }

    /// When the first frame of a class could start behind `free`; `None`: never, or unknown.
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

    /// No frame is sent before the scheduler of its stream alone would let it go.
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

    /// With preemption, the first express frame of the highest class waits for 143 bytes at most.
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

    /// Held, the port begins no preemptable frame and no rest of one, and what is on the line when
    /// hold begins is off it within 143 bytes, the gap included. The world ended at `end`.
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

    /// Without gates and shapers, the line is idle only if no frame, and no rest of one, waits.
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

    pub fn config(&self) -> &port::Config {
        &self.config
    }
}
