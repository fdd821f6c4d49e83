//! Requests without an answer, connections that end, and minimum round trips that are too long.

use super::limits::{row, worst};
use super::{gated, mixed, rows, tcp};
use crate::Plan;
use crate::simulate::limits::{
    Assumptions, LimitVerdict, Trips, Waits, all_rows, planned_rows, text,
};
use bytes::Bytes;
use sim::ethernet::Rate;
use sim::measure::{Observer, Point};
use sim::workload::Workload;
use sim::{Config, World};
use wire::tlp::{ConfigKind, ConfigRequest, Packet, Tlp};
use wire::{Bdf, Duration, Instant, Tag};

fn planned(text: &str) -> Config {
    let plan = Plan::parse("p.toml", text).unwrap_or_else(|error| panic!("{error}"));
    plan.build().unwrap_or_else(|error| panic!("{error}")).config
}

fn far(ms: u64) -> Config {
    let mut config = tcp(1);
    config.network.cables[0].propagation = Duration::from_ms(ms);
    config
}

#[test]
fn request_after_completion_timeout_exceeds_its_limit() {
    let (done, rows) = rows(&far(26));
    assert!(!done, "there and back are 52 ms");
    let root = row(&rows, "completion timeout of the root port");
    assert_eq!(root.verdict(), LimitVerdict::Breaks, "{}", text(&rows));
    let first = root.first.as_ref().unwrap();
    assert!(first.what.ends_with("never answered"), "{}", text(&rows));
    assert!(first.span >= Duration::from_ms(50), "{}", text(&rows));
}

fn config_read() -> Tlp {
    let request = ConfigRequest {
        kind: ConfigKind::Type1,
        requester: Bdf::default(),
        tag: Tag::default(),
        target: Bdf::new(1, 0, 0),
        register: 0,
        first_be: 0xf,
    };
    Tlp::new(Packet::ConfigRead(request), Bytes::new())
}

/// The root complex does not use a tag again before the timeout.
#[test]
fn reused_tag_marks_the_earlier_request_as_timed_out() {
    let config = tcp(1);
    let at = |ns| Instant::from_ns(ns);
    let mut waits = Waits::new(&config, &Assumptions::default());
    let issued =
        |waits: &mut Waits, ns| waits.tlp(at(ns), Point::RootPort(0), false, &config_read());
    let root = |waits: &Waits| {
        let rows = all_rows(&config, &Assumptions::default(), waits);
        row(&rows, "completion timeout of the root port").clone()
    };
    issued(&mut waits, 1_000);
    assert!(root(&waits).worst.is_none());
    issued(&mut waits, 60_000_000);
    let seen = root(&waits);
    assert_eq!(seen.verdict(), LimitVerdict::Breaks);
    assert_eq!(seen.first.unwrap().at, Some(at(1_000)));
    // The timeout includes the pipeline of the root port, the measured wait does not.
    let mut waits = Waits::new(&config, &Assumptions::default());
    issued(&mut waits, 50);
    waits.finish(at(50_000_000), false);
    assert_eq!(root(&waits).verdict(), LimitVerdict::Breaks);
    let mut waits = Waits::new(&config, &Assumptions::default());
    issued(&mut waits, 50);
    waits.finish(at(49_000_000), false);
    assert_eq!(root(&waits).verdict(), LimitVerdict::Holds, "it might have come");
}

#[test]
fn round_trips_that_are_too_long_are_flagged_before_anything_runs() {
    let named = |config: &Config, name: &str| {
        let rows = planned_rows(config, &Assumptions::default());
        rows.iter().find(|row| row.name.starts_with(name)).cloned()
    };
    let config_read = "round trip of a configuration read";
    let seen = named(&far(26), config_read).expect("52 ms are more than 50");
    assert!(seen.planned && seen.verdict() == LimitVerdict::Breaks);
    let span = seen.worst.unwrap().span;
    assert!(span > Duration::from_ms(52) && span < Duration::from_ns(52_010_000), "{span}");
    assert!(named(&far(24), config_read).is_none(), "48 ms are less than 50");
    assert_eq!(named(&far(24), "round trip of a DMA").unwrap().verdict(), LimitVerdict::AtRisk);
    assert!(named(&far(4), "round trip of a DMA").is_none());
    let segment = "round trip of a TCP segment";
    assert!(named(&far(99), segment).is_none());
    assert_eq!(named(&far(101), segment).unwrap().verdict(), LimitVerdict::AtRisk);
    assert_eq!(named(&far(501), segment).unwrap().verdict(), LimitVerdict::Breaks);
    // Two round trips of 16 s exceed the 30 s of an I/O command.
    assert!(named(&far(7_000), "I/O command").is_none());
    assert_eq!(named(&far(8_000), "I/O command").unwrap().verdict(), LimitVerdict::Breaks);
    assert!(named(&far(8_000), "admin command").is_none());
    assert_eq!(named(&far(16_000), "admin command").unwrap().verdict(), LimitVerdict::Breaks);
    for config in
        [Config::nvme_tsn_direct(mixed(1)), tcp(1), Config::nvme_tsn_tsn(mixed(1), Rate::G1)]
    {
        assert!(planned_rows(&config, &Assumptions::default()).is_empty());
    }
}

/// No simulated round trip is shorter than the planned one, and the shortest is at most 1/0.7 times
/// as long.
#[test]
fn planned_round_trip_is_a_lower_bound() {
    let reads = || Workload::ConfigReads { count: 5, gap: Duration::from_us(10) };
    let open = Duration::from_us(400);
    for config in [
        Config::nvme_tsn_tcp(reads(), Rate::G1),
        Config::nvme_tsn_tcp(reads(), Rate::G100),
        Config::nvme_tsn_tsn(reads(), Rate::G1),
        gated(reads(), open, open + Duration::from_us(100)),
    ] {
        let report = World::new(&config).unwrap().run().unwrap();
        let least = Trips::over(&config.network.wiring(), &config.hosts[0], 0);
        let measured = report.hosts[0].config_reads.summary().min_ns;
        let ns = least.config_read.as_ns();
        assert!(ns <= measured && ns * 100 >= measured * 70, "{ns} ns, measured {measured}");
    }
    let config = tcp(1);
    let (_, rows) = rows(&config);
    let least = Trips::over(&config.network.wiring(), &config.hosts[0], 0);
    assert!(least.dma_read.as_ns() <= worst(&rows, "completion timeout of the drive"));
    assert!(least.segment.unwrap().as_ns() <= worst(&rows, "TCP retransmission, Linux"));
    assert!(least.dma_read > least.config_read, "host memory is in it");
}

/// The node refuses the second host, which connects again 200 ms later. No segment waited during
/// this time.
#[test]
fn new_connection_starts_without_unacknowledged_bytes() {
    let config = planned(include_str!("../../../../../../plans/handover.toml"));
    let (done, rows) = rows(&config);
    assert!(done);
    for name in ["TCP retransmission, Linux", "TCP retransmission, as simulated"] {
        let row = row(&rows, name);
        assert_eq!(row.verdict(), LimitVerdict::Holds, "{}", text(&rows));
        assert!(row.worst.as_ref().unwrap().span < Duration::from_ms(1), "{}", text(&rows));
    }
    // The bytes that the refused connection had sent until the refusal arrived.
    let dead = row(&rows, "TCP bytes never acknowledged");
    assert_eq!(dead.verdict(), LimitVerdict::Holds);
    assert!(dead.worst.as_ref().unwrap().span < Duration::from_ms(1), "{}", text(&rows));
}

/// A segment to a node without power gets no acknowledgement. The wait does not count as an early
/// retransmission.
#[test]
fn bytes_to_a_dead_peer_are_reported_separately() {
    let text_of = |until: u64| {
        format!(
            "[nodes.n]\noutages = [\"5ms..{until}ms\"]\n[workload]\nrw = \"randread\"\n\
             size = \"128KiB\"\niodepth = 8\nruntime = \"20ms\"\ntime_based = \"on\"\n"
        )
    };
    for (until, verdict) in [(100, LimitVerdict::Holds), (400, LimitVerdict::AtRisk)] {
        let (done, rows) = rows(&planned(&text_of(until)));
        assert!(done, "{}", text(&rows));
        let rto = row(&rows, "TCP retransmission, Linux");
        assert_eq!(rto.verdict(), LimitVerdict::Holds, "{}", text(&rows));
        let dead = row(&rows, "TCP bytes never acknowledged");
        assert_eq!(dead.verdict(), verdict, "{}", text(&rows));
        let worst = dead.worst.as_ref().unwrap();
        assert!(worst.what.starts_with("bytes of the host on link 0"), "{}", text(&rows));
        let since = worst.at.unwrap().as_ns();
        assert!((4_900_000..5_200_000).contains(&since), "{}", text(&rows));
        assert!(worst.span < Duration::from_ms(until + 105), "{}", text(&rows));
    }
}
