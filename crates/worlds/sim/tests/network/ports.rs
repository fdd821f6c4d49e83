//! Ports: order, gaps, gates, drops.

use super::*;
use proptest::prelude::*;
use sim::ethernet::port::{Config, Guard, Output};

/// Offers frames at their times. Returns the transmissions.
fn run(port: &mut Port, offers: Vec<(Instant, Frame)>) -> Vec<Transmission> {
    super::run(port, offers, offer, |port, now| match port.poll(now) {
        Output::Line(event) => Ok(transmitted(event)),
        Output::Timeout(wake) => Err(wake),
    })
}

#[test]
fn back_to_back_frames_pay_the_gap() {
    let mut port = Port::new(Config::new(Rate::G1));
    let offers = (0..3).map(|id| (Instant::ZERO, tagged(id, 0, 64, Instant::ZERO))).collect();
    let sent = run(&mut port, offers);
    let times: Vec<_> = sent.iter().map(|sent| (sent.start.as_ns(), sent.end.as_ns())).collect();
    // 8 + 64 bytes of 8 ns, then a gap of 12 bytes.
    assert_eq!(times, [(0, 576), (672, 1_248), (1_344, 1_920)]);
    assert_eq!(sent[2].frame.latency.spent(FrameStage::Queue), Duration::from_ns(1_344));
    assert_eq!(port.counters().busy, Duration::from_ns(3 * 576));
}

#[test]
fn higher_queues_first() {
    let mut port = Port::new(Config::new(Rate::G1));
    let order = [2u8, 7, 0, 5, 7, 1];
    let offers =
        (0..6).map(|id| (Instant::ZERO, tagged(id, order[id as usize], 64, Instant::ZERO)));
    let sent = run(&mut port, offers.collect());
    let ids: Vec<_> = sent.iter().map(|sent| sent.frame.id).collect();
    assert_eq!(ids, [1, 4, 3, 0, 5, 2]);
}

/// Without preemption no frame on the line is interrupted.
#[test]
fn a_lower_frame_on_the_line_is_finished_first() {
    let mut port = Port::new(Config::new(Rate::G1));
    let later = Instant::from_ns(1);
    let offers =
        vec![(Instant::ZERO, tagged(0, 0, 1522, Instant::ZERO)), (later, tagged(1, 7, 64, later))];
    let sent = run(&mut port, offers);
    assert_eq!(sent[1].start, sent[0].end + Duration::from_ns(96));
}

#[test]
fn full_queues_drop_and_count() {
    let mut port = Port::new(Config::new(Rate::G1).with_depth(4, usize::MAX));
    for id in 0..6 {
        offer(&mut port, Instant::ZERO, tagged(id, 3, 64, Instant::ZERO));
    }
    offer(&mut port, Instant::ZERO, tagged(6, 4, 64, Instant::ZERO));
    assert_eq!(port.counters().full, [0, 0, 0, 2, 0, 0, 0, 0]);
    assert_eq!((port.queued_frames(), port.queued_bytes(3)), (5, 4 * 64));
}

fn gated(guard: Guard) -> Config {
    // Queue 7 is open for 20 of 100 us, the other queues for 80 us.
    let gates = gates_of(&[(0x80, Duration::from_us(20)), (0x7f, Duration::from_us(80))]);
    Config { gates: Some(gates), guard, ..Config::new(Rate::G1) }
}

#[test]
fn guard_by_length_or_by_the_largest_frame() {
    // At 99 us, a frame of 576 ns fits before the gate closes, and the longest frame does not.
    let at = Instant::from_ns(99_000);
    for (guard, start) in [(Guard::FrameLength, 99_000), (Guard::MaximumFrame(1500), 120_000)] {
        let sent = run(&mut Port::new(gated(guard)), vec![(at, tagged(0, 1, 64, at))]);
        assert_eq!(sent[0].start, Instant::from_ns(start), "{guard:?}");
        let gate = sent[0].frame.latency.spent(FrameStage::Gate);
        assert_eq!(gate, Duration::from_ns(start - 99_000));
    }
    // A frame of 12.240 us may start exactly 12.240 us before the gate closes, not later.
    for (ps, start) in [(87_760_000, 87_760_000), (87_760_001, 120_000_000)] {
        let at = Instant::from_ps(ps);
        let mut port = Port::new(gated(Guard::FrameLength));
        let sent = run(&mut port, vec![(at, tagged(0, 1, 1522, at))]);
        assert_eq!(sent[0].start, Instant::from_ps(start));
    }
}

#[test]
fn a_frame_that_never_fits_is_dropped() {
    let gates = gates_of(&[(1, Duration::from_us(12)), (2, Duration::from_us(88))]);
    let mut port = Port::new(Config { gates: Some(gates), ..Config::new(Rate::G1) });
    let offers = vec![
        (Instant::ZERO, tagged(0, 0, 1522, Instant::ZERO)),
        (Instant::ZERO, tagged(1, 0, 1000, Instant::ZERO)),
        (Instant::ZERO, tagged(2, 5, 64, Instant::ZERO)),
    ];
    assert_eq!(run(&mut port, offers).len(), 1);
    assert_eq!(port.counters().never_fits, 2);
}

fn any_gates() -> impl Strategy<Value = Gates> {
    let entries = prop::collection::vec((any::<u8>(), 1u64..40_000), 1..6);
    let clock = (-1_000_000_000i64..1_000_000_000, -200_000i32..200_000);
    (entries, 0u64..1_000_000, clock).prop_map(|(entries, base, (offset, drift))| {
        let entry =
            |&(states, ns): &(u8, u64)| Entry::set(GateStates(states), Duration::from_ns(ns));
        let entries: Vec<_> = entries.iter().map(entry).collect();
        let list = GateControlList::of_entries(Instant::from_ns(base), &entries).unwrap();
        Gates::new(list, Clock::new(offset, drift).unwrap())
    })
}

/// Whether the gate is open from `start` to `end`: at both ends, and at every change in between.
fn open_throughout(gates: &Gates, queue: usize, start: Instant, end: Instant) -> bool {
    let last = Instant::from_ps(end.as_ps() - 1);
    gates.is_open(queue, start)
        && gates.is_open(queue, last)
        && gates.next_change(queue, start).is_none_or(|change| change >= end)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// No frame is on the line outside its window; frames do not overlap; each queue keeps its
    /// order; every lost frame is counted; the stages of a frame sum to its latency.
    #[test]
    fn no_frame_leaves_outside_its_window(
        gates in any_gates(),
        rate in prop::sample::select(Rate::ALL.to_vec()),
        offers in prop::collection::vec((0u64..300_000, 0u8..8, 64usize..1522), 1..60),
        frames in 1usize..20,
    ) {
        let gated = Some(gates.clone());
        let config = Config { gates: gated, ..Config::new(rate).with_depth(frames, usize::MAX) };
        let mut port = Port::new(config);
        let offer = |(id, &(at, pcp, length))| {
            let at = Instant::from_ns(at);
            (at, tagged(id, pcp, length, at))
        };
        let offers: Vec<_> = (0..).zip(&offers).map(offer).collect();
        let sent = run(&mut port, offers.clone());
        let counters = port.counters();
        let dropped = counters.dropped();
        prop_assert_eq!(counters.offered, offers.len() as u64);
        prop_assert_eq!(counters.sent + dropped, counters.offered);
        prop_assert_eq!(counters.sent, sent.len() as u64);
        prop_assert_eq!(port.queued_frames(), 0);
        for sent in &sent {
            let queue = usize::from(sent.frame.tag.unwrap().pcp);
            prop_assert!(open_throughout(&gates, queue, sent.start, sent.end));
            prop_assert_eq!(sent.end, sent.start + sent.frame.duration(rate));
            let latency = sent.frame.latency;
            prop_assert_eq!(latency.until(), sent.start);
            let waited = latency.spent(FrameStage::Gate) + latency.spent(FrameStage::Queue);
            prop_assert_eq!(waited, latency.total());
        }
        // Little's law: the integral of the port equals the sum of the frames' waits. No frame is
        // dropped from the head of its queue here, because no window changes its length.
        let waited = sent.iter().map(|sent| u128::from(sent.frame.latency.total().as_ps()));
        prop_assert_eq!(port.occupancy(), waited.sum::<u128>());
        for pair in sent.windows(2) {
            prop_assert!(pair[1].start >= pair[0].end + rate.duration(12));
        }
        for queue in 0..8 {
            let created: Vec<_> = sent
                .iter()
                .filter(|sent| sent.frame.tag.unwrap().pcp == queue)
                .map(|sent| sent.frame.latency.created())
                .collect();
            prop_assert!(created.is_sorted());
        }
    }
}

/// A frame of raw Ethernet to station `to`, with `payload` bytes after the Ethernet header.
fn raw(id: u64, to: u8, payload: usize) -> Frame {
    let mut bytes = vec![to; 6];
    bytes.extend_from_slice(&[2; 6]);
    bytes.extend_from_slice(&wire::raw::ETHERTYPE.to_be_bytes());
    bytes.resize(14 + payload, id as u8);
    Frame::new(id, bytes.into(), 0, Instant::ZERO)
}

#[test]
fn raw_frames_that_wait_for_the_same_station_leave_as_one() {
    let offers = || {
        let raws = [(1, 100), (1, 200), (1, 300), (7, 100), (1, 100), (1, 1400), (1, 101)];
        let frames = (0..).zip(raws).map(|(id, (to, payload))| raw(id, to, payload));
        let other = Frame::new(9, Bytes::from(vec![1; 114]), 0, Instant::ZERO);
        frames.chain([other]).map(|frame| (Instant::ZERO, frame)).collect::<Vec<_>>()
    };
    let mut port = Port::new(Config { merge: 1500, ..Config::new(Rate::G10) });
    let sent = run(&mut port, offers());
    let payloads: Vec<_> = sent.iter().map(|sent| sent.frame.bytes.len() - 14).collect();
    assert_eq!(payloads, [600, 100, 1500, 101, 100], "in order, and no longer than 1500");
    assert_eq!(sent[0].frame.bytes[14 + 100], 1, "behind each other");
    assert_eq!(sent[0].end, sent[0].start + Rate::G10.duration(8 + 14 + 600 + 4));
    let counters = port.counters();
    assert_eq!((counters.offered, counters.sent, counters.merged), (8, 5, 3));
    assert_eq!(port.queued_frames() + port.queued_bytes(0), 0);
    let mut plain = Port::new(Config::new(Rate::G10));
    assert_eq!(run(&mut plain, offers()).len(), 8);
}
