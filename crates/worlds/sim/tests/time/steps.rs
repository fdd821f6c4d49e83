//! Steps of clocks, and their effects on gates and talkers.

use super::*;
use tsn::StepPolicy;

/// A talker sends every millisecond, at the start of its window of 100 us in a cycle of 500 us. Its
/// times are true time unless `own_clock` is set. At 50 ms the clock of its interface steps back by
/// 5.2 ms.
fn stepped(policy: StepPolicy, own_clock: bool) -> Report {
    let mut net = Net::new();
    let mut sender = ClockNode::new(ClockConfig::default());
    sender.on_step = policy;
    let back = Instant::ZERO + Duration::from_us(50_200);
    sender.steps = vec![(back, -5_200_000_000)];
    let from = net.station(sender);
    let to = net.station(ClockNode::new(ClockConfig::default()));
    let wire = net.tree.link(from, to);
    let gates = gates_of(&[(0x01, Duration::from_us(100)), (0xfe, Duration::from_us(400))]);
    net.tree.port(wire).gates = Some(gates);
    let pattern = Pattern::Periodic(Duration::from_ms(1));
    net.tree.stream(from, TrafficConfig { own_clock, ..TrafficConfig::new(1, 64, 0, pattern) });
    net.run(Duration::from_ms(100), Vec::new())
}

/// The latency without waiting: 68 bytes with the tag and 8 of preamble at 1 Gb/s, and 50 ns of
/// cable.
const DIRECT: Duration = Duration::from_ns(76 * 8 + 50);

/// A frozen gate that is closed at 50.2 ms stays closed until the clock shows the end of the closed
/// span again, at 50.5 ms + 5.2 ms. Then the frames of 51 to 55 ms leave together, with latencies
/// of 4.7 ms, 3.7 ms and so on.
#[test]
fn a_frozen_gate_stalls_its_stream() {
    let report = stepped(StepPolicy::Frozen, false);
    let stream = &report.streams[0];
    assert_eq!((stream.sent, stream.lost()), (100, 0));
    let late = Duration::from_us(4_700) + DIRECT;
    assert_eq!(stream.latency().longest(), late);
    assert_eq!(stream.latency().summary().min_ns, DIRECT.as_ns());
    let stalled = stream.listeners[0].measured.iter().map(|sample| sample.truly[1]).max();
    assert_eq!(stalled, Some(late.as_ps() as i64));
}

/// Rederived gates follow the clock after the step. Frames at times of true time miss their window
/// and wait for the next one.
#[test]
fn rederived_gates_follow_the_clock() {
    let report = stepped(StepPolicy::Rederived, false);
    // The clock shows n * 1 ms - 5.2 ms: 300 us into a cycle, 200 us before the next window.
    let late = Duration::from_us(200) + DIRECT;
    assert_eq!(report.streams[0].latency().longest(), late);
}

/// A talker that follows the same clock sends nothing for the length of the step, and then sends in
/// its window.
#[test]
fn a_talker_of_the_same_clock_waits() {
    let report = stepped(StepPolicy::Rederived, true);
    assert_eq!(report.streams[0].latency().longest(), DIRECT);
    assert_eq!(report.streams[0].sent, 100 - 5);
    // The receiver's measurement is wrong by the difference of the clocks.
    let last = report.streams[0].listeners[0].measured.last().unwrap();
    assert_eq!(last.measured[1] - last.truly[1], 5_200_000_000);
    assert_eq!(report.time_of_nodes.unwrap().clocks[0].steps.len(), 1);
}

/// A talker whose clock is one second ahead at the beginning has no missed frames to send.
#[test]
fn a_clock_ahead_begins_where_it_is() {
    let mut net = Net::new();
    let ahead = ClockConfig { offset_ps: 1_000_000_000_000, ..ClockConfig::default() };
    let from = net.station(ClockNode::new(ahead));
    let to = net.station(ClockNode::new(ClockConfig::default()));
    net.tree.link(from, to);
    let pattern = Pattern::Periodic(Duration::from_ms(1));
    let start = Instant::ZERO + Duration::from_us(300);
    let traffic = TrafficConfig { start, ..TrafficConfig::new(1, 64, 0, pattern) };
    net.tree.stream(from, traffic);
    let report = net.run(Duration::from_ms(100), Vec::new());
    assert_eq!((report.streams[0].sent, report.streams[0].latency().longest()), (100, DIRECT));
    let measured = report.streams[0].listeners[0].measured[0].measured[0];
    assert_eq!(measured, DIRECT.as_ps() as i64 - 1_000_000_000_000);
}
