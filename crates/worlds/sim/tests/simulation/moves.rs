//! Device nodes that move from one host to another during a simulation.

use crate::simulation::worlds::*;
use sim::world::Move;

/// Two hosts and two drives. The first host uses both drives, until one of them moves to the second
/// host.
pub fn plan(first: Rw, second: Rw) -> Config {
    let network = bridged(vec![station(Rate::G1); 4], 1, bridge::Mode::StoreAndForward, None);
    let runtime = Some(Duration::from_ms(12));
    let work = |rw, numjobs, runtime| {
        let fio = Fio {
            numjobs,
            runtime,
            time_based: runtime.is_some(),
            size: 128 << 10,
            ..Fio::new(rw, 4096, 4)
        };
        Workload::Fio(fio)
    };
    let flash = Timing::SAMSUNG_970_PRO;
    let ports = vec![(tcp([0, 2]), drive(0, flash)), (tcp([0, 3]), drive(1, flash))];
    let one = host(work(first, 2, runtime), ports);
    let two = host(work(second, 1, None), vec![(tcp([1, 2]), drive(0, flash))]);
    let at = ms(6);
    let moves = vec![Move { at, from: [0, 0], to: [1, 0] }];
    Config { moves, ..config(vec![one, two], network) }
}

#[test]
fn moved_drive_keeps_its_data() {
    for (first, second) in [(Rw::RandWrite, Rw::Read), (Rw::RandRw, Rw::RandRw)] {
        let config = plan(first, second);
        let (report, happened) = recorded(&config);
        check(&report);
        let [one, two] = &report.hosts[..] else { panic!("two hosts") };
        assert_eq!((one.failures, two.failures), (0, 0), "every command ends, and well");
        assert_eq!((one.mismatches, two.mismatches), (0, 0));
        assert_eq!(two.latency.count(), 32, "all of the second host's transfers");
        assert!(two.verified > 0, "what the first host wrote was read and compared");
        // The first host lost only this link, and continued with the other drive.
        let down =
            |(_, point, up): &&(_, _, bool)| matches!(point, Point::TunnelHost(0 | 1)) && !up;
        let downs: Vec<_> = happened.links.iter().filter(down).collect();
        let [(at, Point::TunnelHost(0), _)] = downs[..] else { panic!("{downs:?}") };
        assert!(*at >= config.moves[0].at, "{at}");
        assert!(one.drive_bytes[0] > 0 && one.drive_bytes[1] > one.drive_bytes[0]);
        assert!(one.span >= Duration::from_ms(12), "it went on to its end: {}", one.span);
        assert_eq!(run(&config).digest, report.digest, "the same plan, the same digest");
    }
}

/// The data of the first host are lost before the drive moves, or after the move but before the
/// second host enumerates.
#[test]
fn data_lost_by_volatile_drive_is_unknown_after_move() {
    for (runtime, moved, off) in [(12, 6, 7), (3, 12, 6)] {
        let mut config = plan(Rw::RandWrite, Rw::Read);
        config.moves[0].at = ms(moved);
        config.outages = vec![Outage { station: 2, from: ms(off), until: Some(ms(off + 1)) }];
        jobs(&mut config).runtime = Some(Duration::from_ms(runtime));
        switch(&mut config).ports[0].drive.volatile = true;
        let report = run(&config);
        let [one, two] = &report.hosts[..] else { panic!("two hosts") };
        assert!(one.drive_bytes[0] > 0, "something was lost");
        assert_eq!((two.verified, two.mismatches), (256, 0), "outage at {off} ms");
    }
}

#[test]
fn host_waits_for_drive_not_yet_moved() {
    let mut config = plan(Rw::Read, Rw::Read);
    config.moves[0].at = ms(100_000);
    let mut world = World::new(&config).unwrap();
    let done = world.run_until(ms(1_500)).unwrap();
    assert!(!done, "the second host waits for its drive");
    let report = world.report();
    assert_eq!(report.hosts[1].commands, 0);
    assert_eq!(report.hosts[0].failures, 0);
    assert!(report.hosts[0].latency.count() > 0);
}

#[test]
fn moves_that_contradict_the_plan_are_refused() {
    type Change = fn(&mut Config);
    let changes: [(Change, &str); 5] = [
        (|config| config.moves[0].to = [1, 7], "a port of one host's switch"),
        (|config| config.moves[0].from = [0, 1], "both ports must lead to the same"),
        (|config| config.moves[0].to = [0, 1], "a port of another host's switch"),
        (|config| config.moves.push(config.moves[0]), "a port has more than one move"),
        (|config| config.moves[0].from = [4, 0], "a port of one host's switch"),
    ];
    for (change, expected) in changes {
        let mut config = plan(Rw::Read, Rw::Read);
        change(&mut config);
        let error = World::new(&config).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("move 0") && error.contains(expected), "{error}");
    }
}
