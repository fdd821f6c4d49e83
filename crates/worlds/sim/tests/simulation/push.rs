//! Hosts that push: one round trip per command, correct data, and equal digests of two runs.

use crate::simulation::moves;
use crate::simulation::worlds::*;
use node::push::Mode;
use sim::measure::Pushed;
use sim::transport::TransportConfig;
use sim::workload::CompletionMode;
use wire::tlp::{Packet, Tlp};

fn with(mut config: Config, push: Mode) -> Config {
    config.hosts.iter_mut().for_each(|host| host.root.push = push);
    config
}

fn dd(write: bool) -> Workload {
    Workload::Dd { write, bs: 4096, count: 20 }
}

/// TLPs at the root port since the first submission doorbell of the workload.
#[derive(Default)]
struct Watch {
    reads: u64,
    messages: u64,
    requests: Vec<(Instant, Tlp)>,
}

struct Root(Rc<RefCell<Watch>>);

impl Observer for Root {
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        let Point::RootPort(_) = point else { return };
        let mut seen = self.0.borrow_mut();
        match tlp.packet {
            Packet::MemoryRead(_) if up => seen.reads += 1,
            Packet::Message(_) if !up => {
                seen.messages += 1;
                seen.requests.push((at, tlp.clone()));
            }
            Packet::MemoryWrite(_) if !up => seen.requests.push((at, tlp.clone())),
            _ => {}
        }
    }
}

/// Runs `config`. Returns the drives' reads from the host since the start.
fn watched_root(config: &Config) -> (Report, Watch) {
    let seen = Rc::new(RefCell::new(Watch::default()));
    let mut world = World::new(config).expect("a valid plan");
    world.observe(Box::new(Root(seen.clone())));
    let report = world.run().expect("it ends");
    check(&report);
    check_errors(&world);
    assert_eq!(run(config).digest, report.digest, "the same plan, the same digest");
    drop(world);
    (report, Rc::into_inner(seen).expect("the world is gone").into_inner())
}

#[test]
fn neither_reads_nor_writes_read_the_host() {
    for write in [false, true] {
        let plan = |push| with(Config::nvme_tsn_tcp(dd(write), Rate::G1), push);
        let (report, seen) = watched_root(&plan(Mode::All));
        assert_eq!(seen.reads, 0, "write: {write}");
        let pushed = report.hosts[0].pushed;
        assert_eq!((pushed.entries, pushed.unpushed, pushed.misses), (20, 0, 0));
        assert_eq!(pushed.unused_bytes, 0);
        let bytes = 20 * if write { 64 + 4096 } else { 64 };
        assert_eq!((pushed.bytes, pushed.hit_bytes), (bytes, bytes));
        // If only entries are pushed, a write needs 16 reads of 256 bytes.
        let (report, seen) = watched_root(&plan(Mode::Entries));
        let left = if write { 20 * 16 } else { 0 };
        assert_eq!((seen.reads, report.hosts[0].pushed.misses), (left, left));
        assert_eq!(report.hosts[0].pushed.hits, 20);
    }
}

/// In a tunnel that only delays, the added latency shows how often a command crosses the tunnel.
#[test]
fn a_command_takes_one_round_trip() {
    const WAY: Duration = Duration::from_us(50);
    let crossed = |write: bool, push: Mode| {
        let mean = |latency| {
            let mut config = with(Config::nvme_tsn_tunnel(dd(write), pipe()), push);
            let transport = &mut switch(&mut config).ports[0].transport;
            let TransportConfig::Pipe(pipe) = transport else { panic!("a pipe") };
            pipe.latency = latency;
            run(&config).hosts[0].root_port.summary().mean_ns
        };
        let (near, far) = (mean(Duration::from_us(1)), mean(WAY + Duration::from_us(1)));
        // Rounded to a whole number of crossings.
        (far - near + WAY.as_ns() / 2) / WAY.as_ns()
    };
    assert_eq!(crossed(false, Mode::All), 2, "there and back");
    assert_eq!(crossed(true, Mode::All), 2, "there and back");
    assert_eq!(crossed(false, Mode::Off), 4, "doorbell, fetch, entry, data");
    // 16 reads of the data, two at a time.
    assert_eq!(crossed(true, Mode::Off), 2 + 2 + 2 * 8);
}

#[test]
fn run_with_push_off_equals_run_without_push() {
    let mut config = Config::nvme_tsn_tcp(dd(true), Rate::G1);
    let (report, seen) = watched_root(&with(config.clone(), Mode::Off));
    assert_eq!((report.hosts[0].pushed, seen.messages), (Pushed::default(), 0));
    assert!(seen.reads >= 20 * 17, "{}", seen.reads);
    assert_eq!(run(&config).digest, report.digest, "the paper's switch has no push");
    // Without a tunnel pushed bytes cannot be stored.
    config = Config::nvme_tsn_direct(dd(true));
    assert_eq!(run(&with(config.clone(), Mode::All)).digest, run(&config).digest);
}

/// Pushing takes time for reads of host memory and for messages on the link. The latency of the
/// command starts when its doorbell would have left without push.
#[test]
fn push_takes_memory_and_link_time() {
    let config = |memory_read| {
        let mut config = with(Config::nvme_tsn_tcp(dd(true), Rate::G10), Mode::All);
        config.hosts[0].root.memory_read = memory_read;
        config
    };
    let mean = |memory_read| run(&config(memory_read)).hosts[0].root_port.summary().mean_ns;
    let (fast, slow) = (mean(Duration::ZERO), mean(Duration::from_us(3)));
    // Two reads of 3 us: the entry, then the data.
    assert!((slow - fast).abs_diff(6_000) < 100, "{fast} {slow}");
    let (_, seen) = watched_root(&config(Duration::ZERO));
    let at = seen.requests.iter().rposition(|(_, tlp)| matches!(tlp.packet, Packet::Message(_)));
    let at = at.expect("a message");
    // In front of the doorbell are 17 messages of 16 + 256 bytes and one of 16 + 112 bytes, each
    // with 8 bytes of framing. A byte takes 0.5 ns.
    let (first, doorbell) = (seen.requests[at - 17].0, seen.requests[at + 1].0);
    let least = Duration::from_ns((17 * (16 + 256 + 8) + 16 + 112 + 8) / 2);
    assert!(doorbell - first >= least, "{} for {least}", doorbell - first);
    assert!(matches!(seen.requests[at + 1].1.packet, Packet::MemoryWrite(_)));
}

/// Data are correct and every entry is counted, with deep queues, several drives and jobs, large
/// transfers with PRP lists, and every transport.
#[test]
fn data_are_right_whatever_is_pushed() {
    let network = bridged(vec![station(Rate::G10); 3], 1, bridge::Mode::StoreAndForward, None);
    for transports in
        [[tcp([0, 1]), tcp([0, 2])], [raw([0, 1], "swift"), raw([0, 2], "swift")], [pipe(), pipe()]]
    {
        for (bs, depth) in [(4096, 8), (64 << 10, 4)] {
            let work = Fio { numjobs: 2, stripe: 8192, ..fio(Rw::RandRw, bs, depth) };
            let ports = transports.iter().cloned().enumerate();
            let ports = ports.map(|(number, way)| (way, drive(number, Timing::OPTANE)));
            let mut host = host(Workload::Fio(work), ports.collect());
            host.software.completions = CompletionMode::Polling { interval: Duration::from_us(1) };
            let plan = with(config(vec![host], network.clone()), Mode::All);
            let (report, world) = twice(&plan);
            check_errors(&world);
            let (host, pushed) = (&report.hosts[0], report.hosts[0].pushed);
            assert!(host.verified > 0 && pushed.hits > 0, "{pushed:?}");
            assert_eq!(pushed.entries + pushed.unpushed, host.commands);
            assert!(pushed.hit_bytes + pushed.unused_bytes <= pushed.bytes, "{pushed:?}");
        }
    }
}

/// A drive that moves to another host, or that was without power, has no pushed bytes.
#[test]
fn lost_links_and_moves_leave_nothing_behind() {
    let network = bridged(vec![station(Rate::G1); 2], 1, bridge::Mode::StoreAndForward, None);
    let work = Fio {
        runtime: Some(Duration::from_ms(20)),
        time_based: true,
        ..fio(Rw::RandWrite, 4096, 4)
    };
    let ports = vec![(tcp([0, 1]), drive(0, Timing::NULL))];
    let mut plan = config(vec![host(Workload::Fio(work), ports)], network);
    plan.outages = vec![Outage { station: 1, from: ms(5), until: Some(ms(9)) }];
    let mut world = World::new(&with(plan, Mode::All)).expect("a valid plan");
    let report = world.run().expect("it ends");
    assert_eq!(report.hosts[0].mismatches, 0);
    assert!(report.hosts[0].failures > 0 && report.hosts[0].pushed.entries > 100);
    // At the end only TLPs of at most four commands are in flight.
    assert!(world.tlps_in_flight() < 200, "{}", world.tlps_in_flight());
    let (report, _) = twice(&with(moves::plan(Rw::RandRw, Rw::RandRw), Mode::All));
    assert!(report.hosts.iter().all(|host| host.pushed.entries > 10), "{report:?}");
}
