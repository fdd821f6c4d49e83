//! Equal flows get equal shares and use the whole line.

use crate::congestion::network::*;

/// Runs `senders` flows for 20 ms. Returns Jain's index in thousandths, the rate in bits per second
/// and the longest wait, all of the second half.
fn share(senders: usize, congestion: &str, apart: Duration) -> (u64, u64, Duration) {
    let report = simulate(&flows(senders, congestion, apart, Duration::from_ms(20)));
    assert_eq!(report.dropped, 0, "the queue is bounded by the control, not by the bridge");
    let (from, to) = (ms(10), ms(20));
    let index = jain(&report.delivered(from, to));
    (index, line_rate(&report, from, to), report.longest_wait(from, to))
}

#[test]
fn flows_with_one_target_are_fair_whenever_they_begin() {
    for senders in [2, 4, 8] {
        for apart in [Duration::ZERO, Duration::from_us(300)] {
            let (index, rate, longest) = share(senders, "swift=25us", apart);
            assert!(index >= 950, "{senders} flows {apart} apart: {index}");
            assert!(rate >= 9_800_000_000, "{senders} flows: {rate}");
            assert!(longest <= Duration::from_us(40), "{senders} flows wait {longest}");
        }
    }
}

/// With targets above the measured minimum, flows that start behind a standing queue measure the
/// queue as part of the minimum round trip. This is a documented limit.
#[test]
fn measured_target_favours_later_flows() {
    let (together, ..) = share(2, "swift", Duration::ZERO);
    assert!(together >= 950, "{together}");
    let (apart, rate, _) = share(8, "swift", Duration::from_us(300));
    assert!(apart < 500, "{apart}: the documents say otherwise");
    assert!(rate >= 9_800_000_000, "{rate}");
}

/// Without congestion control the queue of the bridge is full and overflows.
#[test]
fn without_control_the_queue_overflows() {
    let report = simulate(&flows(4, "none", Duration::ZERO, Duration::from_ms(20)));
    assert!(report.longest_wait(ms(10), ms(20)) > Duration::from_us(300));
    assert!(report.dropped > 1_000, "{}", report.dropped);
}
