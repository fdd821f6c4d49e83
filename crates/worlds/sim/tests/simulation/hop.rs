//! Aggregation in the bridge in front of the bottleneck.

use crate::simulation::worlds::*;
use sim::ethernet::port::RateStep;

/// Two stations, a bridge with a rate limit of 1 Gb/s, and one frame per TLP.
fn plan(rw: Rw, merge: usize) -> Config {
    let stations = vec![station(Rate::G10); 2];
    let port = (raw([0, 1], "none"), drive(0, Timing::NULL));
    let host = host(Workload::Fio(fio(rw, 4096, 8)), vec![port]);
    let mode = bridge::Mode::StoreAndForward;
    let mut config = config(vec![host], bridged(stations, 1, mode, None));
    for port in &mut config.network.bridges[0].ports {
        port.rate_steps = vec![RateStep { at: Instant::ZERO, bits_per_second: 1_000_000_000 }];
        port.merge = merge;
    }
    switch(&mut config).aggregation = Policy::PerTlp;
    config
}

/// Frames on the cable to the host.
fn frames(report: &Report) -> u64 {
    let cable = report.links.iter().find(|link| link.name.ends_with("to station 0"));
    cable.expect("a cable to the host").load.packets
}

#[test]
fn tlps_waiting_before_bottleneck_are_merged() {
    let [plain, merged] = [0, 1500].map(|merge| twice(&plan(Rw::RandRead, merge)).0);
    let tlps = merged.tunnels[1].tlps;
    assert_eq!(plain.tunnels[1].tlps, tlps, "the same TLPs");
    assert_eq!(merged.tunnels[1].frames, tlps, "the nodes do not aggregate");
    assert!(frames(&plain) >= tlps, "a frame each");
    assert!(frames(&merged) * 3 < tlps, "{} frames for {tlps} TLPs", frames(&merged));
    let [plain_span, merged_span] = [&plain, &merged].map(|report| report.hosts[0].span);
    assert!(merged_span < plain_span, "{merged_span:?} and {plain_span:?}");
}

/// If a merged frame is lost, several frames are retransmitted.
#[test]
fn merged_frames_that_are_lost_are_sent_again() {
    let mut plan = plan(Rw::RandRw, 1500);
    let faults = Faults { loss: PERCENT, corruption: PERCENT, ..Faults::default() };
    spoil(&mut plan.network, faults);
    assert!(twice(&plan).1.retransmitted() > 0, "nothing was lost");
}
