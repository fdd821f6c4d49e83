//! Device nodes that lose their power and return, and cables that are cut and repaired. The
//! simulation recovers, or reports an error.

use crate::simulation::worlds::*;
use proptest::prelude::*;
use sim::workload::{self, Operation, Replay};

fn outage(from: u64, until: Option<u64>) -> Outage {
    Outage { station: 1, from: ms(from), until: until.map(ms) }
}

/// 4000 transfers per second, up to `iodepth` at once.
fn paced(runtime: u64, iodepth: usize) -> Fio {
    let (runtime, rate) = (Some(Duration::from_ms(runtime)), Some(4_000 * 4096));
    Fio { runtime, time_based: true, rate, ..fio(Rw::RandRw, 4096, iodepth) }
}

fn lasting(runtime: u64) -> Workload {
    Workload::Fio(paced(runtime, 8))
}

/// 400 transfers per second, for long runs.
fn slow(runtime: u64) -> Workload {
    Workload::Fio(Fio { rate: Some(400 * 4096), ..paced(runtime, 8) })
}

fn with(workload: Workload, outages: Vec<Outage>) -> Config {
    Config { outages, ..Config::nvme_tsn_tcp(workload, Rate::G1) }
}

fn checked(config: &Config) -> (Report, Happened) {
    let (report, happened) = recorded(config);
    assert_eq!(run(config).digest, report.digest, "the same plan, the same digest");
    for host in &report.hosts {
        assert_eq!(host.mismatches, 0, "blocks that hold something else");
        assert_eq!(host.breakdown.total(), host.total, "stages sum to the time");
        assert_eq!(host.latency.count(), host.commands, "who failed has no latency");
    }
    (report, happened)
}

/// When the host's end of link 0 came up, or went down, in milliseconds.
fn turns(happened: &Happened, up: bool) -> Vec<u64> {
    let host = Point::TunnelHost(0);
    let turns = happened.links.iter().filter(|turn| (turn.1, turn.2) == (host, up));
    turns.map(|(at, ..)| at.as_ns() / 1_000_000).collect()
}

fn after(happened: &Happened, at: u64) -> usize {
    happened.commands.iter().filter(|record| record.since > ms(at)).count()
}

/// The node returns before the timeout of its peer. Its new TCP stack does not have the old
/// connection and resets it.
#[test]
fn a_node_that_restarts_is_found_again() {
    let (report, happened) = checked(&with(lasting(280), vec![outage(10, Some(40))]));
    let host = &report.hosts[0];
    assert_eq!(host.failures, 8, "all that were in flight");
    assert!(host.verified > 0);
    let (downs, ups) = (turns(&happened, false), turns(&happened, true));
    assert_eq!((downs.len(), ups.len()), (1, 2), "{happened:?}", happened = happened.links);
    assert!((40..60).contains(&downs[0]), "{downs:?}");
    assert!((downs[0] + 200..downs[0] + 210).contains(&ups[1]), "{ups:?}: after a pause");
    assert!(after(&happened, ups[1]) > 60, "and work goes on");
}

/// A configuration with a volatile drive, which loses its data without power.
fn volatile(workload: Workload, outages: Vec<Outage>) -> Config {
    let mut config = with(workload, outages);
    switch(&mut config).ports[0].drive.volatile = true;
    config
}

#[test]
fn a_drive_that_lost_its_data_is_a_new_one() {
    let work = Fio { rwmixread: 50, ..paced(500, 8) };
    let (report, happened) = checked(&volatile(Workload::Fio(work), vec![outage(100, Some(130))]));
    let host = &report.hosts[0];
    // The commands in flight fail, and so do the commands that waited for the drive.
    assert!((9..=16).contains(&host.failures), "{}", host.failures);
    let ups = turns(&happened, true);
    assert!(ups.len() == 2 && after(&happened, ups[1]) > 60, "reset, it is used again: {ups:?}");
    assert!(host.verified > 0);
}

/// A drive keeps its counters without power, unless it is volatile.
#[test]
fn a_drive_that_loses_its_power_in_use_counts_an_unsafe_shutdown() {
    let outages = vec![outage(10, Some(40)), outage(350, Some(380))];
    let counters = |config: &Config| {
        let mut world = World::new(config).unwrap();
        world.run().unwrap();
        let counters = world.drive_counters(0);
        (counters.power_cycles, counters.unsafe_shutdowns)
    };
    assert_eq!(counters(&with(lasting(600), outages.clone())), (3, 2));
    assert_eq!(counters(&volatile(lasting(600), outages)), (1, 0));
}

/// As [`with`], but a lost connection takes its link down.
fn frail(workload: Workload, outages: Vec<Outage>) -> Config {
    let mut config = with(workload, outages);
    switch(&mut config).survive = Duration::ZERO;
    config
}

/// The outage is longer than the loss limit, and attempts to connect fail until the node returns,
/// which no longer has the session.
#[test]
fn a_node_that_was_away_is_found_again() {
    let outages = vec![outage(10, Some(3_500))];
    for survives in [false, true] {
        let config = if survives { with } else { frail };
        let (report, happened) = checked(&config(slow(5_200), outages.clone()));
        assert_eq!(report.hosts[0].failures, 8);
        let (downs, ups) = (turns(&happened, false), turns(&happened, true));
        let down = if survives { 3_500..4_200 } else { 800..816 };
        assert!(down.contains(&downs[0]), "{downs:?}: the loss limit, or the node's return");
        assert!((3_500..4_500).contains(&ups[1]), "{ups:?}");
        assert!(after(&happened, ups[1]) > 60);
    }
}

#[test]
fn repeated_outages_are_survived() {
    let outages = [20, 320].map(|at| outage(at, Some(at + 20)));
    let (report, happened) = checked(&with(lasting(580), outages.to_vec()));
    assert_eq!(report.hosts[0].failures, 2 * 8);
    assert_eq!(turns(&happened, true).len(), 3);
}

/// The cable is repaired after the loss limit. The drive kept its power and is reset.
#[test]
fn a_cut_that_outlasts_the_loss_limit_is_mended() {
    let mut config = frail(lasting(1_100), Vec::new());
    cut(&mut config, &[(10, 1_000)]);
    let (report, happened) = checked(&config);
    assert_eq!(report.hosts[0].failures, 8);
    let ups = turns(&happened, true);
    assert!(ups.len() == 2 && (1_000..1_050).contains(&ups[1]), "{ups:?}");
    assert!(after(&happened, ups[1]) > 60);
}

/// Cuts the cable for these times, in ms.
fn cut(config: &mut Config, cuts: &[(u64, u64)]) {
    for faults in &mut config.network.cables[0].faults {
        faults.cuts = cuts.iter().map(|(from, until)| (ms(*from), ms(*until))).collect();
    }
}

/// Over TCP and raw Ethernet, with commands of both directions under way.
#[test]
fn cuts_within_the_survival_cost_no_command() {
    for is_raw in [false, true] {
        let mut config = with(slow(13_500), Vec::new());
        if is_raw {
            switch(&mut config).ports[0].transport = raw([0, 1], "none");
            switch(&mut config).max_payload = 1024;
        }
        cut(&mut config, &[(10, 1_000), (1_500, 1_600), (3_000, 11_000)]);
        let (report, happened) = checked(&config);
        let host = &report.hosts[0];
        assert_eq!((host.failures, turns(&happened, false)), (0, vec![]), "raw: {is_raw}");
        // The cut of 100 ms is below the loss limit.
        let of_host =
            happened.interruptions.iter().filter(|(_, at, _)| *at == Point::TunnelHost(0));
        let resumed: Vec<(u64, bool)> =
            of_host.map(|(at, _, resumed)| (at.as_ns() / 1_000_000, *resumed)).collect();
        assert!(
            matches!(
                resumed[..],
                [(_, false), (1_000..1_300, true), (_, false), (11_000..13_100, true)]
            ),
            "{resumed:?}"
        );
        assert!(after(&happened, 13_100) > 60 && host.verified > 100, "{}", host.verified);
    }
}

/// A cut that lasts longer than the survival.
#[test]
fn a_session_that_was_given_up_begins_again() {
    let mut config = with(slow(3_500), Vec::new());
    switch(&mut config).survive = Duration::from_ms(500);
    cut(&mut config, &[(10, 2_500)]);
    let (report, happened) = checked(&config);
    assert_eq!(report.hosts[0].failures, 8);
    let (downs, ups) = (turns(&happened, false), turns(&happened, true));
    assert!((1_300..1_320).contains(&downs[0]), "{downs:?}: 0.8 s of silence, 0.5 s of survival");
    assert!(ups.len() == 2 && (2_500..4_600).contains(&ups[1]), "{ups:?}");
    assert!(after(&happened, ups[1]) > 60);
}

#[test]
fn a_node_that_never_comes_back_is_named() {
    let mut config = frail(lasting(5_000), vec![outage(10, None)]);
    config.limits.time = ms(4_000);
    let error = World::new(&config).and_then(|mut world| world.run()).expect_err("it is gone");
    assert!(matches!(error, Error::DriveLost { host: 0, drive: 0, .. }), "{error}");
    // A workload that ends by its time finishes without the drive.
    let report = run(&frail(lasting(100), vec![outage(10, None)]));
    assert_eq!(report.hosts[0].failures, 8);
}

#[test]
fn host_waits_for_node_that_starts_late() {
    let (report, happened) = checked(&with(lasting(50), vec![outage(0, Some(30))]));
    assert_eq!(report.hosts[0].failures, 0);
    assert!(turns(&happened, true)[0] >= 30 && after(&happened, 30) > 40);
}

/// Two nodes have one drive each. The outage of one node does not affect commands of the other.
#[test]
fn outage_of_one_node_leaves_others_unaffected() {
    let network = bridged(vec![station(Rate::G1); 3], 1, bridge::Mode::StoreAndForward, None);
    let ports = [1, 2].map(|at| (tcp([0, at]), drive(at, Timing::OPTANE)));
    let work = Fio { numjobs: 2, ..paced(350, 2) };
    let hosts = vec![host(Workload::Fio(work), ports.to_vec())];
    let outages = vec![outage(20, Some(60))];
    let (report, happened) = checked(&Config { outages, ..config(hosts, network) });
    assert_eq!(report.hosts[0].failures, 2, "those of one job");
    let during = |drive: u16| {
        let in_outage =
            |r: &&CommandRecord| r.drive == drive && r.until > ms(21) && r.until < ms(250);
        happened.commands.iter().filter(in_outage).count()
    };
    assert!(during(0) == 0 && during(1) > 500, "{} {}", during(0), during(1));
    let worst = happened.commands.iter().filter(|r| r.drive == 1).map(|r| r.until - r.since).max();
    assert!(worst < Some(Duration::from_ms(2)), "{worst:?}");
    assert!(happened.commands.iter().any(|r| r.drive == 0 && r.since > ms(250)), "it is back");
}

#[test]
fn replay_continues_after_outage_and_counts_failures() {
    let operation = |n: u64| Operation {
        at: Duration::from_us(n * 500),
        drive: 0,
        queue: 0,
        op: [Op::Write, Op::Read, Op::Flush][n as usize % 3],
        offset: n / 3 % 16 * 4096,
        length: if n % 3 == 2 { 0 } else { 4096 },
    };
    let operations: Vec<_> = (0..900).map(operation).collect();
    let (timing, depths) = (workload::IssueTiming::Recorded, vec![vec![64]]);
    let replay = Replay { operations: operations.into(), timing, depths };
    let replay = Workload::Replay(replay);
    let outages = vec![outage(50, Some(70))];
    let (report, _) = checked(&with(replay.clone(), outages.clone()));
    let host = &report.hosts[0];
    assert_eq!(host.commands + host.failures, 900);
    assert!((1..=64).contains(&host.failures), "{}", host.failures);
    assert!(host.verified > 1_000, "{}", host.verified);
    // Commands that waited for the drive fail if its contents are lost.
    let (lossy, _) = checked(&volatile(replay, outages));
    let lost = lossy.hosts[0].failures;
    assert!((host.failures + 1..=128).contains(&lost), "{lost}");
    assert_eq!(lossy.hosts[0].commands + lost, 900);
}

/// Configuration reads without a function return all ones, at once or after the completion timeout.
#[test]
fn config_reads_of_absent_node_return_all_ones() {
    let reads = Workload::ConfigReads { count: 40, gap: Duration::from_ms(10) };
    let config = with(reads, vec![outage(50, Some(90))]);
    let report = run(&config);
    assert_eq!(run(&config).digest, report.digest);
    let host = &report.hosts[0];
    assert!((5..30).contains(&host.failures), "{}", host.failures);
    assert_eq!(host.latency.count(), 40);
}

#[test]
fn outage_of_other_than_device_node_is_refused() {
    for (outage, word) in [
        (Outage { station: 0, ..outage(1, None) }, "device node"),
        (Outage { station: 7, ..outage(1, None) }, "device node"),
        (outage(5, Some(5)), "end is not after"),
    ] {
        let error = World::new(&with(lasting(1), vec![outage])).err().expect(word);
        assert!(matches!(&error, Error::Config(reason) if reason.contains(word)), "{error}");
    }
}

#[test]
fn kill_that_no_process_survives_is_refused() {
    let kills = vec![outage(10, Some(20))];
    let kept = Config { kills: kills.clone(), ..with(lasting(1), Vec::new()) };
    let lost = Config { kills: kills.clone(), ..volatile(lasting(1), Vec::new()) };
    let twice = Config { outages: vec![outage(15, Some(30))], ..kept.clone() };
    for (config, word) in [(lost, "volatile"), (twice, "during")] {
        let error = World::new(&config).err().expect(word);
        assert!(matches!(&error, Error::Config(reason) if reason.contains(word)), "{error}");
    }
}

/// Longer than the completion timeout: the root complex holds the request.
#[test]
fn register_read_waits_while_its_link_is_interrupted() {
    let reads = Workload::ConfigReads { count: 4, gap: Duration::from_ms(10) };
    let mut config = with(reads, Vec::new());
    config.hosts[0].root.completion_timeout = Duration::from_ms(900);
    config.network.cables[0].faults[0].cuts = vec![(ms(5), ms(2_000))];
    let report = run(&config);
    assert_eq!((report.hosts[0].failures, report.hosts[0].latency.count()), (0, 4));
    assert!(report.time > ms(2_000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// For random times of the outage and random workloads.
    #[test]
    fn random_outage_keeps_all_laws(
        from_us in 2_000..40_000u64,
        us in 1..40_000u64,
        depth in 1..16usize,
        write in 0..=100u8,
        seed: u64,
    ) {
        let work = Fio { rwmixread: write, ..paced(400, depth) };
        let from = Instant::ZERO + Duration::from_us(from_us);
        let until = Some(from + Duration::from_us(us));
        let outages = vec![Outage { station: 1, from, until }];
        let config = Config { seed, ..with(Workload::Fio(work), outages) };
        let (report, happened) = checked(&config);
        prop_assert!(report.hosts[0].failures <= depth as u64);
        prop_assert!(after(&happened, 390) > 20, "it is back");
    }

    /// The state is taken at any time, with any TLPs between drive and node.
    #[test]
    fn killed_process_is_a_pause(
        from_us in 2_000..20_000u64,
        us in 1..20_000u64,
        depth in 1..16usize,
        write in 0..=100u8,
        seed: u64,
    ) {
        let work = Fio { rwmixread: write, ..paced(320, depth) };
        let from = Instant::ZERO + Duration::from_us(from_us);
        let until = Some(from + Duration::from_us(us));
        let kills = vec![Outage { station: 1, from, until }];
        let config = Config { seed, kills, ..with(Workload::Fio(work), Vec::new()) };
        let mut world = World::new(&config).expect("a valid configuration");
        let report = world.run().expect("a run");
        let host = &report.hosts[0];
        prop_assert_eq!((host.failures, host.mismatches), (0, 0));
        prop_assert!(host.commands > 200, "{} of 1280", host.commands);
        prop_assert_eq!((world.restored(), world.compare_contents().1), (1, 0));
    }
}
