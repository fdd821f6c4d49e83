//! A switch behind a switch.

use crate::simulation::worlds::*;
use sim::world::LowerConfig;

/// One drive at the first switch, and two drives at a second switch behind it.
fn cascade(workload: Workload) -> Config {
    let upper = host(workload.clone(), vec![(pipe(), drive(0, Timing::NULL))]);
    let ports = (1..3).map(|number| (pipe(), drive(number, Timing::NULL))).collect();
    let Attached::Switch(lower) = host(workload, ports).attached else { unreachable!("a switch") };
    let mut config = config(vec![upper], NetworkConfig::default());
    let link = switch(&mut config).ports[0].link;
    let lower = LowerConfig { transport: pipe(), second: None, link, switch: lower };
    switch(&mut config).switches.push(lower);
    config
}

#[test]
fn a_host_reads_and_writes_through_two_switches() {
    let plan = cascade(Workload::Fio(fio(Rw::RandRw, 4096, 8)));
    let (report, _) = twice(&plan);
    assert!(report.hosts[0].verified > 0);
    assert_eq!(report.hosts[0].drive_bytes.len(), 3);
    let striped = fio(Rw::RandRead, 12 << 10, 1);
    let striped = sim::workload::Fio { stripe: 4096, ..striped };
    let mut world = World::new(&cascade(Workload::Fio(striped))).expect("a valid plan");
    let report = world.run().expect("it ends");
    check(&report);
    let bytes = &report.hosts[0].drive_bytes;
    assert!(bytes.iter().all(|one| *one == bytes[0] && *one > 0), "{bytes:?}");
    check_errors(&world);
}

#[test]
fn a_hot_reset_of_the_upper_port_resets_what_is_below_the_lower() {
    const COMMAND: u16 = 0x04;
    // The first switch is on bus 1, its ports on bus 2. Below one port is a drive (bus 3), below
    // the other the second switch (bus 8). The ports of the second switch (bus 9) have drives
    // (buses 10 and 15). Other buses are reserved for hot-plug.
    const UPPER: Bdf = Bdf::new(2, 1, 0);
    const BUSES: [(Bdf, u32); 3] = [
        (Bdf::new(8, 0, 0), 0x13_09_08),
        (Bdf::new(9, 0, 0), 0x0e_0a_09),
        (Bdf::new(9, 1, 0), 0x13_0f_09),
    ];
    const DRIVES: [Bdf; 3] = [Bdf::new(3, 0, 0), Bdf::new(10, 0, 0), Bdf::new(15, 0, 0)];
    let gap = Duration::from_ms(100);
    let workload = Workload::ConfigReads { count: 5, gap };
    let (mut world, turns) = watched(&cascade(workload));
    run_to(&mut world, |host| host.latency.count() > 0);
    assert_eq!(turns.0.take().links.len(), 8, "four links, two ends each");
    let ([before, after], _) = run_program(&mut world, |bus| async move {
        let mut commands = [[0; 3]; 2];
        for (command, drive) in commands[0].iter_mut().zip(DRIVES) {
            *command = bus.config_read(drive, COMMAND, 2).await;
        }
        bus.config_write(UPPER, 0x3e, 2, 1 << 6).await;
        bus.sleep(Duration::from_ms(2)).await;
        bus.config_write(UPPER, 0x3e, 2, 0).await;
        for (bridge, buses) in BUSES {
            bus.config_write(bridge, 0x18, 4, buses).await;
        }
        for (command, drive) in commands[1].iter_mut().zip(DRIVES) {
            *command = bus.config_read(drive, COMMAND, 2).await;
        }
        commands
    });
    let enabled = |command: u32| command != 0xffff && command & 6 == 6;
    assert!(before.iter().all(|command| enabled(*command)), "{before:x?}");
    assert_eq!(after, [before[0], 0, 0], "of the drives behind the second switch alone");
    assert_eq!(turns.0.take().links, [], "links stay up");
}

#[test]
fn switches_of_a_cascade_have_ports() {
    let mut plan = cascade(Workload::ConfigReads { count: 1, gap: Duration::ZERO });
    switch(&mut plan).switches[0].switch = SwitchConfig::new(256, Vec::new());
    let error = World::new(&plan).err().expect("no ports").to_string();
    assert_eq!(error, "host 0: a switch needs 1 to 32 ports");
}

/// The host's own links stay up, as in live nodes.
#[test]
fn a_lower_link_that_is_lost_comes_back_by_itself() {
    const BEHIND: Bdf = Bdf::new(10, 0, 0);
    let gap = Duration::from_ms(100);
    let mut plan = cascade(Workload::ConfigReads { count: 25, gap });
    let lower = &mut switch(&mut plan).switches[0];
    lower.transport = tcp([0, 1]);
    lower.switch.ports[0].transport = tcp([1, 2]);
    plan.network = bridged(vec![station(Rate::G1); 3], 1, bridge::Mode::StoreAndForward, None);
    plan.outages = vec![Outage { station: 1, from: ms(100), until: Some(ms(200)) }];
    let error = World::new(&plan).err().expect("a switch node").to_string();
    assert_eq!(error, "outage 0: its station is not a station of a device node");
    plan.outages[0].station = 2;
    let (mut world, turns) = watched(&plan);
    let (seen, _) = run_program(&mut world, |bus| async move {
        let mut gone = Vec::new();
        for pause in [80, 40, 1_500] {
            bus.sleep(Duration::from_ms(pause)).await;
            gone.push(bus.config_read(BEHIND, 0, 4).await == u32::MAX);
        }
        gone
    });
    assert_eq!(seen, [false, true, false], "gone, and back");
    let lower = |(_, point, _): &&(_, Point, bool)| *point == Point::TunnelHost(2);
    let host = turns.0.take().links;
    assert_eq!(host.iter().filter(lower).count(), 3, "up, down, up: {host:?}");
    let own = |(_, point, _): &&(_, Point, bool)| matches!(point, Point::TunnelHost(0 | 1));
    assert!(host.iter().filter(own).all(|(.., up)| *up), "{host:?}");
}
