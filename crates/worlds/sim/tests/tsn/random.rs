//! Laws that hold in random trees of bridges with random streams and ports.

use super::laws::{self, Run};
use super::*;
use proptest::prelude::*;
use sim::ethernet::port::{self, Algorithm, Ats, Committed, Counted, CreditBased, Preemption};
use sim::network::Listener;
use std::collections::BTreeSet;
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use tsn::{Clock, Cqf, Entry, GateControlList, GateStates, Gates, Operation};

/// A stream. Its ends are numbers, taken modulo the number of stations; those of the listeners
/// begin with the station after the sender. Equal ones are one listener.
#[derive(Clone, Debug)]
struct AnyStream {
    from: usize,
    to: Vec<usize>,
    length: usize,
    priority: u8,
    interval_us: u64,
    poisson: bool,
    burst: u32,
    start_ns: u64,
}

/// The selection at a port. Class 7 always has strict priority.
#[derive(Clone, Debug)]
struct AnyPort {
    queue_frames: usize,
    gates: Option<AnyGates>,
    /// Credit-based shapers of classes 6 and 5: shares of the rate in percent.
    credit: Option<(u64, u64)>,
    /// Asynchronous shaping of class 4: share of the rate in thousandths, frames per burst.
    eligibility: Option<(u64, u64)>,
    /// Cyclic queues in classes 3 and 2: the cycle in microseconds.
    cycle: Option<u64>,
    /// The weight of class 1 in percent. Class 0 has the remaining weight.
    weight: Option<u8>,
}

#[derive(Clone, Debug)]
struct AnyGates {
    list: AnyList,
    /// The next list, and the extension of the last cycle of the first list in nanoseconds.
    next: Option<(AnyList, u64)>,
    offset_ps: i64,
    drift_ppb: i32,
}

#[derive(Clone, Debug)]
struct AnyList {
    /// Open queues, nanoseconds, operation.
    entries: Vec<(u8, u64, Operation)>,
    base_ns: u64,
}

prop_compose! {
    fn any_stream()(
        from in any::<usize>(),
        to in prop::collection::vec(any::<usize>(), 1..4),
        length in 64usize..=1518,
        priority in 0u8..8,
        interval_us in 5u64..200,
        poisson in any::<bool>(),
        burst in 1u32..4,
        start_ns in 0u64..200_000,
    ) -> AnyStream {
        AnyStream { from, to, length, priority, interval_us, poisson, burst, start_ns }
    }
}

fn any_operation() -> impl Strategy<Value = Operation> {
    use Operation::{SetAndHoldMac, SetAndReleaseMac, SetGateStates};
    prop::sample::select(vec![SetGateStates, SetAndHoldMac, SetAndReleaseMac])
}

prop_compose! {
    fn any_list()(
        entries in prop::collection::vec(
            (any::<u8>(), 1_000u64..200_000, any_operation()),
            1..5,
        ),
        base_ns in 0u64..2_000_000,
    ) -> AnyList {
        AnyList { entries, base_ns }
    }
}

prop_compose! {
    fn any_gates()(
        list in any_list(),
        next in prop::option::of((any_list(), 0u64..100_000)),
        offset_ps in -1_000_000_000i64..1_000_000_000,
        drift_ppb in -100_000i32..100_000,
    ) -> AnyGates {
        AnyGates { list, next, offset_ps, drift_ppb }
    }
}

prop_compose! {
    fn any_port()(
        queue_frames in prop::sample::select(vec![1usize, 4, 1024]),
        gates in prop::option::weighted(0.3, any_gates()),
        credit in prop::option::of((1u64..40, 1u64..40)),
        eligibility in prop::option::of((1u64..200, 1u64..4)),
        cycle in prop::option::weighted(0.2, 130u64..300),
        weight in prop::option::of(1u8..100),
    ) -> AnyPort {
        AnyPort { queue_frames, gates, credit, eligibility, cycle, weight }
    }
}

impl AnyList {
    fn list(&self) -> GateControlList {
        let entry = |&(states, ns, operation): &(u8, u64, Operation)| Entry {
            operation,
            ..Entry::set(GateStates(states), Duration::from_ns(ns))
        };
        let entries: Vec<_> = self.entries.iter().map(entry).collect();
        let base = Instant::from_ns(self.base_ns);
        GateControlList::of_entries(base, &entries).expect("a valid list")
    }
}

impl AnyGates {
    /// The gates; with the next list if `changes`.
    fn gates(&self, changes: bool) -> Gates {
        let clock = Clock::new(self.offset_ps, self.drift_ppb).expect("a small drift");
        let gates = Gates::new(self.list.list(), clock);
        match &self.next {
            Some((next, extension)) if changes => {
                gates.then(next.list(), Duration::from_ns(*extension))
            }
            _ => gates,
        }
    }
}

impl AnyPort {
    fn configure(&self, port: &mut port::Config) {
        port.classes.iter_mut().for_each(|class| class.queue_frames = self.queue_frames);
        // The idle slopes below suit only one list.
        let changes = self.credit.is_none();
        port.gates = self.gates.as_ref().map(|gates| gates.gates(changes));
        if let Some(us) = self.cycle {
            let (cycle, base) = (Duration::from_us(us), Instant::ZERO);
            let pair = Cqf { classes: [3, 2], cycle, base };
            *port = port.clone().with_cqf(pair, Clock::default());
        }
        for (class, share) in
            [6, 5].into_iter().zip(self.credit.map(<[u64; 2]>::from).into_iter().flatten())
        {
            // The share of the time in which the gate is open. A class whose gate never opens has
            // none.
            let (open, cycle) = match &port.gates {
                None => (1, 1),
                Some(gates) => {
                    let (open, cycle) = gates.open_share_of(class, Instant::ZERO);
                    (open.as_ns(), cycle.as_ns())
                }
            };
            let slope = u128::from(port.rate.bits_per_second()) * u128::from(share * open);
            let idle_slope = (slope / u128::from(100 * cycle)) as u64;
            if idle_slope > 0 {
                let (counted, rises_in_guard_band) = (Counted::WithGap, share % 2 == 0);
                port.classes[class].algorithm = Algorithm::CreditBased(CreditBased {
                    idle_slope,
                    counted,
                    rises_in_guard_band,
                });
            }
        }
        if let Some((share, frames)) = self.eligibility {
            let rate = port.rate.bits_per_second() / 1000 * share;
            let counted = if share % 2 == 0 { Counted::WithGap } else { Counted::FrameOnly };
            let committed = Committed { rate, burst: frames * 8 * 1542 };
            let (streams, max_residence) = (Vec::new(), None);
            port.classes[4].algorithm =
                Algorithm::Ats(Ats { committed, streams, max_residence, counted });
        }
        if let Some(weight) = self.weight {
            port.classes[1].algorithm = Algorithm::Ets { weight };
            port.classes[0].algorithm = Algorithm::Ets { weight: 100 - weight };
        }
    }
}

/// Enables preemption at both ends of a cable. Class 7 is express.
fn preempting(tree: &mut Tree, cable: usize, hold_ns: u64, enabled: bool) {
    for way in [2 * cable, 2 * cable + 1] {
        tree.port(way).preemption = Some(Preemption {
            express: 1 << 7,
            fragment: FragmentSize::new(0).expect("the shortest"),
            advance: HoldAdvance {
                hold: Duration::from_ns(hold_ns),
                release: Duration::from_ns(hold_ns / 2),
            },
            verify: verification::Config { enabled, time: Duration::from_ms(1), attempts: 3 },
        });
    }
}

impl AnyStream {
    fn add(&self, tree: &mut Tree, stations: &[Place], seed: u64) {
        let from = self.from % stations.len();
        let other = |to: &usize| (from + 1 + to % (stations.len() - 1)) % stations.len();
        let to: BTreeSet<usize> = self.to.iter().map(other).collect();
        let interval = Duration::from_us(self.interval_us);
        let pattern = match self.poisson {
            true => Pattern::Poisson(interval),
            false => Pattern::Periodic(interval),
        };
        let stream = TrafficConfig {
            burst: self.burst,
            start: Instant::from_ns(self.start_ns),
            seed,
            listeners: to.into_iter().map(Listener::new).collect(),
            ..TrafficConfig::new(0, self.length, self.priority, pattern)
        };
        tree.stream(stations[from], stream);
    }
}

prop_compose! {
    fn any_world()(
        rate in prop::sample::select(vec![Rate::M100, Rate::G1, Rate::G10]),
        above in prop::collection::vec(any::<usize>(), 1..8),
        homes in prop::collection::vec(any::<usize>(), 2..7),
        cut_through in any::<bool>(),
        delay_ns in 0u64..5_000,
        streams in prop::collection::vec(any_stream(), 1..9),
        ports in prop::collection::vec(any_port(), 32),
        (preempt, verify) in any::<(u16, u16)>(),
        hold_ns in 0u64..3_000,
        seed in any::<u64>(),
    ) -> Run {
        let mode = match cut_through {
            true => bridge::Mode::CutThrough,
            false => bridge::Mode::StoreAndForward,
        };
        let mut tree = Tree::new(rate, Duration::from_ns(50));
        let mut bridge = || tree.bridge(mode, Duration::from_ns(delay_ns));
        let bridges: Vec<_> = (0..=above.len()).map(|_| bridge()).collect();
        let stations: Vec<_> = homes.iter().map(|_| tree.station()).collect();
        // Each bridge is connected to an earlier one.
        let below = (1..bridges.len()).map(|n| (bridges[n], bridges[above[n - 1] % n]));
        let at = stations.iter().zip(&homes).map(|(s, home)| (*s, bridges[home % bridges.len()]));
        let links: Vec<_> = below.chain(at).collect();
        for (a, b) in &links {
            tree.link(*a, *b);
        }
        for (direction, any) in (0..2 * links.len()).zip(ports.iter().cycle()) {
            any.configure(tree.port(direction));
        }
        for cable in (0..links.len()).filter(|cable| preempt >> cable & 1 != 0) {
            preempting(&mut tree, cable, hold_ns, verify >> cable & 1 != 0);
        }
        for (stream, number) in streams.iter().zip(0..) {
            stream.add(&mut tree, &stations, seed.wrapping_add(number));
        }
        let config = Config { seed, ..config(&mut tree, Duration::from_ms(2)) };
        Run { config, links }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_stream_networks_keep_all_laws(run in any_world()) {
        let (report, seen) = observed(&run.config);
        laws::counted(&report, &seen)?;
        laws::in_order(&run, &seen)?;
        laws::stages(&run, &seen)?;
        for port in laws::ports(&run, &report, &seen)? {
            port.one_at_a_time()?;
            port.windows()?;
            port.eligibility()?;
            port.idle_line()?;
            match (&port.config.preemption, &port.config.gates) {
                (None, _) => port.selection()?,
                // Preemption must be active from the beginning, without verification.
                (Some(preemption), _) if preemption.verify.enabled => {}
                (Some(_), None) => port.express()?,
                (Some(_), Some(_)) => port.hold(report.time)?,
            }
        }
        let mut again = World::new(&run.config).expect("the configuration is right");
        prop_assert_eq!(again.run().expect("it runs").digest, report.digest, "no observer");
    }
}
