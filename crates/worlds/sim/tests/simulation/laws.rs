//! Laws that hold in every network: latency, utilisation, Little's law.

use crate::simulation::worlds::*;
use node::push::Mode;
use sim::drive::{Access, Media};

#[test]
fn configuration_read_takes_time_of_its_way() {
    let reads = Workload::ConfigReads { count: 10, gap: Duration::from_us(5) };
    for rate in [Rate::M100, Rate::G1, Rate::G10, Rate::G100] {
        let report = run(&Config::nvme_tsn_tcp(reads.clone(), rate));
        let least = report.hosts[0].config_reads.summary().min_ns;
        // The bytes of request and completion: preamble, 18 of Ethernet, 40 of IP and TCP, 12 of
        // the tunnel frame, 12 of the TLP, and 4 of data in the completion.
        let line = rate.duration(8 + 18 + 40 + 12 + 12) + rate.duration(8 + 18 + 40 + 12 + 16);
        let ways = Duration::from_ns(2 * 10 + 4);
        assert!(least >= (line + ways).as_ns(), "{rate:?}: {least} ns");
    }
}

#[test]
fn a_faster_network_is_never_slower() {
    let dd = Workload::Dd { write: false, bs: 4096, count: 20 };
    let mean =
        |rate| run(&Config::nvme_tsn_tcp(dd.clone(), rate)).hosts[0].latency.summary().mean_ns;
    let means: Vec<_> = [Rate::G1, Rate::G10, Rate::G25, Rate::G50, Rate::G100].map(mean).to_vec();
    assert!(means.is_sorted_by(|slower, faster| slower >= faster), "{means:?}");
    let direct = run(&Config::nvme_tsn_direct(dd)).hosts[0].latency.summary().mean_ns;
    assert!(direct < *means.last().expect("five rates"));
}

#[test]
fn busy_wire_is_utilised_up_to_its_rate() {
    let work =
        Fio { runtime: Some(Duration::from_ms(20)), time_based: true, ..fio(Rw::Read, 4096, 32) };
    let report = run(&Config::nvme_tsn_tcp(Workload::Fio(work), Rate::G1));
    check(&report);
    let wire = report.links.iter().find(|link| link.name == "station 1 to station 0");
    let wire = wire.expect("the way of the data");
    assert!((950_000..=1_000_000).contains(&wire.utilisation_ppm), "{wire:?}");
    // The application's throughput is lower than the rate of the wire.
    let bytes = report.hosts[0].throughput();
    assert!(bytes < 125_000_000 * 1460 / 1538 && bytes > 100_000_000, "{bytes} bytes/s");
}

/// As in fio, `runtime` shortens a job, and `time_based` and `io_size` may lengthen it. The range
/// of the job does not change.
#[test]
fn jobs_end_by_their_size_or_their_time() {
    let transfers = |work: Fio| {
        let report = run(&Config::nvme_tsn_tcp(Workload::Fio(work), Rate::G10));
        (report.hosts[0].latency.summary().n, report.hosts[0].span)
    };
    // 64 blocks of 4 KiB at a depth of 1, each of which takes at least 20 us.
    let whole = fio(Rw::RandRead, 4096, 1);
    let (count, span) = transfers(whole.clone());
    assert_eq!(count, 64);
    let long = Some(Duration::from_ps(span.as_ps() * 4));
    assert_eq!(transfers(Fio { runtime: long, ..whole.clone() }), (count, span));
    let half = Some(Duration::from_ps(span.as_ps() / 2));
    let (shorter, _) = transfers(Fio { runtime: half, ..whole.clone() });
    assert!((28..=36).contains(&shorter), "{shorter} of 64 in half of the time");
    let (looped, _) = transfers(Fio { runtime: long, time_based: true, ..whole.clone() });
    assert!((248..=264).contains(&looped), "{looped}: 4 × 64 in 4 × the time");
    assert_eq!(transfers(Fio { loops: 2, ..whole.clone() }).0, 128);
    assert_eq!(transfers(Fio { io_size: Some(100 * 4096), ..whole.clone() }).0, 100);
    assert_eq!(transfers(Fio { number_ios: Some(5), ..whole }).0, 5);
}

/// Little's law, L = λW: a closed loop has `iodepth` commands in flight.
#[test]
fn commands_in_flight_follow_littles_law() {
    for iodepth in [1, 4, 16] {
        let work = Fio {
            runtime: Some(Duration::from_ms(30)),
            time_based: true,
            ..fio(Rw::RandRead, 4096, iodepth)
        };
        let report = run(&Config::nvme_tsn_tcp(Workload::Fio(work), Rate::G10));
        let host = &report.hosts[0];
        let in_flight = host.latency.sum_ps() * 1000 / u128::from(host.span.as_ps());
        let want = iodepth as u128 * 1000;
        assert!(in_flight.abs_diff(want) * 20 <= want, "{in_flight} of {want} thousandths");
    }
}

#[test]
fn depth_hides_latency_until_the_wire_is_full() {
    let throughput = |iodepth| {
        let work = Fio {
            runtime: Some(Duration::from_ms(10)),
            time_based: true,
            ..fio(Rw::Read, 4096, iodepth)
        };
        run(&Config::nvme_tsn_tcp(Workload::Fio(work), Rate::G1)).hosts[0].throughput()
    };
    let (one, four, sixteen) = (throughput(1), throughput(4), throughput(16));
    // Sequential reads wait for the same die, so four at once are not four times as fast.
    assert!(four > 2 * one && sixteen > four, "{one} {four} {sixteen}");
}

#[test]
fn a_rate_holds() {
    let rate = 10_000_000;
    let work = Fio {
        runtime: Some(Duration::from_ms(20)),
        time_based: true,
        rate: Some(rate),
        ..fio(Rw::Read, 4096, 4)
    };
    let config = Config::nvme_tsn_tunnel(Workload::Fio(work), pipe());
    let got = run(&config).hosts[0].throughput();
    assert!(got <= rate * 102 / 100 && got >= rate * 95 / 100, "{got}");
}

#[test]
fn null_timing_removes_media_latency() {
    let dd = Workload::Dd { write: true, bs: 4096, count: 10 };
    let mut config = Config::nvme_tsn_direct(dd);
    let brief = run(&config).hosts[0].root_port.summary().mean_ns;
    if let sim::world::Attached::Direct(drive) = &mut config.hosts[0].attached {
        drive.timing = Timing::NULL;
    }
    let null = run(&config).hosts[0].root_port.summary().mean_ns;
    // The write buffer takes 4.0 us and 0.46 us. The times on the wire may differ by a DLLP.
    assert!((brief - null).abs_diff(4_460) <= 10, "{brief} {null}");
}

/// A custom medium in which every access takes 7 us.
#[derive(Debug)]
struct Steady;

impl Media for Steady {
    fn read(&mut self, _: Instant, _: u64, _: usize) -> Access {
        Access { firmware: Duration::ZERO, media: Duration::from_us(7) }
    }

    fn write(&mut self, now: Instant, length: usize) -> Access {
        self.read(now, 0, length)
    }

    fn other(&mut self, now: Instant) -> Access {
        self.read(now, 0, 0)
    }
}

#[test]
fn custom_media_determine_latency() {
    let dd = Workload::Dd { write: false, bs: 4096, count: 10 };
    let mut config = Config::nvme_tsn_direct(dd);
    let mut mean = |change: fn(&mut DriveConfig)| {
        let Attached::Direct(drive) = &mut config.hosts[0].attached else { panic!("a drive") };
        change(drive);
        run(&config).hosts[0].latency.summary().mean_ns
    };
    let null = mean(|drive| drive.timing = Timing::NULL);
    let steady = mean(|drive| drive.media = |_, _| Box::new(Steady));
    assert!((steady - null).abs_diff(7_000) <= 10, "{null} {steady}");
}

/// Reads return only data that were written to the same namespace.
#[test]
fn a_drive_has_its_namespaces_apart() {
    let mut config = Config::nvme_tsn_direct(Workload::Fio(fio(Rw::RandRw, 4096, 4)));
    let Attached::Direct(drive) = &mut config.hosts[0].attached else { panic!("a drive") };
    drive.more = vec![1 << 20, 2 << 20];
    let mut digests = Vec::new();
    for nsid in 1..=3 {
        jobs(&mut config).nsid = nsid;
        let report = run(&config);
        check(&report);
        assert!(report.hosts[0].verified > 0);
        digests.push(report.digest);
    }
    digests.dedup();
    assert_eq!(digests.len(), 3, "each has contents of its own");
    jobs(&mut config).nsid = 4;
    let error = World::new(&config).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("host 0") && error.contains("namespace"), "{error}");
}

/// The memory of a world depends on data in transit, not on the run time.
#[test]
fn memory_in_use_does_not_grow_with_time() {
    let modes = [Mode::Off, Mode::All];
    for (over_tcp, push) in [true, false].into_iter().flat_map(|tcp| modes.map(|push| (tcp, push)))
    {
        let work = Fio {
            runtime: Some(Duration::from_ms(50)),
            time_based: true,
            ..fio(Rw::RandRw, 4096, 8)
        };
        let config = match over_tcp {
            true => Config::nvme_tsn_tcp(Workload::Fio(work), Rate::G1),
            false => Config::nvme_tsn_tunnel(Workload::Fio(work), pipe()),
        };
        let mut config = config;
        config.hosts[0].root.push = push;
        let mut world = World::new(&config).expect("a valid plan");
        let mut most = 0;
        let mut at = Instant::ZERO;
        while !world.run_until(at).expect("it ends") {
            most = most.max(world.tlps_in_flight());
            at += Duration::from_us(500);
        }
        // 8 commands of 16 TLPs of data, with their requests.
        assert!((1..400).contains(&most), "{most}");
        assert!(world.tlps_in_flight() <= 4, "{} at the end", world.tlps_in_flight());
    }
}
