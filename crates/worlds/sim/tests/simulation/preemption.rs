//! Verification of preemption in whole simulations in which a node or a cable fails and returns.

use crate::simulation::worlds::*;
use sim::ethernet::port::Preemption;
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};

/// SMDs of mPackets (IEEE 802.3-2022, table 99-1).
const EXPRESS: u8 = 0xd5;
const VERIFY: u8 = 0x07;
const RESPOND: u8 = 0x19;
const STARTS: [u8; 4] = [0xe6, 0x4c, 0x7f, 0xb3];

/// Wire, time and SMD of every mPacket.
type Seen = Vec<(u16, Instant, u8)>;

#[derive(Clone, Default)]
struct Watch(Rc<RefCell<Seen>>);

impl Observer for Watch {
    fn mpacket(&mut self, at: Instant, point: Point, bytes: &[u8]) {
        let Point::Wire(wire) = point else { panic!("{point:?} is no wire") };
        self.0.borrow_mut().push((wire, at, bytes[7]));
    }
}

/// A host and a device node at a bridge. Every port has preemption, and all classes of the tunnel
/// are preemptable. Wires 0 and 1 are from and to the host, wires 2 and 3 to and from the node.
fn preempting() -> Config {
    let work = Fio {
        runtime: Some(Duration::from_ms(60)),
        time_based: true,
        rate: Some(4_000 * 4096),
        ..fio(Rw::RandRw, 4096, 4)
    };
    let preemption = Preemption {
        express: 0x80,
        fragment: FragmentSize::default(),
        advance: HoldAdvance::default(),
        verify: verification::Config::default(),
    };
    let mut network = bridged(vec![station(Rate::G1); 2], 1, bridge::Mode::StoreAndForward, None);
    let bridges = network.bridges.iter_mut().flat_map(|bridge| &mut bridge.ports);
    let stations = network.stations.iter_mut().map(|station| &mut station.ports[0]);
    bridges.chain(stations).for_each(|port| port.preemption = Some(preemption));
    config(vec![host(Workload::Fio(work), vec![(tcp([0, 1]), drive(0, Timing::NULL))])], network)
}

fn seen(config: &Config) -> Seen {
    let watch = Watch::default();
    let mut world = World::new(config).unwrap();
    world.observe(Box::new(watch.clone()));
    let report = world.run().unwrap();
    assert_eq!(report.hosts[0].mismatches, 0);
    assert_eq!(run(config).digest, report.digest, "nobody looks, and it is the same");
    watch.0.take()
}

/// When packets with the SMD `smd` began on a wire.
fn times(seen: &Seen, wire: u16, smd: u8) -> Vec<Instant> {
    let these = seen.iter().filter(|packet| (packet.0, packet.2) == (wire, smd));
    these.map(|packet| packet.1).collect()
}

/// Checks that the links of the host and of the node were verified at these times.
fn verified_at(seen: &Seen, host: &[Instant], node: &[Instant]) {
    for (wire, expected) in [(0, host), (1, host), (2, node), (3, node)] {
        assert_eq!(times(seen, wire, VERIFY), expected, "wire {wire}");
        // The line is free after 72 bytes and the gap: (72 + 12) * 8 ns. The verify packet of the
        // other end has arrived before.
        let answers: Vec<_> = expected.iter().map(|at| *at + Duration::from_ns(672)).collect();
        assert_eq!(times(seen, wire, RESPOND), answers, "wire {wire}");
    }
}

/// Whether the frames on a wire between two times are preemptable. There must be at least one.
fn preempts(seen: &Seen, wire: u16, [from, until]: [Instant; 2]) -> bool {
    let frames = seen.iter().filter(|packet| {
        packet.0 == wire
            && from <= packet.1
            && packet.1 < until
            && ![VERIFY, RESPOND].contains(&packet.2)
    });
    let smds: Vec<u8> = frames.map(|packet| packet.2).collect();
    assert!(!smds.is_empty(), "no frame on wire {wire} from {from} to {until}");
    let all = smds.iter().all(|smd| STARTS.contains(smd));
    assert!(all || smds.iter().all(|smd| *smd == EXPRESS), "{smds:x?}");
    all
}

#[test]
fn links_are_verified_once() {
    let seen = seen(&preempting());
    verified_at(&seen, &[ms(0)], &[ms(0)]);
    assert!((0..4).all(|wire| preempts(&seen, wire, [Instant::from_ns(1_298), ms(60)])));
}

/// The partner of a node that returns verifies again, because it may be another node.
#[test]
fn a_node_that_comes_back_is_verified_again() {
    let outages = vec![Outage { station: 1, from: ms(10), until: Some(ms(40)) }];
    let seen = seen(&Config { outages, ..preempting() });
    verified_at(&seen, &[ms(0)], &[ms(0), ms(40)]);
    assert!(preempts(&seen, 2, [ms(1), ms(10)]));
    assert!(!preempts(&seen, 2, [ms(10), ms(40)]), "whole frames to a link that is down");
    assert!(preempts(&seen, 2, [ms(41), ms(60)]));
    assert!(preempts(&seen, 3, [ms(41), ms(60)]));
    assert!(preempts(&seen, 1, [ms(1), ms(60)]), "the other link stays up");
}

/// A cut of one direction takes the link down at both ends.
#[test]
fn a_cable_that_is_mended_is_verified_again() {
    for ways in [&[0][..], &[1], &[0, 1]] {
        let mut config = preempting();
        ways.iter().for_each(|way| {
            config.network.cables[1].faults[*way].cuts = vec![(ms(10), ms(20))];
        });
        let seen = seen(&config);
        verified_at(&seen, &[ms(0)], &[ms(0), ms(20)]);
        assert!(preempts(&seen, 2, [ms(21), ms(60)]));
        assert!(preempts(&seen, 3, [ms(21), ms(60)]));
    }
}
