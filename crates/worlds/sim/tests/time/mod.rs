//! Clocks, and 802.1AS messages in the simulated network.

mod random;
mod steps;

use super::gates_of;
use sim::World;
use sim::ethernet::Rate;
use sim::ethernet::bridge::Mode;
use sim::ethernet::cable::Faults;
use sim::ethernet::traffic::Pattern;
use sim::measure::Observer;
use sim::network::{BridgeOutage, ClockNode, Place, TimeConfig, TimeReport, TrafficConfig, Tree};
use sim::world::{Config, Outage, Report};
use stats::random::Probability;
use tsn::gptp::{
    ClockConfig, DomainConfig, NodeConfig, ServoConfig, Stamping, SystemIdentity, Walk,
};
use wire::{Duration, Instant};

const PROPAGATION: Duration = Duration::from_ns(50);

fn seconds(count: u64) -> Duration {
    Duration::from_ms(1_000 * count)
}

/// Stations and bridges, and the errors of their clocks.
struct Net {
    tree: Tree,
    nodes: Vec<(Place, ClockNode)>,
}

/// A node whose oscillator is `ppm` fast. `priorities` has its priority1 in each domain.
fn clock(ppm: i64, priorities: &[u8]) -> ClockNode {
    let clock = ClockConfig { drift_ppt: ppm * 1_000_000, ..ClockConfig::default() };
    let domain = |(number, priority): (usize, &u8)| {
        // `Net` sets the identity.
        let own = SystemIdentity::new(*priority, TimeConfig::identity(0));
        DomainConfig::new(number as u8, own)
    };
    let node = NodeConfig {
        clock: TimeConfig::identity(0),
        domains: priorities.iter().enumerate().map(domain).collect(),
        log_delay: 0,
        most_delay: Duration::from_ns(800),
        servo: ServoConfig::new(Stamping::Hardware, -3),
    };
    ClockNode { node: Some(node), ..ClockNode::new(clock) }
}

/// A [`clock`] with a random walk of 0.02 ppm every 100 ms.
fn wandering(ppm: i64, priorities: &[u8]) -> ClockNode {
    let mut node = clock(ppm, priorities);
    let every = Duration::from_ms(100);
    node.clock.walk = Some(Walk { step_ppt: 20_000, every, limit_ppt: 100_000_000 });
    node
}

impl Net {
    fn new() -> Self {
        Self { tree: Tree::new(Rate::G1, PROPAGATION), nodes: Vec::new() }
    }

    fn station(&mut self, clock: ClockNode) -> Place {
        let place = self.tree.station();
        self.nodes.push((place, clock));
        place
    }

    fn bridge(&mut self, clock: ClockNode) -> Place {
        let place = self.tree.bridge(Mode::StoreAndForward, Duration::from_us(1));
        self.nodes.push((place, clock));
        place
    }

    fn run(self, runtime: Duration, outages: Vec<Outage>) -> Report {
        self.world(runtime, outages).run().unwrap()
    }

    fn observed(self, runtime: Duration, observer: Box<dyn Observer>) -> Report {
        let mut world = self.world(runtime, Vec::new());
        world.observe(observer);
        world.run().unwrap()
    }

    fn world(mut self, runtime: Duration, outages: Vec<Outage>) -> World {
        let (mut stations, mut bridges) = (Vec::new(), Vec::new());
        for (place, node) in self.nodes {
            match place {
                Place::Station(_) => stations.push(node),
                Place::Bridge(_) => bridges.push(node),
            }
        }
        for (place, node) in stations.iter_mut().chain(&mut bridges).enumerate() {
            let Some(node) = &mut node.node else { continue };
            node.clock = TimeConfig::identity(place);
            node.domains
                .iter_mut()
                .for_each(|domain| domain.own.clock = TimeConfig::identity(place));
        }
        let sample = Duration::from_ms(125);
        self.tree.network().time = Some(TimeConfig { stations, bridges, sample });
        let network = self.tree.network().clone();
        let runtime = Some(runtime);
        let config = Config { seed: 1, network, runtime, outages, ..Config::default() };
        World::new(&config).unwrap()
    }
}

/// The largest offset of a clock from `from` on, in picoseconds.
fn worst(time: &TimeReport, clock: usize, from: Duration) -> u64 {
    let from = Instant::ZERO + from;
    let after = time.clocks[clock].offsets.iter().filter(|sample| sample.at >= from);
    after.map(|sample| sample.offset_ps.unsigned_abs()).max().expect("samples")
}

/// A grandmaster, a row of `bridges` bridges, and an end station. All ports have gates with windows
/// of 100 us and 400 us, both open for messages of 802.1AS.
fn chain(bridges: usize) -> (Net, Place, Place) {
    let mut net = Net::new();
    let master = net.station(wandering(50, &[100]));
    let mut last = master;
    for number in 0..bridges {
        let ppm = if number % 2 == 0 { 100 } else { -100 };
        let next = net.bridge(wandering(ppm, &[246]));
        net.tree.link(last, next);
        last = next;
    }
    let end = net.station(wandering(-30, &[248]));
    net.tree.link(last, end);
    let gates = gates_of(&[(0x81, Duration::from_us(100)), (0xfe, Duration::from_us(400))]);
    for direction in 0..2 * (bridges + 1) {
        net.tree.port(direction).gates = Some(gates.clone());
    }
    (net, master, end)
}

/// Over seven hops clocks and gate edges stay within a microsecond (IEEE 802.1AS-2020, B.3),
/// although messages wait in queues.
#[test]
fn seven_hops() {
    let report = chain(6).0.run(seconds(40), Vec::new());
    let time = report.time_of_nodes.unwrap();
    for (number, clock) in time.clocks.iter().enumerate() {
        assert_eq!(clock.grandmaster, Some(TimeConfig::identity(0)), "{number}");
        // At first each node is its own grandmaster, or slews after another one, and is not locked.
        let from = clock.synced_from().expect("it locks");
        assert!(from < Instant::ZERO + seconds(20), "{number}: {from}");
        assert!(number == 0 || from >= Instant::ZERO + seconds(1), "{number}: {from}");
        assert!(clock.largest_since(from) < 1_000_000, "{number}: {}", clock.largest_since(from));
        assert_eq!(clock.unlocked(), []);
    }
    let first = Instant::ZERO + Duration::from_ms(125);
    assert_eq!(time.clocks[0].synced_from(), Some(first), "the grandmaster");
    // 14 ports have two edges every 500 us for 40 s. The servo steps only once, so a clock that
    // first followed another master is slewed for some seconds.
    assert_eq!(time.edges.len(), 14);
    for edges in time.edges.values() {
        let count = edges.before + edges.errors.count();
        assert!(count.abs_diff(160_000) <= 10 && edges.before < 80_000, "{count}");
        assert!(edges.worst() < Duration::from_us(1), "{}", edges.worst());
    }
    assert_eq!(time.edges[&0].worst(), Duration::ZERO, "the grandmaster's");
    assert!(time.edges[&13].worst() > Duration::from_ns(8));
}

/// Behind two bridges a clock first follows itself or another clock, which differs by 100 ppm. A
/// locked clock has only the errors of time stamps of 8 ns at each hop and of the random walk, not
/// the 455 us by which it was slewed before.
#[test]
fn a_clock_that_is_slewed_is_not_locked() {
    let time = chain(2).0.run(seconds(30), Vec::new()).time_of_nodes.unwrap();
    for clock in &time.clocks {
        let from = clock.synced_from().expect("it locks");
        assert!(clock.largest_since(from) < 250_000, "{}", clock.largest_since(from));
    }
    let slewed = time.clocks.iter().map(|clock| clock.largest_since(Instant::ZERO + seconds(2)));
    assert!(slewed.max().unwrap() > 100_000_000);
}

/// Clocks lock with different intervals of Sync and Announce. The grandmaster is a bridge, or a
/// station that sends a Pdelay request, Announce and Sync at once with a transmit ring of two
/// frames.
#[test]
fn intervals_of_sync_and_announce_are_independent() {
    for (log_sync, log_announce) in [(0, 0), (1, 0), (-3, -3), (0, -3), (-3, 1)] {
        for master_is_bridge in [false, true] {
            let mut net = Net::new();
            let node = |ppm: i64, priority: u8| {
                let mut node = clock(ppm, &[priority]);
                let part = node.node.as_mut().unwrap();
                let domain = &mut part.domains[0];
                (domain.log_sync, domain.log_announce) = (log_sync, log_announce);
                part.servo = ServoConfig::new(Stamping::Hardware, log_sync);
                node
            };
            let [station, bridge] = if master_is_bridge { [248, 100] } else { [100, 248] };
            let (a, b) = (net.station(node(50, station)), net.station(node(-30, 250)));
            let bridge = net.bridge(node(20, bridge));
            net.tree.link(a, bridge);
            net.tree.link(b, bridge);
            net.tree.network().stations.iter_mut().for_each(|station| station.tx_ring = 2);
            let time = net.run(seconds(120), Vec::new()).time_of_nodes.unwrap();
            for number in 0..3 {
                let case = (log_sync, log_announce, master_is_bridge, number);
                let far = worst(&time, number, seconds(100));
                assert!(far < 1_000_000, "{case:?}: {far} ps");
            }
        }
    }
}

/// A bridge sends Pdelay, Announce and Sync at once, and the queue of their class has room for one
/// frame.
#[test]
fn a_short_queue_of_a_bridge_loses_no_message() {
    let (mut net, ..) = chain(2);
    for bridge in &mut net.tree.network().bridges {
        bridge.ports.iter_mut().for_each(|port| port.classes[7].queue_frames = 1);
    }
    let report = net.run(seconds(10), Vec::new());
    assert!(report.queues.iter().all(|queue| queue.dropped == 0), "{:?}", report.queues);
}

/// The same plan gives the same run.
#[test]
fn same_plan_gives_same_run() {
    let run = || chain(2).0.run(seconds(5), Vec::new());
    let [a, b] = [run(), run()];
    assert_eq!(a.digest, b.digest);
    assert_eq!(
        a.time_of_nodes.unwrap().clocks[3].offsets,
        b.time_of_nodes.unwrap().clocks[3].offsets
    );
}

/// After the grandmaster has lost its power, clocks with hot standby stay within a microsecond of
/// each other. Clocks without hot standby are in holdover and drift apart.
#[test]
fn a_grandmaster_is_lost() {
    let run = |standby: bool| {
        let priorities = |first: u8, second: u8| {
            if standby { vec![first, second] } else { vec![first] }
        };
        let mut net = Net::new();
        let master = net.station(wandering(50, &priorities(100, 255)));
        let other = net.station(wandering(-80, &priorities(255, 100)));
        let end = net.station(wandering(30, &priorities(255, 255)));
        let bridge = net.bridge(wandering(-20, &priorities(255, 255)));
        for station in [master, other, end] {
            net.tree.link(station, bridge);
        }
        let from = Instant::ZERO + seconds(20);
        let report = net.run(seconds(60), vec![Outage { station: 0, from, until: None }]);
        report.time_of_nodes.unwrap()
    };
    let apart = |time: &TimeReport, a: usize, b: usize| {
        let (a, b) = (&time.clocks[a].offsets, &time.clocks[b].offsets);
        let after = a.iter().zip(b).filter(|(a, _)| a.at >= Instant::ZERO + seconds(20));
        after.map(|(a, b)| (a.offset_ps - b.offset_ps).unsigned_abs()).max().unwrap()
    };
    let with = run(true);
    assert!(apart(&with, 1, 2) < 1_000_000 && apart(&with, 1, 3) < 1_000_000);
    let without = run(false);
    assert!(!without.clocks[2].offsets.last().unwrap().synced);
    // After a walk of 40 s the error is above 1 us and at most 0.4 ppm/s * (40 s)^2 / 2.
    let lost = worst(&without, 2, seconds(20));
    assert!((1_000_000..320_000_000).contains(&lost), "{lost}");
}

/// Messages wait for a gate that is closed for 400 of 500 us. Software time stamps include the
/// wait, so that the measured link delay and the clock are wrong. Hardware time stamps are taken
/// behind the queue and do not include the wait.
#[test]
fn a_closed_gate_hurts_software_stamps_alone() {
    let run = |stamping: Stamping| {
        let mut net = Net::new();
        let node = |ppm: i64, priority: u8| {
            let mut node = clock(ppm, &[priority]);
            node.stamping = stamping;
            let part = node.node.as_mut().unwrap();
            part.most_delay = Duration::from_ms(10);
            part.servo = ServoConfig::new(stamping, -3);
            node
        };
        let master = net.station(node(0, 100));
        let end = net.station(node(20, 200));
        net.tree.link(master, end);
        let gates = gates_of(&[(0x80, Duration::from_us(100)), (0x01, Duration::from_us(400))]);
        for direction in 0..2 {
            net.tree.port(direction).gates = Some(gates.clone());
        }
        let time = net.run(seconds(90), Vec::new()).time_of_nodes.unwrap();
        worst(&time, 1, seconds(80))
    };
    assert!(run(Stamping::Hardware) < 100_000);
    assert!(run(Stamping::Software) > 1_000_000);
}

/// Nodes ignore messages with a wrong FCS. If cables corrupt every frame, no station and no
/// cut-through bridge selects another grandmaster.
#[test]
fn corrupt_messages_are_ignored() {
    let run = |corruption: Probability| {
        let mut net = Net::new();
        let master = net.station(clock(50, &[100]));
        let bridge = net.tree.bridge(Mode::CutThrough, Duration::from_us(1));
        net.nodes.push((bridge, clock(-20, &[246])));
        let end = net.station(clock(30, &[248]));
        net.tree.link(master, bridge);
        net.tree.link(bridge, end);
        for cable in &mut net.tree.network().cables {
            cable.faults = [Faults { corruption, ..Faults::default() }, Faults::default()];
            cable.faults[1] = cable.faults[0].clone();
        }
        let time = net.run(seconds(10), Vec::new()).time_of_nodes.unwrap();
        time.clocks.iter().map(|clock| clock.grandmaster).collect::<Vec<_>>()
    };
    // Stations first, then bridges.
    let grandmaster = |place| Some(TimeConfig::identity(place));
    assert_eq!(run(Probability::NEVER), [grandmaster(0), grandmaster(0), grandmaster(0)]);
    assert_eq!(run(Probability::ALWAYS), [grandmaster(0), grandmaster(1), grandmaster(2)]);
}

/// A bridge that is the grandmaster loses its power for 20 s. A station becomes grandmaster and the
/// reference of offsets. When the bridge has power again, all nodes follow the bridge again.
#[test]
fn a_bridge_that_is_grandmaster_is_lost() {
    let mut net = Net::new();
    let (best, other) = (net.station(clock(50, &[200])), net.station(clock(30, &[248])));
    let bridge = net.bridge(clock(-20, &[100]));
    net.tree.link(best, bridge);
    net.tree.link(other, bridge);
    let [from, until] = [20, 40].map(|at| Instant::ZERO + seconds(at));
    net.tree.network().bridge_outages = vec![BridgeOutage { bridge: 0, from, until: Some(until) }];
    let time = net.run(seconds(70), Vec::new()).time_of_nodes.unwrap();
    let within = |clock: usize, from: u64, until: u64| {
        let [from, until] = [from, until].map(|at| Instant::ZERO + seconds(at));
        time.clocks[clock].offsets.iter().filter(move |at| (from..until).contains(&at.at))
    };
    assert!(within(2, 10, 20).all(|at| at.synced && at.offset_ps == 0), "the grandmaster");
    assert!(within(0, 15, 20).all(|at| at.synced && at.offset_ps != 0));
    assert!(within(2, 21, 40).all(|at| !at.synced), "without power");
    // Announcements are valid for 3 s.
    assert!(within(0, 30, 40).all(|at| at.synced && at.offset_ps == 0), "the next one");
    assert!(within(2, 30, 40).all(|at| at.offset_ps != 0));
    assert!(within(2, 45, 70).all(|at| at.synced && at.offset_ps == 0));
    // Syncs are valid for 375 ms, announcements for 3 s. Samples are 125 ms apart.
    let unlocked = |clock: usize| time.clocks[clock].unlocked();
    let [(lost, again)] = unlocked(2)[..] else { panic!("{:?}", unlocked(2)) };
    let sample = Duration::from_ms(125);
    assert_eq!((lost, again), (from + sample, Some(until + sample)), "without power");
    let lost = unlocked(1)[0].0;
    assert!((from..from + Duration::from_ms(625)).contains(&lost), "{lost}");
    for clock in 0..2 {
        assert_eq!(time.clocks[clock].grandmaster, Some(TimeConfig::identity(2)));
        assert!(worst(&time, clock, seconds(65)) < 1_000_000, "{clock}");
    }
}

/// Gates have two edges every 500 us, but none while their station has no power, 10 of 30 s.
#[test]
fn no_edges_without_power() {
    let [from, until] = [10, 20].map(|at| Instant::ZERO + seconds(at));
    let outage = Outage { station: 1, from, until: Some(until) };
    let time = chain(1).0.run(seconds(30), vec![outage]).time_of_nodes.unwrap();
    for (wire, edges) in &time.edges {
        // The first direction of the second cable comes from the bridge, the other from station 1.
        let expected: u64 = if *wire == 3 { 80_000 } else { 120_000 };
        let count = edges.before + edges.errors.count();
        assert!(count.abs_diff(expected) <= 20, "{wire}: {count}");
    }
}

/// Without a grandmaster, offsets are relative to true time: 1 us, and 10 us more every second.
#[test]
fn free_clocks_are_compared_with_true_time() {
    let mut net = Net::new();
    let config =
        ClockConfig { offset_ps: 1_000_000, drift_ppt: 10_000_000, ..ClockConfig::default() };
    let ahead = net.station(ClockNode::new(config));
    let right = net.station(ClockNode::new(ClockConfig::default()));
    net.tree.link(ahead, right);
    let time = net.run(seconds(2), Vec::new()).time_of_nodes.unwrap();
    for (clock, expected) in [(0, [1_000_000, 11_000_000]), (1, [0, 0])] {
        let at = |at: u64| {
            let at = Instant::ZERO + seconds(at);
            time.clocks[clock].offsets.iter().find(|sample| sample.at == at).unwrap().offset_ps
        };
        assert_eq!([at(0), at(1)], expected, "{clock}");
    }
}
