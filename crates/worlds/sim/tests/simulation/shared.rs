//! Drives that several hosts use at the same time, each with a controller of its own.

use crate::simulation::worlds::*;
use nvme::initiator::{Driver, Io, Registration, Settings};
use pcie::{Bus, Ram};
use sim::world::{ControllerPort, HostReport, SharedDrive};
use wire::nvme::{ReservationType, StatusCode};
use workload::BringUp;

/// Hosts at a bridge that share a drive, each with the workload of its number.
fn plan(workloads: impl IntoIterator<Item = Workload>) -> Config {
    let workloads: Vec<_> = workloads.into_iter().collect();
    let count = workloads.len();
    let stations = vec![station(Rate::G1); count + 1];
    let network = bridged(stations, 1, bridge::Mode::StoreAndForward, None);
    let flash = Timing::SAMSUNG_970_PRO;
    let hosts = workloads.into_iter().enumerate();
    let hosts = hosts.map(|(at, work)| host(work, vec![(tcp([at, count]), drive(0, flash))]));
    let controller = |at| ControllerPort { port: [at, 0], host_identifier: [at as u8 + 1; 16] };
    let shared = vec![SharedDrive { controllers: (0..count).map(controller).collect() }];
    Config { shared, ..config(hosts.collect(), network) }
}

/// A workload on the part of the drive with this number.
fn part(rw: Rw, number: u64) -> Workload {
    Workload::Fio(Fio { size: 64 << 10, offset: number << 16, ..Fio::new(rw, 4096, 4) })
}

fn registration(number: usize, kind: Option<ReservationType>) -> Option<Registration> {
    Some(Registration { nsid: 1, key: number as u64 + 1, kind })
}

/// The driver of a host's only drive, which polls.
async fn boot(bus: Bus, ram: Rc<RefCell<Ram>>, registration: Option<Registration>) -> Driver {
    bus.sleep(Duration::from_ms(2)).await;
    let driver = Settings { interrupts: false, registration, ..Settings::default() };
    let enumeration = pcie::enumerate::Settings::default();
    let drives = BringUp { bus, ram, enumeration, driver }.boot().await;
    drives.expect("the drive starts").remove(0).driver
}

/// Executes a command on block 8, with `byte` in every byte of the buffer. Returns the status, and
/// the first byte of the buffer.
async fn execute(
    bus: &Bus,
    ram: &Rc<RefCell<Ram>>,
    driver: &mut Driver,
    op: Op,
    byte: u8,
) -> (StatusCode, u8) {
    let buffer = ram.borrow_mut().allocate(4096, 4096).expect("memory");
    ram.borrow_mut().write(buffer, &[byte; 4096]).expect("memory");
    let io = Io { op, nsid: 1, slba: 8, blocks: 8, buffer };
    driver.submit(bus.now(), 0, io).expect("an empty queue");
    loop {
        if let Some(done) = driver.reap(0).first() {
            let mut first = [0];
            ram.borrow_mut().read(buffer, &mut first).expect("memory");
            return (done.status.code, first[0]);
        }
        bus.sleep(Duration::from_us(10)).await;
    }
}

/// The first host acquires a reservation and writes. The second one reads what the first one wrote,
/// and may not write.
#[test]
fn second_host_reads_the_data_and_sees_the_reservation_of_the_first() {
    let mut world = World::new(&plan([Workload::Idle, Workload::Idle])).expect("a valid plan");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let ram = world.memory(0);
    world.run_program(0, |bus| async move {
        let kind = Some(ReservationType::WriteExclusive);
        let mut driver = boot(bus.clone(), ram.clone(), registration(0, kind)).await;
        let (status, _) = execute(&bus, &ram, &mut driver, Op::Write, 7).await;
        assert_eq!(status, StatusCode::SUCCESS);
    });
    let (ram, log) = (world.memory(1), seen.clone());
    world.run_program(1, |bus| async move {
        bus.sleep(Duration::from_ms(8)).await;
        let mut driver = boot(bus.clone(), ram.clone(), registration(1, None)).await;
        for op in [Op::Write, Op::Read] {
            let result = execute(&bus, &ram, &mut driver, op, 9).await;
            log.borrow_mut().push(result);
        }
    });
    assert_eq!(world.run_until(ms(20)), Ok(false), "an idle host never ends");
    let expected = [(StatusCode::RESERVATION_CONFLICT, 9), (StatusCode::SUCCESS, 7)];
    assert_eq!(*seen.borrow(), expected);
}

#[test]
fn writes_of_unregistered_host_conflict() {
    let mut config = plan([0, 1, 2].map(|number| part(Rw::RandRw, number)));
    let kind = Some(ReservationType::WriteExclusiveRegistrantsOnly);
    config.hosts[0].software.registration = registration(0, kind);
    config.hosts[1].software.registration = registration(1, kind);
    config.hosts[2].software.start_delay = Duration::from_ms(5);
    let mut world = World::new(&config).expect("a valid plan");
    let report = world.run().expect("it ends");
    let [first, second, third] = &report.hosts[..] else { panic!("three hosts") };
    for host in [first, second] {
        assert_eq!((host.failures, host.conflicts, host.mismatches), (0, 0, 0));
        assert!(host.verified > 0, "its reads are compared");
    }
    assert_eq!((third.failures, third.mismatches), (third.conflicts, 0));
    let (reads, refused) = (third.latency.count(), third.conflicts);
    assert_eq!(reads + refused, 16);
    assert!(reads > 0 && refused > 0 && third.verified > 0, "{reads} reads");
    let (compared, differ) = world.compare_contents();
    assert!(compared > 0 && differ == 0, "{differ} of {compared} differ");
    assert_eq!(run(&config).digest, report.digest, "the same plan, the same digest");
}

/// The latencies of the first of some hosts, which read at the same time.
fn mean_of_first(hosts: u64, shared: bool) -> u64 {
    let mut config = plan((0..hosts).map(|number| part(Rw::RandRead, number)));
    for host in &mut config.hosts {
        let Attached::Switch(switch) = &mut host.attached else { panic!("a switch") };
        let timing = &mut switch.ports[0].drive.timing;
        (timing.channels, timing.luns) = (1, 1);
        (timing.read_lsb, timing.read_msb) = (Duration::from_us(500), Duration::from_us(500));
    }
    if !shared {
        config.shared.clear();
    }
    run(&config).hosts[0].latency.summary().mean_ns
}

#[test]
fn hosts_contend_for_the_media_of_their_drive() {
    let (separate, together) = (mean_of_first(3, false), mean_of_first(3, true));
    assert!(together > 2 * separate, "{together} ns, {separate} ns with drives of their own");
}

/// Two hosts that write for 30 ms. The first one holds a reservation. The drive loses power from 10 ms
/// to 12 ms.
fn with_outage() -> Config {
    let runtime = Some(Duration::from_ms(30));
    let longer = |work| match work {
        Workload::Fio(fio) => Workload::Fio(Fio { runtime, time_based: true, ..fio }),
        other => other,
    };
    let mut config = plan([0, 1].map(|number| longer(part(Rw::RandWrite, number))));
    let kind = Some(ReservationType::WriteExclusive);
    config.hosts[0].software.registration = registration(0, kind);
    config.hosts[1].software.start_delay = Duration::from_ms(4);
    config.outages = vec![Outage { station: 2, from: ms(10), until: Some(ms(12)) }];
    config
}

/// A reservation does not outlive the power of the drive, so the holder acquires it again.
#[test]
fn power_loss_of_the_drive_ends_reservation_until_its_holder_returns() {
    let mut world = World::new(&with_outage()).expect("a valid plan");
    world.run_until(ms(9)).expect("it runs");
    let conflicts = |report: &Report| report.hosts.iter().map(|host| host.conflicts).sum::<u64>();
    let before = conflicts(&world.report());
    let HostReport { commands, .. } = world.report().hosts[0];
    let report = world.run().expect("it ends");
    assert!(before > 0 && conflicts(&report) > before, "{before} conflicts before");
    assert_eq!(report.hosts[0].conflicts, 0);
    assert!(report.hosts[0].commands > commands, "it goes on");
    assert_eq!(world.compare_contents().1, 0);
}

/// The first completion after the outage is that of Reservation Register.
#[test]
fn lost_completion_of_registration_is_repeated_after_the_time_limit() {
    let mut config = with_outage();
    let faults = &mut switch(&mut config).ports[0].drive.faults;
    faults.push("lost-completion,at=11ms".parse().expect("a fault"));
    for host in &mut config.hosts {
        let Attached::Switch(switch) = &mut host.attached else { panic!("a switch") };
        // The time limit of commands is 5 s later.
        switch.survive = Duration::from_ms(100);
    }
    config.limits.time = ms(12_000);
    let report = run(&config);
    assert_eq!(report.hosts[0].conflicts, 0);
    assert!(report.time > ms(5_000) && report.hosts[0].bytes > 0, "{}", report.time);
}

#[test]
fn blocks_that_another_host_writes_are_not_compared() {
    let config = plan([part(Rw::RandRead, 0), part(Rw::Write, 0), part(Rw::RandRead, 1)]);
    assert_eq!(config.uncompared().into_iter().collect::<Vec<_>>(), [(0, 1)]);
    let report = run(&config);
    let verified: Vec<_> = report.hosts.iter().map(|host| host.verified > 0).collect();
    assert_eq!(verified, [false, false, true], "the second one only writes");
    assert!(report.hosts.iter().all(|host| host.mismatches + host.failures == 0));
}

#[test]
fn shared_drives_that_contradict_the_plan_are_refused() {
    type Change = fn(&mut Config);
    let changes: [(Change, &str); 6] = [
        (|config| config.shared[0].controllers[0].port = [0, 1], "a port of a host's own switch"),
        (|config| config.shared[0].controllers.reverse(), "in the order of their hosts"),
        (|config| config.shared.push(config.shared[0].clone()), "has another drive"),
        (|config| switch(config).ports[0].transport = tcp([0, 1]), "at different stations"),
        (|config| switch(config).ports[0].drive.size *= 2, "have different drives"),
        (
            |config| {
                config.shared.clear();
                config.hosts[0].software.registration = registration(0, None);
            },
            "has a drive of its own",
        ),
    ];
    for (change, expected) in changes {
        let mut config = plan([part(Rw::Read, 0), part(Rw::Read, 1)]);
        change(&mut config);
        let error = World::new(&config).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
