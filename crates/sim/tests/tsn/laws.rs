//! What holds in every network of streams, from what an observer saw.

use super::*;
use proptest::prelude::*;
use sim::ethernet::frame::{GAP, HEADER, PREAMBLE, TAG};
use sim::ethernet::{FrameStage, Mac, port};
use sim::network::CableEnd;
use std::collections::{BTreeMap, BTreeSet};

/// A world, and the places that its cables join.
#[derive(Clone, Debug)]
pub struct Run {
    pub config: Config,
    pub links: Vec<(Place, Place)>,
}

/// A frame at a port: when it entered its queue and what became of it.
#[derive(Clone, Debug)]
pub struct Passed {
    entered: Instant,
    sent: Transmission,
}

/// The frames that a port sent, in their order.
#[derive(Debug)]
pub struct PortLog {
    config: port::Config,
    frames: Vec<Passed>,
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

/// The frames of a stream, whose ids rise, arrive in their order.
pub fn in_order(seen: &Seen) -> Result<(), TestCaseError> {
    let mut last = BTreeMap::<StreamId, u64>::new();
    for (_, frame) in &seen.arrived {
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

/// When a frame that was sent to a bridge enters the queue of its next port.
fn enters(run: &Run, sent: &Transmission, bridge: usize) -> Instant {
    let bridge = &run.config.network.bridges[bridge];
    let known = match bridge.mode {
        bridge::Mode::StoreAndForward => sent.end,
        // Preamble, header and tag have passed.
        bridge::Mode::CutThrough => sent.start + sent.rate.duration(PREAMBLE + HEADER + TAG),
    };
    known + run.config.network.cables[0].propagation + bridge.delay
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
        })
        .collect();
    // Where each frame is expected next: the direction, and since when.
    let mut expected = BTreeMap::<u64, (usize, Instant)>::new();
    for (wire, sent) in &seen.sent {
        let frame = &sent.frame;
        let to = station_of(frame.destination());
        let (way, entered) = expected.remove(&frame.id).unwrap_or_else(|| {
            let from = Place::Station(station_of(frame.source()));
            (way(run, from, to, None).expect("a tree joins all"), frame.latency.created())
        });
        prop_assert_eq!(*wire, way, "frame {} took another way", frame.id);
        if let Place::Bridge(bridge) = ends(run, *wire).1 {
            let next = self::way(run, Place::Bridge(bridge), to, Some(*wire));
            let next = next.expect("a tree joins all");
            expected.insert(frame.id, (next, enters(run, sent, bridge)));
        }
        logs[*wire].frames.push(Passed { entered, sent: sent.clone() });
    }
    // What entered a bridge's port and was not sent waits there or was dropped there.
    for (way, queue) in report.queues.iter().enumerate() {
        if matches!(network.sender(way), CableEnd::Station(_)) {
            continue;
        }
        let here = |(at, entered): &&(usize, Instant)| *at == way && *entered < report.time;
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
    for (wire, sent) in &seen.sent {
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
                entered = enters(run, sent, bridge);
            }
        }
        let spent = |stage| latency.spent(stage);
        prop_assert_eq!(spent(FrameStage::Queue) + spent(FrameStage::Gate), waited);
        prop_assert_eq!(spent(FrameStage::Propagation), cabled);
        prop_assert_eq!(spent(FrameStage::Bridge), inside);
        let last = hops.last().expect("it was sent").1;
        prop_assert_eq!(*at, last.end + propagation);
    }
    Ok(())
}

impl PortLog {
    fn class(&self, passed: &Passed) -> usize {
        let tag = passed.sent.frame.tag.expect("stations tag");
        usize::from(self.config.queue_of_priority[usize::from(tag.pcp)])
    }

    /// Frames follow each other with a gap, none before it has entered, each for its own length.
    pub fn one_frame_at_a_time(&self) -> Result<(), TestCaseError> {
        for pair in self.frames.windows(2) {
            let free = pair[0].sent.end + self.config.rate.duration(GAP);
            prop_assert!(pair[1].sent.start >= free, "{pair:?}");
        }
        for Passed { entered, sent } in &self.frames {
            prop_assert!(sent.start >= *entered);
            prop_assert_eq!(sent.end, sent.start + sent.frame.duration(self.config.rate));
        }
        Ok(())
    }

    /// No frame is on the line outside its window, which its node's clock measures.
    pub fn windows(&self) -> Result<(), TestCaseError> {
        let Some(gates) = &self.config.gates else { return Ok(()) };
        for passed in &self.frames {
            let (class, sent) = (self.class(passed), &passed.sent);
            let last = Instant::from_ps(sent.end.as_ps() - 1);
            prop_assert!(gates.is_open(class, sent.start) && gates.is_open(class, last));
            let closes = gates.next_change(class, sent.start);
            prop_assert!(closes.is_none_or(|at| at >= sent.end), "{sent:?} ends after {closes:?}");
        }
        Ok(())
    }

    /// The port sends the first frame of a class as soon as line, gate and higher classes permit:
    /// nobody waits while the line is free, and nobody overtakes a higher class.
    pub fn strict_priority(&self) -> Result<(), TestCaseError> {
        let gap = self.config.rate.duration(GAP);
        let mut queues: [Vec<&Passed>; 8] = Default::default();
        for passed in self.frames.iter().rev() {
            queues[self.class(passed)].push(passed);
        }
        let mut free = Instant::ZERO;
        for passed in &self.frames {
            let (class, start) = (self.class(passed), passed.sent.start);
            for (other, queue) in queues.iter().enumerate() {
                let Some(head) = queue.last() else { continue };
                let earliest = self.earliest(other, head, head.entered.max(free));
                if other == class {
                    prop_assert_eq!(start, earliest.expect("it was sent"), "late or too early");
                } else if let Some(earliest) = earliest {
                    prop_assert!(earliest >= start, "class {other} could send at {earliest}");
                    // What enters at the very instant of the decision may miss it.
                    let missed = other < class || earliest > start || head.entered == start;
                    prop_assert!(missed, "class {class} before {other} at {start}");
                }
            }
            let taken = queues[class].pop().expect("one was sent");
            prop_assert!(queues[class].last().is_none_or(|next| next.entered >= taken.entered));
            free = passed.sent.end + gap;
        }
        Ok(())
    }

    fn earliest(&self, class: usize, passed: &Passed, from: Instant) -> Option<Instant> {
        let Some(gates) = &self.config.gates else { return Some(from) };
        gates.earliest_start(class, from, passed.sent.frame.duration(self.config.rate))
    }
}
