//! Plans with and without margins.

use super::{gated, mixed, tcp};
use crate::simulate::limits::{
    Assumptions, CompletionTimeout, Limit, LimitVerdict, Row, flagged, planned_rows, text,
};
use node::push::Mode as Push;
use sim::Config;
use sim::ethernet::Rate;
use sim::world::Attached;
use wire::{Duration, Instant};

fn rows(config: &Config) -> Vec<Row> {
    let (done, rows) = super::rows(config);
    assert!(done, "{}", text(&rows));
    rows
}

pub fn row<'a>(rows: &'a [Row], name: &str) -> &'a Row {
    rows.iter().find(|row| row.name.starts_with(name)).unwrap_or_else(|| panic!("no {name}"))
}

pub fn worst(rows: &[Row], name: &str) -> u64 {
    row(rows, name).worst.as_ref().unwrap_or_else(|| panic!("{name} waited")).span.as_ns()
}

#[test]
fn example_plans_exceed_no_limit() {
    let tsn = Config::nvme_tsn_tsn(mixed(4), Rate::G1);
    for config in [Config::nvme_tsn_direct(mixed(4)), tcp(4), tsn] {
        let rows = rows(&config);
        assert_eq!(flagged(&rows).count(), 0, "{}", text(&rows));
        let io = row(&rows, "I/O timeout");
        assert!(io.margin_ps().unwrap() > 0 && io.factor().unwrap() > 1000.0);
        assert_eq!(io.limit, Duration::from_ms(30_000));
        assert!(io.first.is_none() && io.worst.is_some());
    }
}

#[test]
fn observed_waits_match_the_simulated_round_trips() {
    let config = tcp(1);
    let rows = rows(&config);
    // A read over the tunnel takes 6 us and the time of its bits on the lines.
    for name in ["completion timeout of the drive", "completion timeout of the root"] {
        let ns = worst(&rows, name);
        assert!((6_000..60_000).contains(&ns), "{name}: {ns} ns");
    }
    // The round trip of a segment and its acknowledgement.
    let rtt = worst(&rows, "TCP retransmission, Linux");
    assert!((5_000..100_000).contains(&rtt), "{rtt} ns");
    assert_eq!(rtt, worst(&rows, "TCP retransmission, as simulated"));
    // Commands of the run: a write takes 137 us at the root port.
    assert!((100_000..300_000).contains(&worst(&rows, "I/O timeout")));
    assert!(worst(&rows, "admin timeout") > 6_000);
    assert!(worst(&rows, "link lost") < 800_000_000);
}

#[test]
fn gates_that_stay_closed_are_flagged_before_anything_runs() {
    let config = gated(mixed(1), Duration::from_ms(1), Duration::from_ms(61));
    let rows = planned_rows(&config, &Assumptions::default());
    let closed = row(&rows, "closed gate,");
    assert!(closed.planned);
    assert_eq!(closed.verdict(), LimitVerdict::Breaks, "{}", text(&rows));
    // 60 ms and the largest frame: 1530 bytes at 8 ns.
    let span = closed.worst.as_ref().unwrap().span;
    assert_eq!(span, Duration::from_ns(60_000_000 + 1530 * 8));
    assert_eq!(closed.first.as_ref().unwrap().what.split(" of ").next(), Some("queue 3"));
    assert!(closed.margin_ps().unwrap() < 0);
    assert!(text(&rows).contains("BREAKS"));
    // Each direction has two such gates.
    let both = row(&rows, "closed gates on").worst.as_ref().unwrap().span;
    assert!(both > Duration::from_ms(240) && both < Duration::from_ms(241), "{both}");
}

#[test]
fn completion_timeout_range_is_compared_at_both_ends() {
    let config = gated(mixed(1), Duration::from_ms(10), Duration::from_ms(30));
    let named = |name: &str| CompletionTimeout::ALL.into_iter().find(|range| range.name == name);
    let verdict = |range: &str| {
        let completion_timeout = named(range).unwrap();
        let assumed = Assumptions { completion_timeout, ..Assumptions::default() };
        row(&planned_rows(&config, &assumed), "closed gate,").verdict()
    };
    assert_eq!(verdict("50us-50ms"), LimitVerdict::AtRisk, "20 ms");
    assert_eq!(verdict("50us-100us"), LimitVerdict::Breaks);
    assert_eq!(verdict("1ms-10ms"), LimitVerdict::Breaks);
    assert_eq!(verdict("16ms-55ms"), LimitVerdict::AtRisk);
    assert_eq!(verdict("65ms-210ms"), LimitVerdict::Holds);
    assert!(named("1ms").is_none());
}

#[test]
fn gate_too_short_for_a_frame_waits_forever() {
    let config = gated(mixed(1), Duration::from_us(5), Duration::from_us(500));
    let rows = planned_rows(&config, &Assumptions::default());
    assert!(rows.iter().all(|row| row.endless && row.verdict() == LimitVerdict::Breaks));
    assert!(text(&rows).contains("for ever"), "{}", text(&rows));
}

#[test]
fn a_wait_behind_a_gate_is_seen() {
    let config = gated(mixed(1), Duration::from_us(500), Duration::from_ms(16));
    let rows = rows(&config);
    let drive = row(&rows, "completion timeout of the drive");
    assert_eq!(drive.verdict(), LimitVerdict::AtRisk, "{}", text(&rows));
    let (first, longest) = (drive.first.as_ref().unwrap(), drive.worst.as_ref().unwrap());
    assert!(first.span > Duration::from_ms(10) && first.at <= longest.at);
    assert!(first.what.starts_with("MRd"), "{}", first.what);
    // The measured wait is within the wait that follows from the plan.
    assert!(longest.span < row(&rows, "closed gates on").worst.as_ref().unwrap().span);
    let document = serde_json::to_value(Limit::from(drive)).unwrap();
    assert_eq!(document["verdict"], "at_risk");
    assert!(document["margin_ns"].as_i64().unwrap() < 0);
}

#[test]
fn unfinished_waits_count_until_the_end_of_the_run() {
    let mut config = tcp(1);
    // The cable is cut permanently during the workload.
    let cut = (Instant::from_ns(3_000_000), Instant::from_ns(u64::MAX / 2000));
    config.network.cables[0].faults.iter_mut().for_each(|faults| faults.cuts = vec![cut]);
    config.limits.time = Instant::ZERO + Duration::from_ms(2_000);
    let (done, rows) = super::rows(&config);
    assert!(!done);
    let silence = row(&rows, "link lost by silence");
    assert_eq!(silence.verdict(), LimitVerdict::Breaks, "{}", text(&rows));
    let Attached::Switch(switch) = &config.hosts[0].attached else { panic!("a switch") };
    assert!(silence.worst.as_ref().unwrap().span >= switch.loss_limit);
    let io = row(&rows, "I/O timeout").worst.as_ref().unwrap();
    assert!(io.span > Duration::from_ms(1_900) && io.what.contains("never"), "{}", text(&rows));
}

/// A pushed command has no fetch, so it takes one round trip less.
#[test]
fn a_pushed_command_is_held_against_one_round_trip() {
    let breaks = |push| {
        let mut config = tcp(1);
        config.hosts[0].root.push = push;
        // One round trip takes 52 ms, two take 104 ms.
        config.network.cables[0].propagation = Duration::from_ms(26);
        let assumed = Assumptions { io_timeout: Duration::from_ms(80), ..Assumptions::default() };
        let rows = planned_rows(&config, &assumed);
        rows.iter().any(|row| row.name == "I/O command, at the least")
    };
    assert_eq!([Push::Off, Push::Entries].map(breaks), [true, false]);
}
