//! Flows over TCP in the background.

use super::worlds::*;
use sim::ethernet::traffic::Pattern;
use sim::ethernet::{Rate, port};
use sim::flows;
use sim::network::{BulkConfig, BulkReport, TrafficConfig};
use sim::world::{Config, Outage};

/// Bits of payload per bit on the line: 1460 of 1538 bytes.
const PAYLOAD: f64 = 1460.0 / 1538.0;

fn flow(from: usize) -> BulkConfig {
    BulkConfig { stations: [from, 0], priority: 0, start: Instant::ZERO, stop: None, bytes: None }
}

/// Flows from stations of a star to station 0 at 1 Gb/s.
fn plan(flows: Vec<BulkConfig>, ms: u64) -> Config {
    let senders = flows.iter().map(|flow| flow.stations[0]).max().unwrap_or(1);
    let mut network = flows::star(senders, Rate::G1, Vec::new());
    network.bulk = flows;
    let runtime = Some(Duration::from_ms(ms));
    Config { seed: 1, network, runtime, ..Config::default() }
}

fn goodput(flow: &BulkReport) -> f64 {
    flow.delivered as f64 * 8e3 / flow.span.as_ps() as f64
}

#[test]
fn flow_fills_its_line_and_leaves_a_stream_its_part() {
    let mut plan = plan(vec![flow(1)], 100);
    let alone = run(&plan).bulk.remove(0);
    assert!((0.97..=1.0).contains(&(goodput(&alone) / PAYLOAD)), "{alone:?}");
    assert_eq!(alone.retransmitted, 0);
    assert_eq!(alone.progress.iter().sum::<u64>(), alone.delivered);
    assert!(alone.progress.len() <= 200 && alone.interval <= Duration::from_ms(1));
    // 250 bytes with preamble and gap every 20 us are a tenth of the line. The stream has less than
    // one frame per segment of the flow, with which it takes turns.
    let every = Pattern::Periodic(Duration::from_us(20));
    plan.network.stations[1].traffic.push(TrafficConfig::new(0, 230, 0, every));
    let report = run(&plan);
    let shared = goodput(&report.bulk[0]) / PAYLOAD;
    assert!((0.87..=0.9).contains(&shared), "{shared}");
    assert_eq!(report.streams[0].lost(), 0);
    assert_eq!(run(&plan).digest, report.digest);
}

#[test]
fn flows_that_overflow_a_queue_retransmit_and_share_the_line() {
    let mut plan = plan(vec![flow(1), flow(2)], 200);
    plan.network.bridges[0].ports[0] = port::Config::new(Rate::G1).with_depth(60, 90_000);
    let report = run(&plan);
    let both: f64 = report.bulk.iter().map(goodput).sum();
    assert!(both / PAYLOAD > 0.9, "{both}");
    for flow in &report.bulk {
        assert!(flow.retransmitted > 0 && goodput(flow) > 0.2, "{flow:?}");
    }
    let all = report.bulk.iter().map(|flow| flow.retransmitted).sum::<u64>();
    assert_eq!(report.retransmitted, all);
}

#[test]
fn flow_delivers_its_bytes_between_start_and_stop() {
    let start = ms(20);
    let sized = BulkConfig { start, bytes: Some(1_000_000), ..flow(1) };
    let stop = Some(ms(30));
    let timed = BulkConfig { start, stop, ..flow(1) };
    let report = |flow| run(&plan(vec![flow], 100)).bulk.remove(0);
    assert_eq!(report(sized).delivered, 1_000_000);
    // What TCP has taken is still delivered: 256 KiB take about 2 ms.
    let span = report(timed).span;
    assert!((Duration::from_ms(9)..Duration::from_ms(13)).contains(&span), "{span}");
}

#[test]
fn flow_continues_after_a_power_loss_of_either_end() {
    for station in [0, 1] {
        let sized = BulkConfig { bytes: Some(8_000_000), ..flow(1) };
        let mut plan = plan(vec![sized], 1_500);
        plan.outages = vec![Outage { station, from: ms(50), until: Some(ms(70)) }];
        let flow = run(&plan).bulk.remove(0);
        assert_eq!(flow.delivered, 8_000_000, "station {station}");
        assert!(flow.span > Duration::from_ms(70), "{}", flow.span);
    }
}
