use super::*;
use crate::ethernet::cable::{self, Cable, Faults};
use crate::ethernet::port::{Config, Input, Output, Port, Preemption, Reception, SchedulerGroups};
use crate::ethernet::{Rate, Tag};
use bytes::Bytes;
use proptest::prelude::*;
use stats::random::Probability;
use tsn::gates::HoldAdvance;
use tsn::preemption::reassembler::Error;
use tsn::preemption::{FragmentSize, Reassembler, Received, verification};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates, gates::Operation};
use wire::Duration;

const WIRE: Point = Point::Wire(0);
const RATE: Rate = Rate::M100;

#[derive(Default)]
struct Seen {
    frames: Vec<Vec<u8>>,
    mpackets: Vec<(Instant, Vec<u8>)>,
}

impl Observer for Seen {
    fn ethernet_frame(&mut self, _: Instant, _: Point, bytes: &[u8]) {
        self.frames.push(bytes.to_vec());
    }

    fn mpacket(&mut self, at: Instant, _: Point, bytes: &[u8]) {
        self.mpackets.push((at, bytes.to_vec()));
    }
}

/// A port, its line, and a recorder.
struct Line {
    port: Port,
    recorder: Recorder,
    cable: Cable,
    seen: Seen,
    delivered: Vec<Transmission>,
}

impl Line {
    fn new(config: Config, cable: cable::Config) -> Self {
        Self {
            recorder: Recorder::new(config.preemption.is_some()),
            port: Port::new(config),
            cable: Cable::new(cable),
            seen: Seen::default(),
            delivered: Vec::new(),
        }
    }

    /// Runs the line until no event is left.
    fn run(&mut self, mut inputs: Vec<(Instant, Offer)>) {
        inputs.sort_by_key(|(at, _)| *at);
        let mut inputs = inputs.into_iter().peekable();
        let mut now = Instant::ZERO;
        loop {
            while let cable::Output::Deliver(sent) = self.cable.poll(now) {
                self.recorder.delivered(WIRE, &sent, &mut self.seen);
                self.delivered.push(sent);
            }
            while let Some((_, offer)) = inputs.next_if(|(at, _)| *at <= now) {
                self.offer(now, offer);
            }
            let wake = loop {
                match self.port.poll(now) {
                    Output::Line(event) => {
                        self.recorder.handle(WIRE, &event, &mut self.seen);
                        self.cable.handle(now, event);
                    }
                    Output::Timeout(wake) => break wake,
                }
            };
            let next = inputs.peek().map(|(at, _)| *at);
            let Some(at) = [wake, next, self.cable.next()].into_iter().flatten().min() else {
                return;
            };
            assert!(at > now, "no progress at {now}");
            now = at;
        }
    }

    fn offer(&mut self, now: Instant, offer: Offer) {
        match offer {
            Offer::Control(control) => self.port.handle(now, Input::Control(control)),
            Offer::Frame { id, pcp, length } => {
                let bytes: Vec<u8> = (0..length - 8).map(|at| (at * 7 + id) as u8).collect();
                let mut frame = Frame::new(id as u64, Bytes::from(bytes), pcp, now);
                frame.tag = Some(Tag { pcp, vid: 0 });
                let groups = &mut SchedulerGroups::default();
                let reception = Reception { from: None, at: now };
                if let Some(admission) = self.port.admit(groups, reception, (&frame, None)) {
                    self.port.handle(now, Input::Frame(frame, admission));
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Offer {
    Control(Control),
    /// A frame of `length` bytes, from the destination address to the FCS.
    Frame {
        id: usize,
        pcp: u8,
        length: usize,
    },
}

fn preempting(add: u8, express: u8, verify: bool) -> Config {
    let preemption = Preemption {
        express,
        fragment: FragmentSize::new(add).unwrap(),
        advance: HoldAdvance { hold: Duration::from_us(12), release: Duration::ZERO },
        verify: verification::Config { enabled: verify, ..Default::default() },
    };
    Config { preemption: Some(preemption), ..Config::new(RATE) }
}

fn ns(ns: u64) -> Instant {
    Instant::from_ns(ns)
}

/// Time in ns, length, and the last two bytes of the preamble of each mPacket. The two bytes are
/// 55 and SMD, or SMD and fragment count (IEEE 802.3-2022, tables 99-1 and 99-2).
fn delimiters(seen: &Seen) -> Vec<(u64, usize, [u8; 2])> {
    seen.mpackets
        .iter()
        .map(|(at, bytes)| (at.as_ns(), bytes.len(), [bytes[6], bytes[7]]))
        .collect()
}

#[test]
fn the_packets_of_an_interrupted_frame() {
    let mut line = Line::new(preempting(0, 0x80, false), cable::Config::default());
    let frame = |id, pcp, length| Offer::Frame { id, pcp, length };
    // At 20 us 250 bytes have passed: the preamble and 242 bytes of the frame. The second cut is as
    // early as possible: 60 bytes after the preamble of the continuation.
    line.run(vec![
        (ns(0), frame(0, 0, 1522)),
        (ns(20_000), frame(1, 7, 64)),
        (ns(29_000), frame(2, 7, 64)),
        (ns(40_000), frame(3, 1, 64)),
    ]);
    let expected = [
        (0, 8 + 242 + 4, [0x55, 0xe6]),
        // (254 + 12) * 80 ns.
        (21_280, 72, [0x55, 0xd5]),
        // 72 bytes and the gap later.
        (28_000, 8 + 60 + 4, [0x61, 0xe6]),
        (34_720, 72, [0x55, 0xd5]),
        (41_440, 8 + 1522 - 302, [0x61, 0x4c]),
        // The next preemptable frame has the next frame count: (1228 + 12) bytes later.
        (140_640, 72, [0x55, 0x4c]),
    ];
    assert_eq!(delimiters(&line.seen), expected);
}

#[test]
fn verification_and_whole_frames_before_it() {
    let mut line = Line::new(preempting(0, 0x80, true), cable::Config::default());
    let frame = |id| Offer::Frame { id, pcp: 0, length: 64 };
    line.run(vec![
        (ns(0), Offer::Control(Control::Verify)),
        (ns(20_000), frame(0)),
        (ns(40_000), Offer::Control(Control::Respond)),
        (ns(50_000), frame(1)),
    ]);
    // Verify has 07, respond 19, express frames D5, preemptable frames E6.
    let smd =
        delimiters(&line.seen).iter().map(|(at, _, [_, smd])| (*at, *smd)).collect::<Vec<_>>();
    assert_eq!(smd, [(0, 0x19), (6_720, 0x07), (20_000, 0xd5), (50_000, 0xe6)]);
    // Verify and respond are not reported as frames.
    assert_eq!(line.seen.frames.len(), 2);
    assert!(line.seen.frames.iter().all(|frame| frame.len() == 60));
}

#[test]
fn a_wire_without_preemption_has_frames_alone() {
    let mut line = Line::new(Config::new(RATE), cable::Config::default());
    line.run(vec![
        (ns(0), Offer::Control(Control::Verify)),
        (ns(0), Offer::Frame { id: 0, pcp: 0, length: 200 }),
    ]);
    assert_eq!((line.seen.frames.len(), line.seen.mpackets.len()), (1, 0));
}

/// The rest of an interrupted frame never comes. The next frame begins with the next frame count.
#[test]
fn a_frame_given_up_leaves_a_fragment() {
    let mut recorder = Recorder::new(true);
    let mut seen = Seen::default();
    let transmit = |id, at| {
        let frame = Frame::new(id, Bytes::from(vec![id as u8; 196]), 0, ns(at));
        let end = ns(at) + frame.duration(RATE);
        Transmission { frame, start: ns(at), end, rate: RATE, preemptable: true, class: 0 }
    };
    let [first, second] = [transmit(0, 0), transmit(1, 20_000)];
    let suspend = crate::ethernet::port::Suspend { end: ns(0), bytes: 100, planned: ns(0) };
    let events = [
        LineEvent::Transmit(first.clone()),
        LineEvent::Suspend(suspend),
        LineEvent::Transmit(second.clone()),
    ];
    events.iter().for_each(|event| recorder.handle(WIRE, event, &mut seen));
    assert_eq!(delimiters(&seen), [(0, 112, [0x55, 0xe6])], "the other one is on the line");
    recorder.delivered(WIRE, &first, &mut seen);
    // Packets between MACs may have any ID.
    recorder.delivered(WIRE, &Transmission { preemptable: false, ..second.clone() }, &mut seen);
    assert_eq!(seen.mpackets.len(), 1, "the second one has not arrived");
    recorder.delivered(WIRE, &second, &mut seen);
    recorder.delivered(WIRE, &second, &mut seen);
    assert_eq!(delimiters(&seen)[1..], [(20_000, 208, [0x55, 0x4c])]);
}

/// A cut-through bridge forwards a corrupt frame with a wrong FCS.
#[test]
fn a_corrupt_frame_has_a_wrong_fcs() {
    for preemptable in [false, true] {
        let (mut recorder, mut seen) = (Recorder::new(true), Seen::default());
        let frame = Frame::new(1, Bytes::from(vec![7; 196]), 0, ns(0));
        let frame = Frame { corrupt: true, ..frame };
        let end = ns(0) + frame.duration(RATE);
        let sent = Transmission { frame, start: ns(0), end, rate: RATE, preemptable, class: 0 };
        recorder.handle(WIRE, &LineEvent::Transmit(sent.clone()), &mut seen);
        recorder.delivered(WIRE, &sent, &mut seen);
        let [(_, bytes)] = &seen.mpackets[..] else { panic!("{:?}", seen.mpackets) };
        // The CRC is also not the mCRC of a fragment.
        assert_eq!(Reassembler::new(2_000).receive(bytes), Err(Error::Crc));
    }
}

/// Gates that alternate between 60 us with a hold, in which class 0 is closed, and `us` without.
fn windows(us: u64) -> Gates {
    let entry = |states, us, operation| Entry {
        states: GateStates(states),
        interval: Duration::from_us(us),
        operation,
    };
    let entries =
        [entry(0xfe, 60, Operation::SetAndHoldMac), entry(0xff, us, Operation::SetAndReleaseMac)];
    Gates::new(GateControlList::of_entries(Instant::ZERO, &entries).unwrap(), Clock::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// A receiver of the recorded mPackets gets the frames that the wire delivers, in the same
    /// order. Gaps between mPackets are long enough, and their bytes equal the port's counters.
    #[test]
    fn mpackets_are_the_frames_that_arrive(
        add in 0u8..4,
        express in any::<u8>(),
        window in prop::option::of(130u64..400),
        respond in prop::option::of(0u64..200_000),
        verify in prop::collection::vec(0u64..400_000, 0..3),
        delay in any::<bool>(),
        offers in prop::collection::vec((0u64..400_000, 0u8..8, 64usize..1522), 1..60),
    ) {
        let config = Config {
            gates: window.map(windows),
            ..preempting(add, express, respond.is_some())
        };
        let faults = match delay {
            true => Faults {
                seed: 1,
                delay: Probability::from_ppm(300_000).unwrap(),
                delay_up_to: Duration::from_us(200),
                ..Faults::default()
            },
            false => Faults::default(),
        };
        let propagation = Duration::from_ns(50);
        let mut line =
            Line::new(config, cable::Config { propagation, faults, ..Default::default() });
        let frames = offers.iter().enumerate().map(|(id, &(at, pcp, length))| {
            (ns(at), Offer::Frame { id, pcp, length })
        });
        let control = |control| move |at: &u64| (ns(*at), Offer::Control(control));
        let inputs = frames
            .chain(verify.iter().map(control(Control::Verify)))
            .chain(respond.iter().map(control(Control::Respond)));
        line.run(inputs.collect());

        let mut receiver = Reassembler::new(2_000);
        let mut received = Vec::new();
        for (_, bytes) in &line.seen.mpackets {
            match receiver.receive(bytes).unwrap() {
                Received::Frame { bytes, is_express } => received.push((bytes, is_express)),
                Received::Fragment | Received::Verify | Received::Respond => {}
            }
        }
        let whole = |sent: &Transmission| {
            let mut bytes = Vec::new();
            sent.frame.capture(&mut bytes);
            (bytes, !sent.preemptable)
        };
        let delivered = line.delivered.iter().filter(|sent| sent.frame.control.is_none());
        let delivered: Vec<_> = delivered.map(whole).collect();
        prop_assert_eq!(delivered.len(), line.seen.frames.len());
        prop_assert_eq!(received, delivered);

        let length = |bytes: &[u8]| RATE.duration(bytes.len() + 12);
        for pair in line.seen.mpackets.windows(2) {
            prop_assert!(pair[1].0 >= pair[0].0 + length(&pair[0].1));
        }
        let counters = line.port.counters();
        let bytes: usize = line.seen.mpackets.iter().map(|(_, bytes)| bytes.len()).sum();
        prop_assert_eq!(bytes as u64, counters.sent_bytes + 72 * counters.control);
    }
}
