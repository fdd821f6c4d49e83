//! No TLP is lost, duplicated, or reordered against the rules of PCIe.

use crate::simulation::worlds::*;
use wire::tlp::{Class, Packet, Tlp};

/// TLPs by point, direction and class.
#[derive(Default)]
struct Seen {
    tlps: [[[Vec<Tlp>; 3]; 2]; 2],
    last: [[Instant; 2]; 2],
    sent: Vec<u8>,
    received: Vec<u8>,
    frames: usize,
    commands: Vec<CommandRecord>,
    up: usize,
}

struct Watch(Rc<RefCell<Seen>>);

impl Observer for Watch {
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {
        // Ignores configuration requests, because those to the switch itself pass only one point.
        if matches!(tlp.packet, Packet::ConfigRead(_) | Packet::ConfigWrite(_)) {
            return;
        }
        let place = match point {
            Point::RootPort(_) => 0,
            Point::DevicePort(_) => 1,
            other => panic!("no TLPs at {other:?}"),
        };
        let mut seen = self.0.borrow_mut();
        let last = &mut seen.last[place][usize::from(up)];
        assert!(*last <= at, "time of a point goes forward");
        *last = at;
        // Ignores upward completions, because those of configuration requests cannot be identified.
        let answer = matches!(tlp.packet, Packet::Completion(_)) && up;
        if !answer {
            let class = tlp.class().index();
            seen.tlps[place][usize::from(up)][class].push(tlp.clone());
        }
    }

    fn stream(&mut self, _: Instant, point: Point, sent: bool, bytes: &[u8]) {
        let mut seen = self.0.borrow_mut();
        match (point, sent) {
            (Point::TunnelDevice(_), true) => seen.sent.extend_from_slice(bytes),
            (Point::TunnelHost(_), false) => seen.received.extend_from_slice(bytes),
            _ => {}
        }
    }

    fn command(&mut self, record: &CommandRecord) {
        assert_eq!(record.breakdown.total(), record.until - record.since, "{record:?}");
        self.0.borrow_mut().commands.push(*record);
    }

    fn link(&mut self, _: Instant, _: Point, change: LinkChange) {
        assert_eq!(change, LinkChange::Up);
        self.0.borrow_mut().up += 1;
    }

    fn ethernet_frame(&mut self, _: Instant, _: Point, bytes: &[u8]) {
        assert!((60..=1518).contains(&bytes.len()), "a frame of {} bytes", bytes.len());
        self.0.borrow_mut().frames += 1;
    }
}

fn watch(config: &Config) -> Seen {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut world = World::new(config).expect("a valid plan");
    world.observe(Box::new(Watch(seen.clone())));
    let report = world.run().expect("it ends");
    check(&report);
    assert_eq!(run(config).digest, report.digest, "watching changes nothing");
    check_errors(&world);
    drop(world);
    Rc::into_inner(seen).expect("the world is gone").into_inner()
}

#[test]
fn every_tlp_passes_once_and_in_order() {
    let work = Workload::Fio(fio(Rw::RandRw, 8192, 8));
    for config in
        [Config::nvme_tsn_tcp(work.clone(), Rate::G1), Config::nvme_tsn_tunnel(work, pipe())]
    {
        let seen = watch(&config);
        for class in Class::ALL {
            let (root, device) = (&seen.tlps[0], &seen.tlps[1]);
            let up = (&device[1][class.index()], &root[1][class.index()]);
            // TLPs in transit at the end have not passed the second point.
            assert!(up.0.len() - up.1.len() <= 2, "{class:?}: {} {}", up.0.len(), up.1.len());
            assert_eq!(&up.0[..up.1.len()], &up.1[..], "{class:?} going up");
            let down = (&root[0][class.index()], &device[0][class.index()]);
            assert!(down.0.len() - down.1.len() <= 2, "{class:?}");
            assert_eq!(&down.0[..down.1.len()], &down.1[..], "{class:?} going down");
        }
        assert!(seen.tlps[0][1][0].len() > 100, "data went up");
        assert!(seen.sent.starts_with(&seen.received), "the stream is one of bytes in order");
        assert!(seen.received.len() > 100_000);
    }
}

#[test]
fn frames_can_be_captured() {
    let seen = watch(&Config::nvme_tsn_tsn(Workload::Fio(fio(Rw::Read, 4096, 1)), Rate::G1));
    assert!(seen.frames > 64);
    assert_eq!(seen.up, 2, "both ends of the link");
    let offsets: Vec<u64> = seen.commands.iter().map(|command| command.offset).collect();
    assert_eq!(offsets, (0..64).map(|block| block * 4096).collect::<Vec<_>>());
    assert!(
        seen.commands
            .iter()
            .all(|command| command.op == sim::measure::Op::Read && command.length == 4096)
    );
}
