//! Links over two paths, each with a cable of its own: a cut of either costs no command.

use crate::simulation::worlds::*;
use proptest::prelude::*;
use sim::network::{CableConfig, CableEnd};
use sim::transport::TransportConfig;
use wire::frame::Paths;

/// 500 transfers per second.
fn paced(runtime: u64) -> Fio {
    let (runtime, rate) = (Some(Duration::from_ms(runtime)), Some(500 * 4096));
    Fio { runtime, time_based: true, rate, ..fio(Rw::RandRw, 4096, 8) }
}

/// A host and a drive. Stations 0 and 1 are the first path, 2 and 3 the second one. The cables
/// deliver nothing during their cuts, given in ms.
fn two(work: Fio, transport: Carrier, paths: Paths, cuts: [&[(u64, u64)]; 2]) -> Config {
    let mut config = Config::nvme_tsn_tsn(Workload::Fio(work), Rate::G1);
    let network = &mut config.network;
    network.stations.extend(network.stations.clone());
    let [a, b] = [2, 3].map(CableEnd::station);
    network.cables.push(CableConfig::new(a, b, network.cables[0].propagation));
    for (cable, cuts) in network.cables.iter_mut().zip(cuts) {
        for faults in &mut cable.faults {
            faults.cuts = cuts.iter().map(|(from, until)| (ms(*from), ms(*until))).collect();
        }
    }
    let switch = switch(&mut config);
    (switch.paths, switch.max_payload) = (paths, 256);
    let [first, second] = [[0, 1], [2, 3]].map(transport);
    (switch.ports[0].transport, switch.ports[0].second) = (first, Some(second));
    config
}

/// A keepalive on the line, at 1 Gb/s.
const FRAME: Duration = Duration::from_us(1);

type Carrier = fn([usize; 2]) -> TransportConfig;

const CARRIERS: [Carrier; 3] =
    [tcp, |stations| raw(stations, "none"), |stations| raw(stations, "swift")];

/// Runs `config` twice. No command fails.
fn checked(config: &Config) -> (Report, Happened) {
    let (report, happened) = recorded(config);
    assert_eq!(run(config).digest, report.digest, "the same plan, the same digest");
    check(&report);
    assert!(report.hosts[0].verified > 0);
    (report, happened)
}

/// As [`checked`], and the link is neither down nor interrupted.
fn unnoticed(config: &Config) -> (Report, Happened) {
    let (report, happened) = checked(config);
    assert_eq!((happened.links.len(), &happened.interruptions[..]), (2, &[][..]));
    (report, happened)
}

/// The longest latency of a command in ms.
fn longest(happened: &Happened) -> u64 {
    let latencies = happened.commands.iter().map(|record| record.until - record.since);
    latencies.max().expect("commands").as_ns() / 1_000_000
}

/// Failovers of both ends, and copies that they dropped.
fn counts(report: &Report) -> [[u64; 2]; 2] {
    [0, 1].map(|way| [report.tunnels[way].failovers, report.tunnels[way].copies])
}

#[test]
fn other_path_takes_over_after_50_ms_of_silence() {
    for transport in CARRIERS {
        let run = |cuts| unnoticed(&two(paced(300), transport, Paths::Active, cuts));
        for cuts in [[&[(50, 200)][..], &[]], [&[(50, 900)], &[]]] {
            let (report, happened) = run(cuts);
            // The path was last heard before its cut.
            assert!((45..70).contains(&longest(&happened)), "{}", longest(&happened));
            assert_eq!(counts(&report).map(|[failovers, _]| failovers), [1, 1]);
        }
        // The path that does not carry the link.
        let (report, happened) = run([&[], &[(50, 200)]]);
        assert_eq!((longest(&happened), counts(&report)), (0, [[0; 2]; 2]));
    }
}

/// A path that was lost is connected again, and takes over later.
#[test]
fn paths_take_over_from_each_other() {
    for transport in CARRIERS {
        let slow = Fio { rate: Some(40 * 4096), ..paced(4_600) };
        let cuts: [&[(u64, u64)]; 2] = [&[(100, 1_400)], &[(4_000, 4_200)]];
        let (report, happened) = unnoticed(&two(slow, transport, Paths::Active, cuts));
        assert!((40..80).contains(&longest(&happened)), "{}", longest(&happened));
        assert_eq!(counts(&report).map(|[failovers, _]| failovers), [2, 2]);
    }
}

#[test]
fn loss_of_one_of_both_paths_delays_no_command() {
    for transport in CARRIERS {
        let run = |cuts| unnoticed(&two(paced(300), transport, Paths::Both, cuts));
        let (uncut, before) = run([&[], &[]]);
        let copies = |report: &Report| counts(report).map(|[_, copies]| copies);
        for cuts in [[&[(50, 200)][..], &[]], [&[], &[(50, 200)]]] {
            let (report, happened) = run(cuts);
            assert_eq!(happened.commands.len(), before.commands.len());
            for (with, without) in happened.commands.iter().zip(&before.commands) {
                // The end of a cut moves keepalives: a frame in front of another one.
                assert!(with.until <= without.until + FRAME, "{with:?} {without:?}");
            }
            for (less, all) in copies(&report).into_iter().zip(copies(&uncut)) {
                assert!(0 < less && less < all, "{less} of {all}");
            }
        }
    }
}

/// A node loses its power at both stations, and its session.
#[test]
fn node_with_two_paths_is_found_again_after_an_outage() {
    for station in [1, 3] {
        let mut config = two(paced(600), tcp, Paths::Both, [&[], &[]]);
        config.outages = vec![Outage { station, from: ms(50), until: Some(ms(80)) }];
        let (report, happened) = recorded(&config);
        assert_eq!(run(&config).digest, report.digest);
        assert!((1..=8).contains(&report.hosts[0].failures), "{}", report.hosts[0].failures);
        let last = happened.commands.iter().filter(|record| record.since > ms(500)).count();
        assert!(last > 20 && report.hosts[0].mismatches == 0, "{last}");
    }
}

#[test]
fn second_path_over_the_same_stations_is_refused() {
    let mut config = two(paced(10), tcp, Paths::Both, [&[], &[]]);
    for second in [tcp([0, 1]), pipe()] {
        switch(&mut config).ports[0].second = Some(second);
        let error = World::new(&config).err().expect("one path");
        assert!(matches!(&error, Error::Config(why) if why.contains("two paths")), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Cuts of either path or of both, at any time.
    #[test]
    fn random_cuts_of_two_paths_cost_no_command(
        carrier in 0..3usize,
        both: bool,
        seed: u64,
        cuts: [[(u8, u8); 2]; 2],
    ) {
        let paths = if both { Paths::Both } else { Paths::Active };
        let cuts = cuts.map(|own| {
            let [(from, first), (pause, second)] = own.map(|(at, span)| (u64::from(at), u64::from(span)));
            let again = 11 + from + first + pause;
            [(10 + from, 10 + from + first), (again, again + second)]
        });
        let work = Fio { rate: Some(200 * 4096), ..paced(1_200) };
        let config = two(work, CARRIERS[carrier], paths, [&cuts[0], &cuts[1]]);
        checked(&Config { seed, ..config });
    }
}
