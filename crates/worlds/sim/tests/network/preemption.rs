//! Frame preemption at a port, over a cable and between bridges (IEEE 802.3-2022, clause 99).

use super::*;
use proptest::prelude::*;
use sim::ethernet::port::{Config, Preemption};
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};

/// Duration of one byte at 100 Mb/s.
const BYTE: Duration = Duration::from_ns(80);

fn bytes(count: u64) -> Duration {
    Duration::from_ps(BYTE.as_ps() * count)
}

/// Class 7 is express; no verification.
fn preemption(add: u8) -> Preemption {
    Preemption {
        express: 0x80,
        fragment: FragmentSize::new(add).unwrap(),
        advance: HoldAdvance::default(),
        verify: verification::Config { enabled: false, ..Default::default() },
    }
}

fn preempting(add: u8) -> Config {
    Config { preemption: Some(preemption(add)), ..Config::new(Rate::M100) }
}

/// The ID, the start and the end on the line, in nanoseconds, of each frame or fragment.
fn pieces(events: &[(Instant, LineEvent)]) -> Vec<(u64, u64, u64)> {
    let mut pieces: Vec<(u64, u64, u64)> = Vec::new();
    let mut preemptable = 0;
    for (at, event) in events {
        match event {
            LineEvent::Transmit(sent) => {
                pieces.push((sent.frame.id, at.as_ns(), sent.end.as_ns()));
                preemptable = if sent.preemptable { sent.frame.id } else { preemptable };
            }
            LineEvent::Suspend(suspend) => pieces.last_mut().unwrap().2 = suspend.end.as_ns(),
            LineEvent::Resume(resume) => {
                pieces.push((preemptable, at.as_ns(), resume.end.as_ns()));
            }
        }
    }
    pieces
}

#[test]
fn an_express_frame_interrupts_a_preemptable_one() {
    let mut port = Port::new(preempting(0));
    // At 20 us, 250 bytes have passed: preamble and 242 bytes of the frame.
    let offers = [(Instant::ZERO, 0, 1522), (Instant::from_ns(20_000), 7, 64)];
    let pieces = pieces(&line_of(&mut port, &offers));
    let expected = [
        // 4 bytes of mCRC follow the cut.
        (0, 0, 20_320),
        // After a gap of 12 bytes, 8 + 64 bytes of the express frame.
        (1, 21_280, 27_040),
        // After a gap, 8 bytes of preamble and the remaining 1280 bytes.
        (0, 28_000, 28_000 + 1_288 * 80),
    ];
    assert_eq!(pieces, expected);
    // Without the interruption both frames would end after 1530 + 84 bytes; it costs 24 bytes.
    assert_eq!(pieces[2].2, (1_530 + 84 + 24) * 80);
    let counters = port.counters();
    assert_eq!((counters.sent, counters.suspended), (2, 1));
    assert_eq!(counters.sent_bytes, 1_530 + 72 + 4 + 8);
    assert_eq!(counters.busy, bytes(1_530 + 72 + 4 + 8));
}

/// 802.3 requires 60 bytes and an mCRC before a cut, and 64 bytes with the FCS after it.
#[test]
fn the_shortest_fragments() {
    for (add, shortest) in [(0u8, 124usize), (1, 188), (2, 252), (3, 316)] {
        for (length, cuts) in [(shortest - 1, 0), (shortest, 1)] {
            let mut port = Port::new(preempting(add));
            let offers = [(Instant::ZERO, 0, length), (Instant::from_ns(1), 7, 64)];
            let pieces = pieces(&line_of(&mut port, &offers));
            assert_eq!(port.counters().suspended, cuts, "{length} bytes, addFragSize {add}");
            let first = if cuts == 0 { 8 + length } else { 8 + 64 * (1 + usize::from(add)) };
            assert_eq!(pieces[0], (0, 0, first as u64 * 80));
            assert_eq!(pieces[1].1, (first as u64 + 12) * 80);
        }
    }
}

/// An express frame waits for at most 143 bytes on the line: the longest frame that cannot be cut,
/// its preamble and its gap.
#[test]
fn the_longest_wait_of_an_express_frame() {
    let longest = |length: usize| {
        let wait = |ns: u64| {
            let mut port = Port::new(preempting(0));
            let offers = [(Instant::ZERO, 0, length), (Instant::from_ns(ns), 7, 64)];
            let events = line_of(&mut port, &offers);
            let pieces = pieces(&events);
            let express = pieces.iter().find(|(id, ..)| *id == 1).unwrap();
            express.1 - ns
        };
        (1..8 * 80 + length as u64 * 80).step_by(40).map(wait).max().unwrap()
    };
    // The express frame comes one nanosecond after the start of the preemptable frame.
    assert_eq!(longest(123), 143 * 80 - 1);
    // In a long frame: preamble, 60 bytes, mCRC and gap. After the last possible cut 64 bytes
    // remain.
    assert_eq!(longest(1522), (8 + 60 + 4 + 12) * 80 - 1);
}

#[test]
fn every_interruption_costs_24_bytes() {
    for count in 0..5u64 {
        let mut port = Port::new(preempting(0));
        let express = (0..count).map(|n| (Instant::from_ns(10_000 + n * 20_000), 7, 64));
        let offers: Vec<_> = [(Instant::ZERO, 3, 1518)].into_iter().chain(express).collect();
        let pieces = pieces(&line_of(&mut port, &offers));
        assert_eq!(port.counters().suspended, count);
        let end = pieces.iter().map(|piece| piece.2).max().unwrap();
        assert_eq!(end, (1_526 + count * (84 + 24)) * 80);
    }
}

/// Preemption does not nest. Class 6 does not interrupt class 0 if both are preemptable. No
/// preemptable frame of any priority leaves before the rest of an interrupted frame. Class 0
/// interrupts class 6 if only class 0 is express.
#[test]
fn preemption_does_not_nest_whatever_the_priority() {
    let mut port = Port::new(preempting(0));
    let at = Instant::from_ns;
    let offers = [(at(0), 0, 1000), (at(10_000), 6, 500), (at(20_000), 7, 64)];
    let order: Vec<_> = pieces(&line_of(&mut port, &offers)).iter().map(|piece| piece.0).collect();
    assert_eq!(order, [0, 2, 0, 1]);
    let express = Preemption { express: 0x01, ..preemption(0) };
    let mut port = Port::new(Config { preemption: Some(express), ..preempting(0) });
    let offers = [(at(0), 6, 1000), (at(10_000), 0, 500), (at(11_000), 7, 500)];
    let order: Vec<_> = pieces(&line_of(&mut port, &offers)).iter().map(|piece| piece.0).collect();
    assert_eq!(order, [0, 1, 0, 2]);
}

/// An express frame of a low class and a preemptable frame of a high class wait for the line. The
/// express frame leaves first, after a gap. Then the other frame leaves without interruption.
#[test]
fn a_waiting_express_frame_goes_before_a_preemptable_one_of_a_higher_class() {
    let express = Preemption { express: 0b110, ..preemption(0) };
    let mut port = Port::new(Config { preemption: Some(express), ..preempting(0) });
    let at = Instant::from_ns;
    let offers = [(at(0), 2, 500), (at(1_000), 7, 1_000), (at(2_000), 1, 500)];
    let pieces = pieces(&line_of(&mut port, &offers));
    // 8 + 500 and 8 + 1000 bytes of 80 ns, gaps of 12.
    let expected = [(0, 0, 40_640), (2, 41_600, 82_240), (1, 83_200, 163_840)];
    assert_eq!(pieces, expected);
    // If the partner does not answer, there is no preemption, and the highest class leaves first.
    let verify = verification::Config::default();
    let express = Preemption { express: 0b110, verify, ..preemption(0) };
    let mut port = Port::new(Config { preemption: Some(express), ..preempting(0) });
    let offers =
        [(at(100_000_000), 2, 500), (at(100_001_000), 7, 1_000), (at(100_002_000), 1, 500)];
    let events = line_of(&mut port, &offers);
    let frames = events.iter().filter_map(|(_, event)| match event {
        LineEvent::Transmit(sent) if sent.frame.control.is_none() => Some(sent.frame.id),
        _ => None,
    });
    assert_eq!(frames.collect::<Vec<_>>(), [0, 1, 2]);
}

/// Class 7 may send from 100 to 200 of every 500 us, the others always. If `held`, the window of
/// class 7 holds preemptable frames.
fn windows(held: bool) -> Gates {
    let (hold, release) = match held {
        true => (Operation::SetAndHoldMac, Operation::SetAndReleaseMac),
        false => (Operation::SetGateStates, Operation::SetGateStates),
    };
    let entry = |states, us, operation| Entry {
        states: GateStates(states),
        interval: Duration::from_us(us),
        operation,
    };
    let entries = [
        entry(0x7f, 100, Operation::SetGateStates),
        entry(0xff, 100, hold),
        entry(0x7f, 300, release),
    ];
    let list = GateControlList::of_entries(Instant::ZERO, &entries).unwrap();
    Gates::new(list, Clock::default())
}

/// A frame that waits for its window starts at the start of the window if the port holds
/// preemptable frames. Without hold it starts 16 bytes later, after mCRC and gap.
#[test]
fn hold_keeps_the_edge_of_the_window() {
    for (held, starts) in [(true, 100_000), (false, 100_000 + 16 * 80)] {
        let advance = HoldAdvance { hold: bytes(143), release: Duration::ZERO };
        let preemption = Preemption { advance, ..preemption(0) };
        let config = Config {
            preemption: Some(preemption),
            gates: Some(windows(held)),
            ..Config::new(Rate::M100)
        };
        let mut port = Port::new(config);
        let offers = [(Instant::ZERO, 7, 300), (Instant::from_ns(50_000), 0, 1522)];
        let pieces = pieces(&line_of(&mut port, &offers));
        let express = pieces.iter().find(|piece| piece.0 == 0).unwrap();
        assert_eq!(express.1, starts, "hold: {held}");
        // The rest follows the express frame, or the end of the hold.
        let rest = pieces.last().unwrap();
        assert_eq!(rest.1, if held { 200_000 } else { express.2 + 960 });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// For random frames: pieces do not overlap and have gaps between them; every frame arrives
    /// complete, each class in order; no fragment is too short; the stages of each frame sum to its
    /// latency; each interruption costs 24 bytes.
    #[test]
    fn frames_get_through_in_one_piece(
        add in 0u8..4,
        express in any::<u8>(),
        offers in prop::collection::vec((0u64..400_000, 0u8..8, 64usize..1522), 1..60),
    ) {
        let preemption = Preemption { express, ..preemption(add) };
        let mut port = Port::new(Config { preemption: Some(preemption), ..preempting(add) });
        let offers: Vec<_> =
            offers.iter().map(|&(ns, pcp, length)| (Instant::from_ns(ns), pcp, length)).collect();
        let events = line_of(&mut port, &offers);
        let pieces = pieces(&events);
        for pair in pieces.windows(2) {
            prop_assert!(pair[1].1 >= pair[0].2 + 960, "{pair:?}");
        }
        let shortest = (8 + 64) * 80;
        prop_assert!(pieces.iter().all(|(_, start, end)| end - start >= shortest));
        let mut cable = Cable::new(cable::Config {
            propagation: Duration::from_ns(50),
            ..Default::default()
        });
        let mut arrived = Vec::new();
        let mut deliver = |cable: &mut Cable, until: Instant| {
            while let Some(at) = cable.next().filter(|at| *at <= until) {
                let cable::Output::Deliver(sent) = cable.poll(at) else { panic!("due at {at}") };
                arrived.push(sent);
            }
        };
        for (at, event) in events {
            deliver(&mut cable, at);
            cable.handle(at, event);
        }
        deliver(&mut cable, Instant::from_ns(u64::MAX / 1_000));
        prop_assert_eq!(arrived.len(), offers.len());
        for sent in &arrived {
            let latency = sent.frame.latency;
            let parts = FrameStage::ALL.map(|stage| latency.spent(stage).as_ps());
            prop_assert_eq!(parts.iter().sum::<u64>(), (sent.end - latency.created()).as_ps());
            let own = pieces.iter().filter(|piece| piece.0 == sent.frame.id);
            let on_line: u64 = own.clone().map(|(_, start, end)| end - start).sum();
            let extra = (own.count() as u64 - 1) * (4 + 8) * 80;
            prop_assert_eq!(on_line, sent.frame.line_length() as u64 * 80 + extra);
            prop_assert_eq!(latency.spent(FrameStage::Serialisation).as_ns(), on_line);
        }
        for class in 0..8 {
            let of_class = arrived.iter().filter(|sent| sent.frame.priority == class);
            let created: Vec<_> = of_class.map(|sent| sent.frame.latency.created()).collect();
            prop_assert!(created.is_sorted());
        }
        let load: u64 = pieces.iter().map(|(_, start, end)| end - start).sum();
        prop_assert_eq!(port.counters().busy.as_ns(), load);
    }
}
