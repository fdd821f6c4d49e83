//! A bottleneck that goes from 10 to 2 Gb/s and back.

use crate::network::*;
use wire::{Duration, Instant};

#[test]
fn the_rate_is_back_soon_and_the_queue_is_bounded() {
    for (senders, most) in [(1, 80), (4, 200)] {
        let mut config = flows(senders, "swift=25us", Duration::ZERO, Duration::from_ms(15));
        config.network = star(senders, &[(0, 10), (5, 2), (10, 10)]);
        let report = simulate(&config);
        let rate = |from, to| line_rate(&report, from, to);
        assert!(rate(ms(1), ms(5)) >= 9.8e9, "before");
        assert!((1.95e9..=2.01e9).contains(&rate(ms(6), ms(10))), "the narrow part");
        let interval = Duration::from_us(50);
        let back = report.samples.iter().filter(|sample| sample.at > ms(10)).find(|sample| {
            let from = Instant::ZERO + (sample.at.since(Instant::ZERO) - interval);
            rate(from, sample.at) >= 9e9
        });
        let took = back.expect("it comes back").at.since(ms(10));
        assert!(took <= Duration::from_us(200), "{senders} flows: {took}");
        assert!(rate(ms(10) + took, ms(15)) >= 9.8e9, "and stays");
        // What was on the way at 10 Gb/s has to leave at 2; then the target
        // holds again.
        let longest = longest_wait(&report, ms(5), ms(10));
        assert!(longest <= Duration::from_us(most), "{senders} flows: {longest}");
        let settled = longest_wait(&report, ms(7), ms(10));
        assert!(settled <= Duration::from_us(60), "{senders} flows: {settled}");
        assert_eq!(report.dropped, 0);
    }
}
