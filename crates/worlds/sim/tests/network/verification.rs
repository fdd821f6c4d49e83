//! Verification of frame preemption between two interfaces (IEEE 802.3-2022, 99.4.3, figure 99-8).

use super::*;
use sim::ethernet::Control;
use sim::ethernet::cable::{Counters, Faults};
use sim::ethernet::port::{Config, Preemption};
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};

const RATE: Rate = Rate::G1;
const PROPAGATION: Duration = Duration::from_ns(50);
/// Nanoseconds from the start of a packet to its arrival: 72 * 8 + 50.
const WAY: u64 = 626;

/// Class 7 is express.
fn port(preempts: bool, verifies: bool) -> Config {
    let preemption = Preemption {
        express: 0x80,
        fragment: FragmentSize::default(),
        advance: HoldAdvance::default(),
        verify: verification::Config { enabled: verifies, ..Default::default() },
    };
    Config { preemption: preempts.then_some(preemption), ..Config::new(RATE) }
}

fn ns(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

/// Two interfaces and the frames that they sent.
struct Pair {
    nics: [Nic; 2],
    /// The cable from each interface.
    cables: [Cable; 2],
    /// Sender, time in ns and kind of the packets between the MACs.
    said: Vec<(usize, u64, Control)>,
    /// Start of each frame in ns, and whether it was preemptable.
    frames: Vec<(u64, bool)>,
    arrived: usize,
}

impl Pair {
    fn new(ports: [Config; 2], faults: [Faults; 2]) -> Self {
        let mut number = 0;
        let nics = ports.map(|port| {
            number += 1;
            Nic::new(nic::Config {
                mac: Mac::local(number),
                ports: vec![port],
                tx_delay: Duration::ZERO,
                rx_delay: Duration::ZERO,
                tx_ring: 100,
                tagging: Some(nic::Tagging::vlan(1)),
                streams: Vec::new(),
                groups: Vec::new(),
            })
        });
        let cables = faults.map(|faults| {
            Cable::new(cable::Config { propagation: PROPAGATION, faults, ..Default::default() })
        });
        Self { nics, cables, said: Vec::new(), frames: Vec::new(), arrived: 0 }
    }

    /// Runs until no event is left. The first interface sends the frames in `offers`.
    fn run(&mut self, mut offers: Vec<(u64, u8, usize)>) {
        offers.sort_unstable();
        let mut offers = offers.into_iter().peekable();
        let mut now = Instant::ZERO;
        loop {
            while let Some((_, priority, length)) = offers.next_if(|offer| ns(offer.0) <= now) {
                let mut bytes = vec![0; length - 8];
                bytes[..6].copy_from_slice(&Mac::local(2).0);
                let frame = Frame::new(1, bytes.into(), priority, now);
                self.nics[0].handle(now, nic::Input::FromHost(frame));
            }
            let wakes = [0, 1].map(|side| self.turn(now, side));
            let next = offers.peek().map(|offer| ns(offer.0));
            match wakes.into_iter().flatten().chain(next).min() {
                Some(at) => now = at,
                None => return,
            }
        }
    }

    fn turn(&mut self, now: Instant, side: usize) -> Option<Instant> {
        while let cable::Output::Deliver(sent) = self.cables[1 - side].poll(now) {
            self.nics[side].handle(now, nic::Input::FromLine { port: 0, transmission: sent });
        }
        let wake = loop {
            match self.nics[side].poll(now) {
                nic::Output::Line { event, .. } => self.send(now, side, event),
                nic::Output::ToHost(_) => self.arrived += 1,
                nic::Output::Timeout(wake) => break wake,
            }
        };
        let ways = self.cables.iter().filter_map(Cable::next);
        ways.chain(wake).min().map(|at| at.max(now))
    }

    fn send(&mut self, now: Instant, side: usize, event: LineEvent) {
        if let LineEvent::Transmit(sent) = &event {
            match sent.frame.control {
                Some(control) => self.said.push((side, now.as_ns(), control)),
                None => self.frames.push((now.as_ns(), sent.preemptable)),
            }
        }
        self.cables[side].handle(now, event);
    }

    fn suspended(&self) -> u64 {
        self.nics[0].port(0).counters().suspended
    }

    /// Times at which `side` sent `control`, in ns.
    fn times(&self, side: usize, control: Control) -> Vec<u64> {
        let said = self.said.iter().filter(|said| (said.0, said.2) == (side, control));
        said.map(|said| said.1).collect()
    }
}

fn fine() -> [Faults; 2] {
    [Faults::default(), Faults::default()]
}

/// Faults that lose all packets in the first microsecond of each of the first `attempts` attempts.
fn losing(attempts: u64) -> Faults {
    let cuts = (0..attempts).map(|n| n * 10_000_000).map(|at| (ns(at), ns(at + 1_000)));
    Faults { cuts: cuts.collect(), ..Faults::default() }
}

/// `count` pairs of frames, one pair every 50 us: a long frame of class 0, and 2 us later a short
/// frame of class 7.
fn offers(from: u64, count: u64) -> Vec<(u64, u8, usize)> {
    let pairs = (0..count).map(|n| from + n * 50_000);
    pairs.flat_map(|at| [(at, 0, 1522), (at + 2_000, 7, 64)]).collect()
}

#[test]
fn both_sides_verify_and_respond() {
    let mut pair = Pair::new([port(true, true), port(true, true)], fine());
    pair.run(vec![]);
    // The verify packet arrives at 626 ns. The line is free at (72 + 12) * 8 = 672 ns.
    let both = [(0, 0, Control::Verify), (1, 0, Control::Verify)];
    assert_eq!(pair.said[..2], both);
    assert_eq!(pair.said[2..], [(0, 672, Control::Respond), (1, 672, Control::Respond)]);
}

/// Only the first port sends a verify packet. The answer arrives after twice the delay.
#[test]
fn preemption_begins_with_the_answer() {
    for (at, preemptable) in [(2 * WAY - 1, false), (2 * WAY, true)] {
        let mut pair = Pair::new([port(true, true), port(true, false)], fine());
        pair.run(vec![(at, 0, 1522), (at + 2_000, 7, 64)]);
        let said = [(0, 0, Control::Verify), (1, WAY, Control::Respond)];
        assert_eq!(pair.said, said);
        let first = pair.frames[0];
        assert_eq!(first, (at, preemptable));
        assert_eq!(pair.suspended(), u64::from(preemptable));
        assert_eq!(pair.arrived, 2);
    }
}

#[test]
fn a_partner_without_preemption_never_answers() {
    let mut pair = Pair::new([port(true, true), port(false, false)], fine());
    // Before, between and after the attempts.
    let all = [100, 15_000_000, 45_000_000].map(|from| offers(from, 5)).concat();
    pair.run(all);
    // verifyLimit is 3, and verifyTime 10 ms (99.4.7.3).
    assert_eq!(pair.times(0, Control::Verify), [0, 10_000_000, 20_000_000]);
    assert!(pair.times(1, Control::Respond).is_empty());
    assert_eq!(pair.suspended(), 0);
    assert!(pair.frames.iter().all(|(_, preemptable)| !preemptable));
    assert_eq!(pair.arrived, 30);
}

/// A cut loses verify or respond packets.
#[test]
fn lost_verification_messages_are_sent_again() {
    for lost in 0..=3u64 {
        for side in [0, 1] {
            let mut faults = fine();
            faults[side] = losing(lost);
            let mut pair = Pair::new([port(true, true), port(true, false)], faults);
            // Preemptable frames come 5 us after each attempt.
            pair.run((0..4).flat_map(|n| offers(n * 10_000_000 + 5_000, 2)).collect());
            let asked: Vec<_> = (0..=lost.min(2)).map(|n| n * 10_000_000).collect();
            assert_eq!(pair.times(0, Control::Verify), asked, "{lost} lost from {side}");
            let answers = pair.times(1, Control::Respond).len() as u64;
            let heard = if side == 0 { asked.len() as u64 - lost } else { asked.len() as u64 };
            assert_eq!(answers, heard);
            let interrupted = if lost == 3 { 0 } else { 2 * (4 - lost) };
            assert_eq!(pair.suspended(), interrupted, "{lost} lost from {side}");
            assert_eq!(pair.arrived, 16);
            let Counters { cut, .. } = pair.cables[side].counters();
            assert_eq!(cut, lost);
        }
    }
}

#[test]
fn a_corrupt_answer_does_not_count() {
    let [out, mut back] = fine();
    back.corruption = Probability::from_ppm(1_000_000).unwrap();
    let mut pair = Pair::new([port(true, true), port(true, false)], [out, back]);
    pair.run(offers(40_000_000, 5));
    assert_eq!(pair.times(0, Control::Verify), [0, 10_000_000, 20_000_000]);
    assert_eq!(pair.times(1, Control::Respond), [WAY, 10_000_000 + WAY, 20_000_000 + WAY]);
    assert_eq!((pair.suspended(), pair.arrived), (0, 10));
}

/// A link that comes back is verified again, with all attempts. Earlier answers do not count.
#[test]
fn a_link_that_comes_back_is_verified_again() {
    let mut port = Port::new(port(true, true));
    let ask = |port: &mut Port, at| match port.poll(ns(at)) {
        port::Output::Line(LineEvent::Transmit(sent)) => sent.frame.control,
        _ => None,
    };
    let hear = |port: &mut Port, at| port.handle(ns(at), port::Input::Control(Control::Respond));
    for at in [0, 10_000_000] {
        assert_eq!(ask(&mut port, at), Some(Control::Verify));
    }
    assert!(port.set_link(false));
    assert!(!port.set_link(false), "it is down already");
    hear(&mut port, 10_001_000);
    assert_eq!(ask(&mut port, 20_000_000), None, "nobody is there");
    assert!(port.set_link(true));
    hear(&mut port, 30_000_000);
    for at in [30_000_000, 40_000_000, 50_000_000] {
        assert_eq!(ask(&mut port, at), Some(Control::Verify));
    }
    assert_eq!(ask(&mut port, 60_000_000), None);
    assert!(!Port::new(Config::new(RATE)).set_link(false), "without preemption nothing changes");
}
