//! hiCredit and loCredit: Avnu's values, and a port whose credits stay within the bounds.

use proptest::prelude::*;
use tsn::credit::{Credit, Higher, Slopes, hi_credit, lo_credit};
use wire::Duration;

/// The rate of the port: 1 Gb/s, so that a bit takes 1000 ps.
const RATE: u64 = 1_000_000_000;

fn slopes(idle: u64) -> Slopes {
    Slopes::new(idle, RATE).unwrap()
}

#[test]
fn avnus_example() {
    // calc-cbs-params.py of Avnu's tsn-doc returns bytes, rounded up: A hi 153, lo -1389; B hi 12,
    // lo -113. Bits divided by 8 and rounded up are equal.
    let (a, b) = (slopes(98_688_000), slopes(3_648_000));
    let (frame_a, frame_b, other) = (1542 * 8, 114 * 8, 1542 * 8);
    // 12336 * 0.098688 = 1217.4; 12336 * 0.901312 = 11118.6.
    assert_eq!((hi_credit(a, other, &[]), lo_credit(a, frame_a)), (Some(1218), -11119));
    assert_eq!((1218_f64 / 8.0).ceil(), 153.0);
    assert_eq!((-11119_f64 / 8.0).ceil(), -1389.0);
    // 3648000 * (12336 / 901312000 + 12336 / 10^9) = 94.93; 912 * 0.996352 = 908.7.
    let higher = [Higher { idle: a.idle, max_frame: frame_a }];
    assert_eq!((hi_credit(b, other, &higher), lo_credit(b, frame_b)), (Some(95), -909));
    assert_eq!(((95_f64 / 8.0).ceil(), (-909_f64 / 8.0).ceil()), (12.0, -113.0));
}

#[test]
fn the_worked_example() {
    // 1542 bytes * 0.2 = 2467.2 bits, 1000 bytes * 0.8 = 6400 bits.
    let slopes = Slopes::new(20_000_000, 100_000_000).unwrap();
    assert_eq!(hi_credit(slopes, 1542 * 8, &[]), Some(2468));
    assert_eq!(lo_credit(slopes, 8_000), -6400);
}

#[test]
fn nothing_limits_the_credit_below_classes_that_take_everything() {
    let higher = [RATE / 2, RATE / 2].map(|idle| Higher { idle, max_frame: 100 });
    assert_eq!(hi_credit(slopes(1), 100, &higher), None);
}

/// One decision of a port with a free line: how many frames of each class arrive, the size of the
/// next frame of each class in bits, and other traffic.
#[derive(Clone, Debug)]
struct Step {
    arrivals: [u8; CLASSES],
    sizes: [u64; CLASSES],
    /// Bits of a frame without a class, or bit times of an idle line.
    other: u64,
    is_frame: bool,
}

const CLASSES: usize = 3;
const MAX_OTHER: u64 = 12_000;

fn step(max: [u64; CLASSES]) -> impl Strategy<Value = Step> {
    let [a, b, c] = max;
    (any::<[u8; CLASSES]>(), (1..=a, 1..=b, 1..=c), 1..=MAX_OTHER, any::<bool>()).prop_map(
        |(arrivals, (a, b, c), other, is_frame)| Step {
            arrivals: arrivals.map(|byte| byte % 3),
            sizes: [a, b, c],
            other,
            is_frame,
        },
    )
}

fn port() -> impl Strategy<Value = ([u64; CLASSES], [u64; CLASSES], Vec<Step>)> {
    let idles = [1..=RATE / 2, 1..=RATE / 4, 1..=RATE / 8];
    (idles, [1u64..=12_000, 1..=12_000, 1..=12_000]).prop_flat_map(|(idles, max)| {
        (Just(idles), Just(max), proptest::collection::vec(step(max), 1..80))
    })
}

/// Strict priority over classes with credit, then other frames.
fn run(credits: &mut [Credit; CLASSES], steps: &[Step]) {
    let mut waiting = [0u32; CLASSES];
    for step in steps {
        let ready = |class: &usize| waiting[*class] > 0 && credits[*class].picobits() >= 0;
        let sender = (0..CLASSES).find(ready);
        // Frames arrive just after the decision, which is the worst case.
        for (queue, arrivals) in waiting.iter_mut().zip(step.arrivals) {
            *queue += u32::from(arrivals);
        }
        let bits = match sender {
            Some(class) => step.sizes[class],
            None if step.is_frame => step.other,
            None => 0,
        };
        let mut took = Duration::from_ps(bits * 1_000);
        if bits == 0 {
            // The line is idle at most until a class with frames may send.
            let ready = (0..CLASSES).filter(|&class| waiting[class] > 0);
            let soonest = ready.map(|class| credits[class].until_ready()).min();
            took = soonest.unwrap_or(Duration::from_ps(step.other * 1_000));
        }
        for (class, credit) in credits.iter_mut().enumerate() {
            if sender == Some(class) {
                waiting[class] -= 1;
                credit.spend(took);
                // The queue may be empty after the frame.
                credit.gain(Duration::ZERO, waiting[class] > 0);
            } else {
                credit.gain(took, waiting[class] > 0);
            }
        }
    }
}

proptest! {
    #[test]
    fn credits_stay_in_their_range((idles, max, steps) in port()) {
        let mut credits = idles.map(|idle| Credit::new(slopes(idle)));
        run(&mut credits, &steps);
        for class in 0..CLASSES {
            let slopes = slopes(idles[class]);
            let lower = max[class + 1..].iter().copied().max().unwrap_or(0).max(MAX_OTHER);
            let higher: Vec<Higher> = (0..class)
                .map(|class| Higher { idle: idles[class], max_frame: max[class] })
                .collect();
            let hi = i128::from(hi_credit(slopes, lower, &higher).unwrap());
            let lo = i128::from(lo_credit(slopes, max[class]));
            let pico = 1_000_000_000_000;
            prop_assert!(credits[class].highest() <= hi * pico, "class {class}");
            prop_assert!(credits[class].lowest() >= lo * pico, "class {class}");
        }
    }
}
