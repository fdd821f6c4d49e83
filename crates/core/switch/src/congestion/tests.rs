use super::*;

const FRAME: u64 = 1538;

fn us(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn ack(round_trip_us: u64) -> Acknowledged {
    let round_trip = Some((Duration::from_us(round_trip_us), FRAME));
    Acknowledged { bytes: FRAME, frames: 1, round_trip, window_limited: true }
}

#[test]
fn settings_round_trip_as_text() {
    for word in ["none", "swift", "swift=50us", "rate=5G", "rate=2500M", "swift=1500ns", "rate=7"] {
        let config: Config = word.parse().expect(word);
        assert_eq!(config.to_string(), word);
    }
    assert_eq!("rate=2.5G".parse::<Config>().expect("decimals").to_string(), "rate=2500M");
    for word in
        ["", "Swift", "rate", "rate=", "rate=0", "rate=5X", "rate=-1G", "swift=5", "rate=1."]
    {
        let error = word.parse::<Config>().expect_err(word).to_string();
        assert!(error.contains("rate=5G"), "{error}");
    }
}

#[test]
fn a_rate_is_held_to_the_byte() {
    let mut limit = RateLimit::new(Rate { bits_per_second: 5_000_000_000, burst: 1 }, FRAME);
    let (mut now, mut bytes) = (us(7), 0);
    while now < us(1_007) {
        assert!(limit.may_send(now));
        limit.sent(now, FRAME);
        bytes += FRAME;
        assert!(!limit.may_send(now), "one frame at once");
        now = limit.not_before();
    }
    // 5 Gb/s for 1 ms, rounded up to whole frames.
    assert_eq!(bytes, 625_000_u64.div_ceil(FRAME) * FRAME);
}

#[test]
fn a_larger_burst_makes_up_for_late_timers() {
    let ten_years = Instant::from_ns(10 * 365 * 86_400 * 1_000_000_000);
    for start in [us(10), ten_years] {
        let mut limit = RateLimit::new(Rate { bits_per_second: 8_000_000_000, burst: 4 }, 1000);
        let mut sent = 0;
        for turn in 0..1000 {
            let now = start + Duration::from_us(turn * 3);
            while limit.may_send(now) {
                limit.sent(now, 1000);
                sent += 1;
                assert!(sent <= 3004, "no limit");
            }
        }
        assert!((3000..=3004).contains(&sent), "{sent}");
    }
}

fn swift() -> Swift {
    let target = Target::RoundTrip(Duration::from_us(30));
    Swift::new(SwiftConfig { target, scaling: Duration::ZERO, ..SwiftConfig::default() }, FRAME)
}

#[test]
fn the_window_grows_by_a_frame_a_round_trip() {
    let mut swift = swift();
    assert_eq!(swift.window(), 10 * FRAME);
    for n in 0..10 {
        swift.acknowledged(us(20 + n), ack(20));
    }
    let grown = swift.window() - 10 * FRAME;
    assert!((FRAME * 9 / 10..=FRAME).contains(&grown), "{grown}");
    let before = swift.window();
    swift.acknowledged(us(40), Acknowledged { window_limited: false, ..ack(20) });
    assert_eq!(swift.window(), before, "nothing to send teaches nothing");
}

#[test]
fn window_shrinks_in_proportion_once_per_round_trip() {
    let mut swift = swift();
    swift.acknowledged(us(100), ack(40));
    // 0.8 * (40 - 30) / 40 = 20 %, rounded to parts of 1024.
    let after = swift.window();
    assert_eq!(after, 10 * FRAME * (1024 - 204) / 1024);
    swift.acknowledged(us(101), ack(60));
    assert_eq!(swift.window(), after, "the same round trip");
    swift.acknowledged(us(600), ack(400));
    assert!(swift.window().abs_diff(after / 2) <= 1, "never by more than half");
}

#[test]
fn loss_without_delay_keeps_window_up_to_2_per_cent() {
    let mut swift = swift();
    swift.acknowledged(us(100), ack(20));
    let before = swift.window();
    swift.lost(us(150));
    assert_eq!(swift.window(), before);
    for n in 0..8 {
        swift.lost(us(200 + n));
    }
    assert_eq!(swift.window() / 10, before / 2 / 10, "more than 2 % is a full queue");
}

#[test]
fn loss_with_delay_halves_and_timeouts_go_to_the_least() {
    let mut swift = swift();
    swift.acknowledged(us(100), ack(31));
    let before = swift.window();
    swift.lost(us(200));
    assert_eq!(swift.window() / 10, before / 2 / 10);
    swift.timed_out(us(300), TIMEOUTS_IN_A_ROW);
    assert_eq!(swift.window(), FRAME / 128);
    swift.sent(us(300), FRAME);
    let pause = swift.not_before().since(us(300));
    assert!(pause > Duration::from_us(31 * 127), "paced: {pause}");
    assert!(!swift.may_send(us(301), 0, FRAME));
}

const TIMEOUTS_IN_A_ROW: u32 = 5;

#[test]
fn small_windows_have_large_targets() {
    let target = Target::RoundTrip(Duration::from_us(30));
    let config = SwiftConfig { target, initial_window: 1, ..SwiftConfig::default() };
    let mut one = Swift::new(config, FRAME);
    let mut hundred = Swift::new(SwiftConfig { initial_window: 100, ..config }, FRAME);
    for swift in [&mut one, &mut hundred] {
        swift.acknowledged(us(100), ack(35));
    }
    assert!(one.window() > FRAME, "35 us are below the target of a small window");
    assert!(hundred.window() < 100 * FRAME, "and above that of a large one");
}

#[test]
fn a_target_above_the_least_follows_the_size_of_frames() {
    let target = Target::Above(Duration::from_us(10));
    let config = SwiftConfig { target, scaling: Duration::ZERO, ..SwiftConfig::default() };
    let mut swift = Swift::new(config, FRAME);
    let short = |us| Some((Duration::from_us(us), 84));
    swift.acknowledged(us(100), Acknowledged { round_trip: short(5), ..ack(0) });
    let before = swift.window();
    swift.acknowledged(us(200), ack(29));
    assert!(swift.window() > before, "a long frame takes longer on every line");
    let before = swift.window();
    swift.acknowledged(us(300), Acknowledged { round_trip: short(29), ..ack(0) });
    assert!(swift.window() < before, "a short one does not");
}
