//! The samples that an observer receives from the ports that it follows.

use super::worlds::*;
use sim::ethernet::port::{Algorithm, CreditBased, Preemption};
use sim::ethernet::traffic::Pattern;
use sim::measure::{PortChange, PortSample};
use sim::network::TrafficConfig;
use std::collections::{BTreeMap, BTreeSet};
use tsn::gates::{HoldAdvance, Operation};
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};

/// A frame on the line.
#[derive(Clone, Debug)]
struct Sent {
    length: usize,
    /// Bytes, start and end of each piece.
    pieces: Vec<(usize, Instant, Instant)>,
}

/// The observed events of one port.
#[derive(Clone, Debug, Default)]
struct Seen {
    frames: BTreeMap<u64, Sent>,
    /// Preemptable frames that started, the last one at the end.
    preemptable: Vec<u64>,
    /// For each class, the frames in the queue, and the time of the last change.
    queues: [(usize, Instant); 8],
    /// Frames integrated over time, in picoseconds.
    frame_ps: u128,
    waited: u128,
    captured: u64,
    dropped: u64,
    credit: Vec<(Instant, i128)>,
    holds: usize,
}

#[derive(Clone, Default)]
struct Follower(Rc<RefCell<BTreeMap<usize, Seen>>>);

impl Observer for Follower {
    fn follows(&self, wire: Point) -> bool {
        matches!(wire, Point::Wire(_))
    }

    fn ethernet_frame(&mut self, _: Instant, point: Point, _: &[u8]) {
        let Point::Wire(wire) = point else { return };
        self.0.borrow_mut().entry(wire.into()).or_default().captured += 1;
    }

    fn port(&mut self, at: Instant, wire: Point, sample: &PortSample<'_>) {
        let Point::Wire(wire) = wire else { panic!("{wire:?}") };
        self.0.borrow_mut().entry(wire.into()).or_default().add(at, sample);
    }
}

impl Seen {
    fn add(&mut self, at: Instant, sample: &PortSample<'_>) {
        match sample.change {
            PortChange::Queue => {}
            PortChange::Dropped(frames) => self.dropped += frames,
            PortChange::Started { sent, waited } => {
                let length = sent.frame.length();
                let pieces = vec![(length, at, sent.end)];
                let before = self.frames.insert(sent.frame.id, Sent { length, pieces });
                assert!(before.is_none(), "a frame starts once");
                self.waited += u128::from(waited.as_ps());
                if sent.preemptable {
                    self.preemptable.push(sent.frame.id);
                }
            }
            PortChange::Suspended(suspend) => {
                let last = self.interrupted().pieces.last_mut().unwrap();
                assert_eq!(last.2, suspend.planned);
                *last = (suspend.bytes, last.1, suspend.end);
                self.holds += 1;
            }
            PortChange::Resumed(resume) => {
                let frame = self.interrupted();
                let left = frame.length - frame.pieces.iter().map(|piece| piece.0).sum::<usize>();
                frame.pieces.push((left, at, resume.end));
            }
        }
        let (frames, since) = &mut self.queues[sample.class];
        self.frame_ps += *frames as u128 * u128::from((at - *since).as_ps());
        assert!(at >= *since);
        (*frames, *since) = (sample.frames, at);
        if sample.class == SHAPED {
            self.credit.extend_from_slice(sample.credit);
            assert!(sample.credit.last().is_none_or(|last| last.0 == at));
        }
    }

    fn interrupted(&mut self) -> &mut Sent {
        self.frames.get_mut(self.preemptable.last().expect("one started")).unwrap()
    }
}

/// The class with credit.
const SHAPED: usize = 5;
const IDLE_SLOPE: u64 = 200_000_000;

/// A world whose port to the device node has a window with hold for class 7, a credit-based shaper
/// for class 5, and preemptable tunnel frames.
fn shaped() -> sim::Config {
    let gigabit = || station(Rate::G1);
    let mut network =
        bridged(vec![gigabit(), gigabit(), gigabit()], 1, bridge::Mode::StoreAndForward, None);
    let every = |us| Pattern::Periodic(Duration::from_us(us));
    network.stations[2].traffic = vec![
        TrafficConfig::new(1, 128, 7, every(90)),
        TrafficConfig { burst: 3, ..TrafficConfig::new(1, 1000, SHAPED as u8, every(125)) },
    ];
    network.stations[0].traffic = vec![TrafficConfig::new(1, 1518, 0, every(40))];
    let preemption = Preemption {
        express: 0xa0,
        fragment: FragmentSize::new(0).unwrap(),
        advance: HoldAdvance { hold: Duration::from_ns(143 * 8), release: Duration::ZERO },
        verify: verification::Config { enabled: false, ..Default::default() },
    };
    network.stations[1].ports[0].preemption = Some(preemption);
    let entry = |states, us, operation| Entry {
        states: GateStates(states),
        interval: Duration::from_us(us),
        operation,
    };
    let entries =
        [entry(0x80, 10, Operation::SetAndHoldMac), entry(0x7f, 90, Operation::SetAndReleaseMac)];
    let list = GateControlList::of_entries(Instant::ZERO, &entries).unwrap();
    let port = &mut network.bridges[0].ports[1];
    port.gates = Some(Gates::new(list, Clock::default()));
    port.preemption = Some(preemption);
    port.classes[SHAPED].algorithm = Algorithm::CreditBased(CreditBased {
        idle_slope: IDLE_SLOPE,
        counted: Default::default(),
        rises_in_guard_band: false,
    });
    let work = Workload::Fio(fio(Rw::RandRw, 4096, 2));
    config(vec![host(work, vec![(tcp([0, 1]), drive(0, Timing::OPTANE))])], network)
}

fn followed(config: &sim::Config) -> (Report, BTreeMap<usize, Seen>) {
    let mut world = World::new(config).unwrap();
    let follower = Follower::default();
    world.observe(Box::new(follower.clone()));
    let report = world.run().expect("it ends");
    (report, follower.0.take())
}

/// In the samples every frame starts once, and its pieces contain all its bytes. Queues integrated
/// over time equal the port's value to the picosecond. Credit has the slopes of its class.
#[test]
fn timeline_of_port_matches_its_counters() {
    let (report, seen) = followed(&shaped());
    let wire = 2;
    for (wire, seen) in &seen {
        let queue = report.queues[*wire];
        let left = seen
            .queues
            .iter()
            .map(|(frames, since)| *frames as u128 * u128::from((report.time - *since).as_ps()));
        assert_eq!(seen.frame_ps + left.sum::<u128>(), queue.frame_ps, "wire {wire}");
        let waiting: usize = seen.queues.iter().map(|queue| queue.0).sum();
        assert_eq!((waiting as u64, seen.dropped), (queue.left, queue.dropped));
        assert_eq!(seen.frames.len() as u64, seen.captured, "wire {wire}");
        if waiting == 0 {
            assert_eq!(seen.waited, queue.frame_ps, "wire {wire}");
        }
        let mut pieces: Vec<_> = seen.frames.values().flat_map(|sent| &sent.pieces).collect();
        pieces.sort_unstable_by_key(|piece| piece.1);
        assert!(pieces.windows(2).all(|pair| pair[1].1 - pair[0].2 >= Duration::from_ns(96)));
        for sent in seen.frames.values() {
            let bytes: usize = sent.pieces.iter().map(|piece| piece.0).sum();
            // The preamble, and for each cut an mCRC and a preamble; a byte takes 8 ns.
            let line: u64 = sent.pieces.iter().map(|piece| (piece.2 - piece.1).as_ns()).sum();
            let extra = 8 + 12 * (sent.pieces.len() - 1);
            // The last frame may still be interrupted.
            assert!(bytes == sent.length || queue.left > 0, "{sent:?}");
            assert!(line == (bytes + extra) as u64 * 8 || bytes < sent.length, "{sent:?}");
        }
    }
    let shaped = &seen[&wire];
    assert!(shaped.holds > 20 && shaped.credit.len() > 100, "{} holds", shaped.holds);
    // Between two points, except at a jump, credit rises, falls or is constant.
    let idle = i128::from(IDLE_SLOPE * 10 / 9);
    for pair in shaped.credit.windows(2) {
        let ((at, credit), (next, after)) = (pair[0], pair[1]);
        assert!(at <= next);
        let (span, change) = (i128::from((next - at).as_ps()), after - credit);
        // Credit may stop at zero, within a picosecond.
        let rises = (0..idle).contains(&(idle * span - change));
        let falls = change == (idle - 1_000_000_000) * span;
        assert!(span <= 1 || change == 0 || rises || falls, "{pair:?}");
    }
    let lowest = shaped.credit.iter().map(|point| point.1).min().unwrap();
    // The lowest credit is one frame of 1004 bytes, with preamble and gap, at sendSlope. The gate
    // is open for 90 of 100 us.
    assert_eq!(lowest, (idle - 1_000_000_000) * (1004 + 20) * 8_000);
    let classes: BTreeSet<usize> =
        (0..8).filter(|class| shaped.queues[*class].1 > Instant::ZERO).collect();
    assert_eq!(classes, BTreeSet::from([0, 3, 5, 7]));
}

/// Following a port does not change the simulation.
#[test]
fn an_observer_changes_nothing() {
    let alone = run(&shaped());
    let (report, _) = followed(&shaped());
    assert_eq!(
        (alone.digest, alone.events, alone.time),
        (report.digest, report.events, report.time)
    );
}
