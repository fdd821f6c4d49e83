//! Frame preemption: INET's showcases, and edge cases computed by hand.

use super::star::{CABLE, Star, at, once};
use super::{CaseLab, Figures, Observed, observed::us};
use report::Failure;
use sim::ethernet::Rate;
use sim::ethernet::bridge::Mode;
use sim::ethernet::port::Preemption;
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::network::{TrafficConfig, Tree};
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates, Operation};
use wire::{Duration, Instant};

const PREEMPTABLE: u8 = 0;
const EXPRESS: u8 = 7;
/// Time of a byte at 100 Mb/s in microseconds.
const BYTE: f64 = 0.08;
/// An express frame: bytes with tag and FCS; time with preamble and a cable, in microseconds.
const SHORT: usize = 64;
const SHORT_US: f64 = (SHORT + 8) as f64 * BYTE + 0.05;

/// Enables preemption without verification and with the shortest fragments at both ends of a cable.
fn preempting(tree: &mut Tree, way: usize, hold: Duration) {
    for way in [way, way ^ 1] {
        tree.port(way).preemption = Some(Preemption {
            express: 1 << EXPRESS,
            fragment: FragmentSize::new(0).expect("the shortest"),
            advance: HoldAdvance { hold, release: Duration::ZERO },
            verify: verification::Config { enabled: false, ..verification::Config::default() },
        });
    }
}

/// Method by which the host of the showcase sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Fifo,
    Priority,
    Preemption,
}

pub(super) fn showcase(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let mean =
        |row, way| Ok::<_, Failure>(showcase_with(lab.rows(&[row]), way, 1200, 1000)?.0 / 1000.0);
    let short = lab.rows(&["short_shortest", "short_wait"]);
    let (_, [shortest, longest]) = showcase_with(short, Way::Preemption, 120, 10_000)?;
    Ok(vec![
        ("fifo", mean("fifo", Way::Fifo)?),
        ("priority", mean("priority", Way::Priority)?),
        ("preemption", mean("preemption", Way::Preemption)?),
        ("short_shortest", shortest),
        ("short_wait", longest - shortest),
    ])
}

/// Returns mean, shortest and longest latency of the high priority in microseconds. The host's
/// queues are modelled as a bridge next to the host, with a line of nearly no delay between them.
fn showcase_with(
    lab: CaseLab<'_>,
    way: Way,
    high: usize,
    interval_us: u64,
) -> Result<(f64, [f64; 2]), Failure> {
    const SEEDS: u64 = 3;
    let (mut mean, mut range) = (0.0, [f64::INFINITY, 0.0]);
    for seed in 0..SEEDS {
        let mut tree = Tree::new(Rate::M100, CABLE);
        let (receiver, host) = (tree.station(), tree.station());
        let queues = tree.bridge(Mode::StoreAndForward, Duration::ZERO);
        let near = tree.link(host, queues);
        let line = tree.link(queues, receiver);
        for way in [near, near + 1] {
            tree.port(way).rate = Rate::G100;
        }
        let port = tree.port(line);
        port.classes.iter_mut().for_each(|class| class.queue_frames = 4);
        if way == Way::Preemption {
            preempting(&mut tree, line, Duration::ZERO);
        }
        let express = if way == Way::Fifo { PREEMPTABLE } else { EXPRESS };
        let stream = |bytes: usize, priority, mean_us, seed| {
            let mean = Duration::from_us(mean_us);
            let deviation = Duration::from_us(mean_us / 2);
            let pattern = Pattern::Normal { mean, deviation };
            let stream = TrafficConfig::new(0, bytes + 8 + 20 + 14 + 4, priority, pattern);
            TrafficConfig { seed, ..stream }
        };
        tree.stream(host, stream(1200, PREEMPTABLE, 100, 2 * seed));
        let high = tree.stream(host, stream(high, express, interval_us, 2 * seed + 1));
        let observed = lab.run(&mut tree, Duration::from_ms(1000))?;
        let latencies = observed.latencies(&[high]);
        mean += latencies.mean / SEEDS as f64;
        range = [latencies.min.min(range[0]), latencies.max.max(range[1])];
    }
    Ok((mean, range))
}

/// A run with a preemptable frame and express frames, until all frames have arrived. Express frames
/// arrive at the port at given times, in microseconds after the start of the preemptable frame.
struct Interrupted {
    observed: Observed,
    long: StreamId,
    short: Vec<StreamId>,
}

impl Interrupted {
    fn new(lab: CaseLab<'_>, bytes: usize, after: &[f64]) -> Result<Self, Failure> {
        let mut star = Star::new(1 + after.len(), Duration::ZERO);
        preempting(&mut star.tree, star.bottleneck, Duration::ZERO);
        let senders = star.senders.clone();
        let long = star.tree.stream(senders[0], once(bytes - 4, PREEMPTABLE, at(10.0)));
        let begins = 10.0 + (bytes + 8) as f64 * BYTE + 0.05;
        let short = after.iter().zip(&senders[1..]).map(|(after, sender)| {
            let start = at(begins + after - SHORT_US);
            star.tree.stream(*sender, once(SHORT - 4, EXPRESS, start))
        });
        let short = short.collect();
        let observed = lab.run(&mut star.tree, Duration::from_ms(2))?;
        Ok(Self { observed, long, short })
    }

    fn latency(&self, stream: StreamId) -> f64 {
        self.observed.latencies(&[stream]).max
    }

    fn wait(&self) -> f64 {
        self.latency(self.short[0]) - 2.0 * SHORT_US
    }
}

pub(super) fn edges(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    const STEP: f64 = 0.001;
    let whole = Interrupted::new(lab.rows(&["whole_123"]), 123, &[STEP])?;
    let split = Interrupted::new(lab.rows(&["split_124", "overhead_124"]), 124, &[STEP])?;
    let mut longest = (0f64, 64, STEP);
    for bytes in [64, 123, 124, 187, 188, 512, 1522] {
        for byte in (0..bytes).step_by(11) {
            let after = byte as f64 * BYTE + STEP;
            let wait = Interrupted::new(lab, bytes, &[after])?.wait();
            if wait > longest.0 {
                longest = (wait, bytes, after);
            }
        }
    }
    let longest = Interrupted::new(lab.rows(&["longest_wait"]), longest.1, &[longest.2])?.wait();
    let times = [20.0, 50.0, 80.0];
    let once = Interrupted::new(lab.rows(&["overhead_1"]), 1522, &times[..1])?;
    let thrice = Interrupted::new(lab.rows(&["overhead_3"]), 1522, &times)?;
    Ok(vec![
        ("whole_123", whole.wait()),
        ("split_124", split.wait()),
        ("overhead_124", overhead(124, &split)),
        ("overhead_1", overhead(1522, &once)),
        ("overhead_3", overhead(1522, &thrice)),
        ("longest_wait", longest),
    ])
}

/// Returns the bytes on the line that interruptions cost beyond the express frames and their gaps.
fn overhead(bytes: usize, run: &Interrupted) -> f64 {
    let alone = 2.0 * ((bytes + 8) as f64 * BYTE + 0.05);
    let express = run.short.len() * (SHORT + 8 + 12);
    ((run.latency(run.long) - alone) / BYTE).round() - express as f64
}

/// Bytes of the showcase's frames with tag and FCS, and the time to their last bit.
const TIMED: usize = 937 + 8 + 20 + 14 + 4 + 4;
const TIMED_US: f64 = (TIMED + 8) as f64 * BYTE + 0.05;

pub(super) fn hold(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let without = lab.rows(&["first_byte", "start"]);
    let without = express_start(without, Operation::SetGateStates, Duration::ZERO)?;
    // The time of mCRC and gap: 16 bytes.
    let exact = Duration::from_ns(1_280);
    let exact = express_start(lab.rows(&["start_hold"]), Operation::SetAndHoldMac, exact)?;
    let early = Duration::from_ns(11_440);
    let early = express_start(lab.rows(&["start_hold_early"]), Operation::SetAndHoldMac, early)?;
    Ok(vec![
        ("first_byte", without + 8.0 * BYTE),
        ("start", without),
        ("start_hold", exact),
        ("start_hold_early", early),
    ])
}

/// Returns the time from the opening of an express frame's window to the start of the frame. A
/// preemptable frame that began 50 us earlier is on the line.
fn express_start(lab: CaseLab<'_>, operation: Operation, hold: Duration) -> Result<f64, Failure> {
    let mut star = Star::new(2, Duration::ZERO);
    let window = Duration::from_us(100);
    let [closed, open] = [1 << PREEMPTABLE, 1 << PREEMPTABLE | 1 << EXPRESS].map(GateStates);
    let release = match operation {
        Operation::SetAndHoldMac => Operation::SetAndReleaseMac,
        other => other,
    };
    let entries = [
        Entry { operation: release, ..Entry::set(closed, window) },
        Entry { operation, ..Entry::set(open, window) },
    ];
    let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("a list of the program");
    preempting(&mut star.tree, star.bottleneck, hold);
    star.port().gates = Some(Gates::new(list, Clock::default()));
    let senders = star.senders.clone();
    // The examined window opens at 1100 us.
    star.tree.stream(senders[0], once(TIMED - 4, PREEMPTABLE, at(1050.0 - TIMED_US)));
    let express = once(TIMED - 4, EXPRESS, at(1090.0 - TIMED_US));
    let express = star.tree.stream(senders[1], express);
    let observed = lab.run(&mut star.tree, Duration::from_ms(2))?;
    Ok(us(observed.arrival(express, 0)?.at.since(at(1100.0 + TIMED_US))))
}
