//! Checks of any network of streams, from the events of an observer.

use super::ports::{Passed, PortLog};
use super::*;
use proptest::prelude::*;
use sim::ethernet::frame::{HEADER, PREAMBLE, TAG};
use sim::ethernet::{FrameStage, Mac};
use sim::network::CableEnd;
use std::collections::{BTreeMap, BTreeSet};

/// A world, and the two nodes of each cable.
#[derive(Clone, Debug)]
pub struct Run {
    pub config: Config,
    pub links: Vec<(Place, Place)>,
}

/// The arrived frames, each with the time and the listener.
fn arrivals(seen: &Seen) -> impl Iterator<Item = (Instant, usize, &Frame)> {
    let at = seen.listeners.iter();
    seen.arrived.iter().zip(at).map(|((at, frame), listener)| (*at, *listener, frame))
}

/// Checks that each frame of a stream arrived once at each listener, was lost, or is on the way.
pub fn counted(report: &Report, seen: &Seen) -> Result<(), TestCaseError> {
    let mut arrived = BTreeMap::<(StreamId, usize), u64>::new();
    let mut ids = BTreeSet::new();
    for (_, listener, frame) in arrivals(seen) {
        prop_assert!(ids.insert((frame.id, listener)), "frame {} arrived twice", frame.id);
        let stream = StreamId::of_frame(frame.id).expect("of a stream");
        *arrived.entry((stream, listener)).or_default() += 1;
    }
    for stream in &report.streams {
        for own in &stream.listeners {
            prop_assert!(own.arrived + own.lost <= stream.sent, "{stream:?}");
            let seen = arrived.get(&(stream.stream, own.station)).copied().unwrap_or(0);
            prop_assert_eq!(seen, own.arrived);
        }
    }
    // Here only full queues and too short windows lose frames. A copy dropped on the tree may be
    // for several listeners.
    let lost: u64 = report.streams.iter().map(|stream| stream.lost()).sum();
    let dropped: u64 = report.queues.iter().map(|queue| queue.dropped).sum();
    let most = report.streams.iter().map(|stream| stream.listeners.len()).max();
    match most.unwrap_or(1) as u64 {
        1 => prop_assert_eq!(lost, dropped),
        most => prop_assert!(lost <= most * dropped, "{} of {}", lost, dropped),
    }
    Ok(())
}

/// Checks that the frames of a stream, whose IDs rise, arrive in order. Does not check frames in
/// cyclic queues: a frame without room in its cycle leaves after the frames of the next cycle.
pub fn in_order(run: &Run, seen: &Seen) -> Result<(), TestCaseError> {
    let network = &run.config.network;
    let ways = 0..2 * run.links.len();
    let pairs = ways.flat_map(|way| network.port(network.sender(way)).cqf.clone());
    let cyclic: BTreeSet<u8> = pairs.flat_map(|pair| pair.classes).collect();
    let mut last = BTreeMap::<(StreamId, usize), u64>::new();
    for (_, listener, frame) in arrivals(seen).filter(|(.., f)| !cyclic.contains(&f.priority)) {
        let stream = StreamId::of_frame(frame.id).expect("of a stream");
        let before = last.insert((stream, listener), frame.id);
        prop_assert!(before.is_none_or(|before| before < frame.id), "{stream:?} is out of order");
    }
    Ok(())
}

/// The listeners of a frame's stream.
fn listeners(run: &Run, frame: &Frame) -> Vec<usize> {
    let stream = StreamId::of_frame(frame.id).expect("of a stream");
    let traffic = run.config.network.stream(stream);
    traffic.listeners.iter().map(|listener| listener.station).collect()
}

/// The directions in which a node sends a frame on the tree to its listeners. `came` is the
/// direction from which the frame came.
fn ways(run: &Run, from: Place, frame: &Frame, came: Option<usize>) -> BTreeSet<usize> {
    listeners(run, frame).into_iter().filter_map(|to| way(run, from, to, came)).collect()
}

/// The direction of a cable in which the node `from` sends to station `to`. `came` is the direction
/// from which the frame came.
fn way(run: &Run, from: Place, to: usize, came: Option<usize>) -> Option<usize> {
    (0..2 * run.links.len()).filter(|way| Some(*way) != came.map(|came| came ^ 1)).find(|way| {
        let (a, b) = ends(run, *way);
        a == from && (b == Place::Station(to) || way_on(run, b, to, *way))
    })
}

fn way_on(run: &Run, at: Place, to: usize, came: usize) -> bool {
    matches!(at, Place::Bridge(_)) && way(run, at, to, Some(came)).is_some()
}

/// The sending and the receiving node of a direction.
fn ends(run: &Run, way: usize) -> (Place, Place) {
    let (a, b) = run.links[way / 2];
    if way.is_multiple_of(2) { (a, b) } else { (b, a) }
}

fn station_of(mac: Mac) -> usize {
    let [.., a, b] = mac.0;
    usize::from(u16::from_be_bytes([a, b])) - 1
}

/// When a bridge receives a frame, and when the frame enters the queue of the next port.
fn enters(run: &Run, sent: &Transmission, bridge: usize) -> [Instant; 2] {
    let bridge = &run.config.network.bridges[bridge];
    let known = match bridge.mode {
        // Preamble, header and tag have passed. Preemptable frames are stored.
        bridge::Mode::CutThrough if !sent.preemptable => {
            sent.start + sent.rate.duration(PREAMBLE + HEADER + TAG)
        }
        _ => sent.end,
    };
    let received = known + run.config.network.cables[0].propagation;
    [received, received + bridge.delay]
}

/// For each direction of a cable, the frames that its port received and sent.
///
/// # Errors
/// If a frame left the path over the tree, or a port lost a frame without counting it.
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
    // For each copy of a frame, by frame and direction in which it is sent next: when the node
    // received the copy, and when the copy entered the queue.
    let mut expected = BTreeMap::<(u64, usize), [Instant; 2]>::new();
    for Sent { wire, frame: sent, fragments } in &seen.sent {
        let frame = &sent.frame;
        let next = expected.remove(&(frame.id, *wire)).or_else(|| {
            let first = ways(run, Place::Station(station_of(frame.source())), frame, None);
            first.contains(wire).then_some([frame.latency.created(); 2])
        });
        prop_assert!(next.is_some(), "frame {} took another way: {}", frame.id, wire);
        let [received, entered] = next.expect("it is there");
        if let Place::Bridge(bridge) = ends(run, *wire).1 {
            for next in ways(run, Place::Bridge(bridge), frame, Some(*wire)) {
                expected.insert((frame.id, next), enters(run, sent, bridge));
            }
        }
        let fragments = fragments.clone();
        logs[*wire].frames.push(Passed { received, entered, sent: sent.clone(), fragments });
    }
    // Frames that entered the port of a bridge and were not sent wait there or were dropped there.
    for (way, queue) in report.queues.iter().enumerate() {
        if matches!(network.sender(way), CableEnd::Station(..)) {
            continue;
        }
        let here = |((_, at), [_, entered]): &(&(u64, usize), &[Instant; 2])| {
            *at == way && *entered < report.time
        };
        let unsent = expected.iter().filter(here).count() as u64;
        prop_assert_eq!(unsent, queue.left + queue.dropped, "at direction {}", way);
        let sent = logs[way].frames.len() as u64;
        prop_assert_eq!(queue.offered, sent + unsent);
    }
    Ok(logs)
}

/// Checks that the stages of each arrived frame sum to its latency, and that each stage equals the
/// time on its hops.
pub fn stages(run: &Run, seen: &Seen) -> Result<(), TestCaseError> {
    let network = &run.config.network;
    let mut sent = BTreeMap::<(u64, usize), &Transmission>::new();
    for Sent { wire, frame, .. } in &seen.sent {
        sent.insert((frame.frame.id, *wire), frame);
    }
    for (at, listener, frame) in arrivals(seen) {
        let latency = &frame.latency;
        let sum = FrameStage::ALL.iter().fold(Duration::ZERO, |sum, s| sum + latency.spent(*s));
        prop_assert_eq!(sum, at.since(latency.created()));
        prop_assert_eq!(latency.until(), at);
        let (mut hops, mut here) = (Vec::new(), Place::Station(station_of(frame.source())));
        while here != Place::Station(listener) {
            let came = hops.last().map(|(wire, _)| *wire);
            let wire = way(run, here, listener, came).expect("a tree joins all");
            hops.push((wire, sent[&(frame.id, wire)]));
            here = ends(run, wire).1;
        }
        let propagation = network.cables[0].propagation;
        let (mut waited, mut inside, mut cabled) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
        let mut entered = latency.created();
        for (wire, sent) in &hops {
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
        prop_assert_eq!(at, last.end + propagation);
    }
    Ok(())
}
