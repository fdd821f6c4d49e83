//! A bottleneck that goes from 10 to 2 Gb/s and back.

use crate::congestion::network::*;
use sim::ethernet::Rate;
use sim::ethernet::port::RateStep;
use sim::flows::star;

fn step((at, gigabits): (u64, u64)) -> RateStep {
    RateStep { at: ms(at), bits_per_second: gigabits * 1_000_000_000 }
}

#[test]
fn the_rate_is_back_soon_and_the_queue_is_bounded() {
    for (senders, most) in [(1, 80), (4, 200)] {
        let mut config = flows(senders, "swift=25us", Duration::ZERO, Duration::from_ms(15));
        config.network = star(senders, Rate::G10, [(0, 10), (5, 2), (10, 10)].map(step).to_vec());
        let report = simulate(&config);
        let rate = |from, to| line_rate(&report, from, to);
        assert!(rate(ms(1), ms(5)) >= 9_800_000_000, "before");
        let narrow = rate(ms(6), ms(10));
        assert!((1_950_000_000..=2_010_000_000).contains(&narrow), "{narrow}");
        let took = report.time_to_rate(BOTTLENECK, 9_000_000_000, ms(10)).expect("it comes back");
        assert!(took <= Duration::from_us(200), "{senders} flows: {took}");
        assert!(rate(ms(10) + took, ms(15)) >= 9_800_000_000, "and stays");
        // First the bytes in transit at 10 Gb/s leave at 2 Gb/s. Then the flows meet the target.
        let longest = report.longest_wait(ms(5), ms(10));
        assert!(longest <= Duration::from_us(most), "{senders} flows: {longest}");
        let settled = report.longest_wait(ms(7), ms(10));
        assert!(settled <= Duration::from_us(60), "{senders} flows: {settled}");
        assert_eq!(report.dropped, 0);
    }
}
