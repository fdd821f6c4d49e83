//! Eligibility times: worked examples, a comparison with a token bucket, and conformance.

use proptest::prelude::*;
use tsn::ats::{Group, NoRate, Scheduler};
use wire::{Duration, Instant};

const PICO: u128 = 1_000_000_000_000;

fn us(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

#[test]
fn a_sequence_by_hand() {
    // With 8 Mb/s and 16000 bits, a frame of 8000 bits takes 1 ms, and an empty bucket fills in
    // 2 ms. It starts full: empty at -2 ms. Each line has arrival and eligibility time in us; the
    // comments have own = empty + 1, full = empty + 2 and the new `empty`, all in ms.
    let mut scheduler = Scheduler::new(8_000_000, 16_000).unwrap();
    let mut group = Group::default();
    let steps = [
        (0, 0),           // own -1, full 0: at once; empty = -1 + (0 - 0) = -1
        (0, 0),           // own 0, full 1: at once; empty = 0
        (0, 1_000),       // own 1, full 2: 1 ms; empty = 1
        (500, 2_000),     // own 2, full 3: 2 ms; empty = 2
        (10_000, 10_000), // own 3, full 4: at once; empty = 3 + (10 - 4) = 9
        (10_500, 10_500), // own 10, full 11: at once; empty = 10
        (10_500, 11_000), // own 11, full 12: 11 ms; empty = 11
    ];
    for (arrival, eligible) in steps {
        let found = scheduler.admit(&mut group, us(arrival), 8_000, None);
        assert_eq!(found, Some(us(eligible)), "arrival {arrival} us");
    }
}

#[test]
fn a_frame_that_would_stay_too_long_is_dropped_and_leaves_no_trace() {
    let mut scheduler = Scheduler::new(8_000_000, 8_000).unwrap();
    let mut group = Group::default();
    let most = Some(Duration::from_us(1_500));
    let mut admit = |arrival| scheduler.admit(&mut group, us(arrival), 8_000, most);
    assert_eq!(admit(0), Some(us(0)));
    assert_eq!(admit(0), Some(us(1_000)));
    assert_eq!(admit(0), None, "2 ms > 1.5 ms");
    assert_eq!(admit(500), Some(us(2_000)), "exactly 1.5 ms");
}

#[test]
fn frames_of_a_group_keep_their_order() {
    let slow = || Scheduler::new(1_000_000, 8_000).unwrap();
    let (mut one, mut two, mut group) = (slow(), slow(), Group::default());
    assert_eq!(one.admit(&mut group, us(0), 8_000, None), Some(us(0)));
    assert_eq!(one.admit(&mut group, us(1), 8_000, None), Some(us(8_000)));
    // The other scheduler has a full bucket, but the previous frame of the group leaves at 8 ms.
    assert_eq!(two.admit(&mut group, us(2), 8_000, None), Some(us(8_000)));
    let mut other = Group::default();
    assert_eq!(slow().admit(&mut other, us(2), 8_000, None), Some(us(2)));
}

#[test]
fn fractions_of_a_picosecond_do_not_add_up() {
    // At 3 bit/s a bit takes 333333333333.3 ps. With a burst of 3 bits, the sixth bit is eligible
    // after exactly one second.
    let mut scheduler = Scheduler::new(3, 3).unwrap();
    let mut group = Group::default();
    let mut admit = || scheduler.admit(&mut group, us(0), 1, None).unwrap().as_ps();
    let found = [(); 7].map(|()| admit());
    assert_eq!(found[..3], [0; 3]);
    assert_eq!(
        found[3..],
        [333_333_333_334, 666_666_666_667, 1_000_000_000_000, 1_333_333_333_334]
    );
}

#[test]
fn a_rate_of_zero_is_refused() {
    assert_eq!(Scheduler::new(0, 1).map(drop), Err(NoRate));
}

/// A token bucket, in picobits.
struct Bucket {
    rate: u128,
    most: u128,
    tokens: u128,
    at: u64,
}

impl Bucket {
    fn new(rate: u64, burst: u64) -> Self {
        let most = u128::from(burst) * PICO;
        Self { rate: rate.into(), most, tokens: most, at: 0 }
    }

    /// The first picosecond, not before `from`, at which the bucket has the tokens of a frame.
    /// Removes these tokens.
    fn take(&mut self, from: u64, bits: u64) -> u64 {
        let fill =
            |at: u64, own: &Self| (own.tokens + own.rate * u128::from(at - own.at)).min(own.most);
        let need = u128::from(bits) * PICO;
        let missing = need.saturating_sub(fill(from, self));
        let at = from + missing.div_ceil(self.rate) as u64;
        self.tokens = fill(at, self) - need;
        self.at = at;
        at
    }
}

/// A frame: its scheduler, picoseconds since the previous frame, bits.
type Frame = (usize, u64, u64);

const BURST: u64 = 20_000;

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    proptest::collection::vec((0usize..3, 0u64..40_000_000, 1u64..=BURST), 1..60)
}

/// Arrivals and eligibility times of frames at three schedulers of a group.
fn run(rates: [u64; 3], frames: &[Frame]) -> Vec<(u64, u64)> {
    let mut schedulers = rates.map(|rate| Scheduler::new(rate, BURST).unwrap());
    let (mut group, mut now) = (Group::default(), 0);
    let mut admit = |&(scheduler, after, bits): &Frame| {
        now += after;
        let scheduler: &mut Scheduler = &mut schedulers[scheduler];
        let eligible = scheduler.admit(&mut group, Instant::from_ps(now), bits, None);
        (now, eligible.unwrap().as_ps())
    };
    frames.iter().map(&mut admit).collect()
}

proptest! {
    #[test]
    fn eligibility_times_match_token_bucket(rates: [u32; 3], frames in frames()) {
        let rates = rates.map(|rate| u64::from(rate) + 1);
        let mut buckets = rates.map(|rate| Bucket::new(rate, BURST));
        let mut before = 0;
        for ((scheduler, _, bits), (arrival, eligible)) in frames.iter().zip(run(rates, &frames)) {
            before = buckets[*scheduler].take(arrival.max(before), *bits);
            prop_assert_eq!(eligible, before);
        }
    }

    #[test]
    fn eligibility_is_in_order_after_arrival_and_conforms(rates: [u32; 3], frames in frames()) {
        let rates = rates.map(|rate| u64::from(rate) + 1);
        let times = run(rates, &frames);
        prop_assert!(times.iter().all(|&(arrival, eligible)| eligible >= arrival));
        prop_assert!(times.is_sorted_by_key(|&(_, eligible)| eligible));
        for (scheduler, rate) in rates.into_iter().enumerate() {
            let own: Vec<(u64, u64)> = (frames.iter().zip(&times))
                .filter(|((id, ..), _)| *id == scheduler)
                .map(|((.., bits), &(_, eligible))| (eligible, *bits))
                .collect();
            for (first, &(begin, _)) in own.iter().enumerate() {
                let mut bits = 0;
                for &(end, more) in &own[first..] {
                    bits += u128::from(more) * PICO;
                    let gained = u128::from(rate) * u128::from(end - begin);
                    let most = u128::from(BURST) * PICO + gained;
                    prop_assert!(bits <= most, "{bits} from {begin} to {end}");
                }
            }
        }
    }

    #[test]
    fn conforming_frames_are_not_delayed(rate: u32, frames in frames()) {
        // Frames that passed a scheduler conform to its bucket.
        let rate = u64::from(rate) + 1;
        let one: Vec<Frame> = frames.iter().map(|&(_, after, bits)| (0, after, bits)).collect();
        let times = run([rate; 3], &one);
        let (mut next, mut group) = (Scheduler::new(rate, BURST).unwrap(), Group::default());
        for ((_, eligible), (.., bits)) in times.into_iter().zip(frames) {
            let arrival = Instant::from_ps(eligible);
            prop_assert_eq!(next.admit(&mut group, arrival, bits, None), Some(arrival));
        }
    }
}
