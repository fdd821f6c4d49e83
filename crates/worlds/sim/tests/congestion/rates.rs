//! Rate limits, and frames of other lengths.

use crate::congestion::network::*;

#[test]
fn a_rate_limit_holds_its_rate() {
    for (congestion, rate) in [("rate=5G", 5_000_000_000), ("rate=250M", 250_000_000u64)] {
        for segment in [100, usize::MAX] {
            let mut config = flows(1, congestion, Duration::ZERO, Duration::from_ms(10));
            config.flows[0].segment = segment;
            let report = simulate(&config);
            let measured = line_rate(&report, ms(1), ms(10));
            assert!(
                measured.abs_diff(rate) < rate / 100,
                "{congestion}, segments of {segment}: {measured}"
            );
        }
    }
}

#[test]
fn short_frames_fill_the_line_too() {
    let mut config = flows(2, "swift=25us", Duration::ZERO, Duration::from_ms(10));
    config.flows.iter_mut().for_each(|flow| flow.segment = 200);
    let report = simulate(&config);
    assert!(line_rate(&report, ms(2), ms(10)) >= 9_500_000_000);
    let (from, to) = (ms(2), ms(10));
    assert!(jain(&report.delivered(from, to)) >= 950);
}
