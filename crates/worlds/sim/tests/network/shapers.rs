//! Shapers at a port: credit, eligibility times, weights and cyclic queues, also with gates.

use super::*;
use proptest::prelude::*;
use sim::ethernet::port::{
    Algorithm, Ats, Committed, Config, Counted, CreditBased, Preemption, Shaper, Transmits,
};
use tsn::credit::{Higher, Slopes, hi_credit, lo_credit};
use tsn::gates::HoldAdvance;
use tsn::preemption::{FragmentSize, verification};
use tsn::{Cqf, Gates};

/// The IDs of frames, and the times at which they start, in nanoseconds.
fn starts(port: &mut Port, offers: &[(Instant, u8, usize)]) -> Vec<(u64, u64)> {
    let start = |(at, event): (Instant, LineEvent)| match event {
        LineEvent::Transmit(sent) => Some((sent.frame.id, at.as_ns())),
        LineEvent::Suspend(_) | LineEvent::Resume(_) => None,
    };
    line_of(port, offers).into_iter().filter_map(start).collect()
}

fn with(class: usize, algorithm: Algorithm) -> Config {
    let mut config = Config::new(Rate::M100);
    config.classes[class].algorithm = algorithm;
    config
}

fn credit(idle_slope: u64) -> Algorithm {
    let counted = Counted::WithGap;
    Algorithm::CreditBased(CreditBased { idle_slope, counted, rises_in_guard_band: true })
}

/// The port has 100 Mb/s, class 5 an idle slope of 20 Mb/s. A frame of another class starts at 0
/// and takes 1542 bytes, with preamble and gap. At 1 ns two frames of class 5 come, 1000 bytes
/// each.
///
/// The first one starts at 123.36 us with a credit of 20 * 123.359 = 2467.18 bits. After 80 us the
/// credit is 2467.18 - 80 * 80 = -3932.82 bits. The credit needs 196.641 us to return to zero, so
/// the second frame starts at 400.001 us. If the gate of class 5 is closed from 220 to 320 us, the
/// second frame starts 100 us later.
#[test]
fn credit_by_hand() {
    let at = Instant::from_ns;
    let offers = [(at(0), 0, 1522), (at(1), 5, 980), (at(1), 5, 980)];
    let mut port = Port::new(with(5, credit(20_000_000)));
    assert_eq!(starts(&mut port, &offers), [(0, 0), (1, 123_360), (2, 400_001)]);
    assert_eq!(port.credit(5, at(480_001)), Some(-6400.0));
    assert_eq!(port.credit_extremes(5), Some([-6_400_000_000_000_000, 2_467_180_000_000_000]));
    assert_eq!(port.credit(5, at(640_001)), Some(-3200.0));
    assert_eq!(port.credit(5, at(900_000)), Some(0.0), "an empty queue gathers no credit");

    let us = Duration::from_us;
    let gates = gates_of(&[(0xff, us(220)), (0xdf, us(100)), (0xff, us(99_680))]);
    // The gate is open for 99.9 of 100 ms. An operIdleSlope of 19.98 Mb/s gives the same slope.
    let mut config = with(5, credit(19_980_000));
    config.gates = Some(gates);
    let mut port = Port::new(config);
    assert_eq!(starts(&mut port, &offers), [(0, 0), (1, 123_360), (2, 500_001)]);
}

/// A custom shaper with 200 us from the start of a frame to the start of the next frame.
#[derive(Debug, Default)]
struct Paced {
    next: Instant,
}

impl Shaper for Paced {
    fn advance(&mut self, _: Instant, _: Option<Duration>, _: Option<&Gates>) {}

    fn ready(&self, now: Instant, _: Duration, _: Option<&Gates>) -> Option<Instant> {
        Some(now.max(self.next))
    }

    fn transmits(&mut self, bits: Transmits) {
        self.next = bits.from + Duration::from_us(200);
    }

    fn stops(&mut self, _: Instant) {}
}

/// A class waits for its shaper and then for its gate, while other classes send.
#[test]
fn custom_shaper_decides_when_its_class_sends() {
    let at = Instant::from_ns;
    let offers = [(at(0), 5, 980), (at(0), 5, 980), (at(0), 5, 980), (at(1), 0, 980)];
    let mut config = with(5, Algorithm::Own(|_, _| Box::<Paced>::default()));
    let mut port = Port::new(config.clone());
    assert_eq!(starts(&mut port, &offers), [(0, 0), (3, 80_000), (1, 200_000), (2, 400_000)]);
    let us = Duration::from_us;
    config.gates = Some(gates_of(&[(0xff, us(150)), (0xdf, us(150)), (0xff, us(99_700))]));
    let mut port = Port::new(config);
    assert_eq!(starts(&mut port, &offers), [(0, 0), (3, 80_000), (1, 300_000), (2, 500_000)]);
}

/// A class keeps its credit while its last frame is sent, because *transmit* is true (IEEE
/// 802.1Q-2022, 8.6.8.2). This includes a preamble that does not count. Class 5 waits 122.36 us and
/// gains 6118 bits at 50 Mb/s. Its first frame costs less than 3000 bits, so the second frame
/// follows at once.
#[test]
fn the_last_frame_of_a_queue_keeps_its_credit() {
    for counted in [Counted::WithGap, Counted::FrameOnly] {
        let shaper = CreditBased { idle_slope: 50_000_000, counted, rises_in_guard_band: false };
        let mut port = Port::new(with(5, Algorithm::CreditBased(shaper)));
        let at = Instant::from_ns;
        let offers = [(at(0), 0, 1522), (at(1_000), 5, 700), (at(130_000), 5, 700)];
        let next = 123_360 + (8 + 700 + 12) * 80;
        assert_eq!(starts(&mut port, &offers), [(0, 0), (1, 123_360), (2, next)], "{counted:?}");
    }
}

/// Credit falls while the bits of a frame pass, but not during the overhead of an interruption.
#[test]
fn an_interruption_costs_no_credit() {
    let spent = |express: bool| {
        let preemption = Preemption {
            express: 0x80,
            fragment: FragmentSize::new(0).unwrap(),
            advance: HoldAdvance::default(),
            verify: verification::Config { enabled: false, ..Default::default() },
        };
        let mut port =
            Port::new(Config { preemption: Some(preemption), ..with(5, credit(20_000_000)) });
        let mut offers = vec![(Instant::ZERO, 5, 980)];
        if express {
            offers.push((Instant::from_ns(20_000), 7, 64));
        }
        starts(&mut port, &offers);
        assert_eq!(port.credit(5, Instant::from_ns(1_000_000)), Some(0.0));
        (port.counters().suspended, port.credit_extremes(5).unwrap()[0])
    };
    assert_eq!(spent(false), (0, -6_400_000_000_000_000));
    // The frame is interrupted at 20 us with -1600 bits. The rest begins 24 + 84 bytes later, after
    // the preamble of the continuation. Until then credit rises: 108 * 0.08 us * 20 = 172.8 bits.
    assert_eq!(spent(true), (1, -6_227_200_000_000_000));
}

fn ats(rate: u64, burst: u64, max_residence: Option<Duration>) -> Algorithm {
    let (committed, counted) = (Committed { rate, burst }, Counted::FrameOnly);
    Algorithm::Ats(Ats { committed, streams: Vec::new(), max_residence, counted })
}

/// With 1 Mb/s and a bucket of two frames of 1000 bits, two frames leave at once, and the others
/// after 1 ms each.
#[test]
fn frames_leave_at_their_eligibility_times() {
    let four = [(Instant::ZERO, 6, 125); 4];
    let mut port = Port::new(with(6, ats(1_000_000, 2_000, None)));
    let starts_at = starts(&mut port, &four);
    // A frame takes 8 + 125 + 12 bytes on the line.
    assert_eq!(starts_at, [(0, 0), (1, 145 * 80), (2, 1_000_000), (3, 2_000_000)]);
    // The fourth frame would wait for 2 ms.
    let most = Some(Duration::from_us(1_500));
    let mut port = Port::new(with(6, ats(1_000_000, 2_000, most)));
    assert_eq!(starts(&mut port, &four).len(), 3);
    let counters = port.counters();
    assert_eq!((counters.late_eligible, counters.offered, counters.sent), (1, 4, 3));
}

/// Classes 1 and 2 share the bandwidth that class 7 leaves by weight, with frames of very different
/// sizes.
#[test]
fn weights_share_what_strict_priority_leaves() {
    let mut config = with(1, Algorithm::Ets { weight: 25 });
    config.classes[2].algorithm = Algorithm::Ets { weight: 75 };
    let mut offers = vec![(Instant::ZERO, 1, 1522); 400];
    offers.extend(vec![(Instant::ZERO, 2, 200); 2_000]);
    offers.extend((0..50).map(|n| (Instant::from_ns(n * 400_000), 7, 1_000)));
    let mut port = Port::new(config.with_depth(10_000, usize::MAX));
    let until = 20_000_000;
    let starts: Vec<_> =
        starts(&mut port, &offers).into_iter().filter(|(_, at)| *at < until).collect();
    let bytes = |from: u64, to: u64, each: u64| {
        starts.iter().filter(|(id, _)| (from..to).contains(id)).count() as u64 * (each + 20)
    };
    let (low, high) = (bytes(0, 400, 1522), bytes(400, 2_400, 200));
    let share = high as f64 / (low + high) as f64;
    assert!((0.72..0.78).contains(&share), "{share}");
    // Class 7 waits for at most one frame.
    let late = |(id, at): &&(u64, u64)| *id >= 2_400 && at - (id - 2_400) * 400_000 > 1542 * 80;
    assert_eq!(starts.iter().find(late), None);
}

/// With cyclic queues a frame that is received in one cycle leaves in the next cycle.
#[test]
fn cyclic_queues_take_turns() {
    let pair = Cqf { classes: [2, 3], cycle: Duration::from_us(100), base: Instant::ZERO };
    let config = Config::new(Rate::M100).with_cqf(pair, Clock::default());
    let mut port = Port::new(config);
    let at = |us: u64| Instant::from_ns(us * 1_000);
    let offers = [(at(10), 2, 125), (at(99), 3, 125), (at(100), 2, 125), (at(350), 2, 125)];
    let next = 145 * 80;
    assert_eq!(
        starts(&mut port, &offers),
        [(0, 100_000), (1, 100_000 + next), (2, 200_000), (3, 400_000)]
    );
}

#[test]
fn a_class_has_a_longest_frame() {
    let mut config = Config::new(Rate::M100);
    config.classes[4].max_sdu = Some(500);
    let mut port = Port::new(config);
    // A frame with a payload of 500 bytes leaves; a frame with one byte more is dropped. Another
    // class has no limit.
    let offers = [(Instant::ZERO, 4, 522), (Instant::ZERO, 4, 523), (Instant::ZERO, 5, 1522)];
    assert_eq!(starts(&mut port, &offers).len(), 2);
    assert_eq!(port.counters().oversize, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// One port has random shapers, gates and preemption. Every frame is sent, or dropped and
    /// counted. A class with credit never starts below zero and never falls below its lowest
    /// credit. No frame leaves before it is eligible.
    #[test]
    fn random_shapers_gates_and_preemption_keep_all_laws(
        algorithms in prop::array::uniform8(0u8..4),
        slope in 1_000_000u64..12_000_000,
        gates in prop::option::of(prop::collection::vec((any::<u8>(), 130u64..500), 1..5)),
        express in prop::option::of(any::<u8>()),
        offers in prop::collection::vec((0u64..2_000_000, 0u8..8, 64usize..1522), 1..80),
    ) {
        let mut config = Config::new(Rate::M100);
        for (class, algorithm) in config.classes.iter_mut().zip(algorithms) {
            class.algorithm = match algorithm {
                0 => credit(slope),
                1 => ats(slope, 20_000, None),
                _ => Algorithm::StrictPriority,
            };
        }
        config.gates = gates.map(|entries| {
            // All gates are open for some time, so that no frame waits for ever.
            let entry = |&(states, us): &(u8, u64)| (states, Duration::from_us(us));
            let mut entries: Vec<_> = entries.iter().map(entry).collect();
            entries.push((0xff, Duration::from_us(2_000)));
            gates_of(&entries)
        });
        config.preemption = express.map(|express| Preemption {
            express,
            fragment: FragmentSize::new(0).unwrap(),
            advance: HoldAdvance::default(),
            verify: verification::Config { enabled: false, ..Default::default() },
        });
        let mut port = Port::new(config);
        let offers: Vec<_> =
            offers.iter().map(|&(ns, pcp, length)| (Instant::from_ns(ns), pcp, length)).collect();
        let starts = starts(&mut port, &offers);
        prop_assert_eq!(starts.len(), offers.len());
        prop_assert!(starts.iter().all(|&(id, at)| at >= offers[id as usize].0.as_ns()));
        prop_assert_eq!(port.counters().dropped(), 0);
        for class in 0..8 {
            port.credit(class, Instant::from_ns(1_000_000_000));
            if let Some([lowest, _]) = port.credit_extremes(class) {
                // The longest frame at the steepest slope starts with a credit of at least zero.
                let longest = i128::from((1522 + 20) * 8 * 1_000_000_000_000u64);
                prop_assert!(lowest >= -longest, "class {class}: {lowest}");
            }
        }
    }

    /// Annex L bounds the credit of every class if there are no gates and no preemption, and if
    /// only the highest classes have credit-based shapers.
    #[test]
    fn credit_stays_within_annex_l(
        slopes in (5_000_000u64..50_000_000, 5_000_000u64..25_000_000),
        offers in prop::collection::vec((0u64..3_000_000, 4u8..8, 64usize..1522), 1..120),
    ) {
        within_annex_l(slopes, &offers);
    }
}

/// The second frame of a class starts a fraction of a picosecond after the credit has returned to
/// zero, and therefore with a credit slightly above zero.
#[test]
fn credit_of_a_class_alone_stays_within_annex_l() {
    within_annex_l((5_000_001, 5_000_000), &[(0, 7, 103), (195_767, 7, 532)]);
}

/// Checks the credits of classes 7 and 6 with these slopes (bit/s) at a port of 100 Mb/s. They stay
/// within their bounds (IEEE 802.1Q-2022, L-2 and L-3), except for the credit of one picosecond,
/// because frames start at whole picoseconds.
#[track_caller]
fn within_annex_l(slopes: (u64, u64), offers: &[(u64, u8, usize)]) {
    let mut config = with(7, credit(slopes.0));
    config.classes[6].algorithm = credit(slopes.1);
    let mut port = Port::new(config);
    let offers: Vec<_> =
        offers.iter().map(|&(ns, pcp, length)| (Instant::from_ns(ns), pcp, length)).collect();
    assert_eq!(starts(&mut port, &offers).len(), offers.len());
    let longest = |classes: &[u8]| {
        let offered = offers.iter().filter(|(_, pcp, _)| classes.contains(pcp));
        offered.map(|(_, _, length)| (length + 20) as u64 * 8).max().unwrap_or(0)
    };
    let [top, below] = [slopes.0, slopes.1].map(|idle| Slopes::new(idle, 100_000_000).unwrap());
    let higher = [Higher { idle: top.idle, max_frame: longest(&[7]) }];
    let bounds = [
        (7, top, hi_credit(top, longest(&[4, 5, 6]), &[]), longest(&[7])),
        (6, below, hi_credit(below, longest(&[4, 5]), &higher), longest(&[6])),
    ];
    for (class, slopes, high, own) in bounds {
        port.credit(class, Instant::from_ns(1_000_000_000));
        let [lowest, highest] = port.credit_extremes(class).unwrap();
        let picobits = |bits: i64| i128::from(bits) * 1_000_000_000_000;
        let low = lo_credit(slopes, own);
        assert!(lowest >= picobits(low), "class {class}: {lowest} below {low}");
        let high = picobits(high.unwrap() as i64) + i128::from(slopes.idle);
        assert!(highest <= high, "class {class}: {highest} above {high}");
    }
}
