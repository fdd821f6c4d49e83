//! Shares of bandwidth.

use proptest::prelude::*;
use tsn::QUEUES;
use tsn::ets::{Ets, EtsError};

const LARGEST: usize = 1542;

/// Weights of the classes 0 to `N` - 1.
fn weights<const N: usize>(first: [u8; N]) -> [Option<u8>; QUEUES] {
    std::array::from_fn(|class| first.get(class).copied())
}

fn heads<const N: usize>(first: [Option<usize>; N]) -> [Option<usize>; QUEUES] {
    std::array::from_fn(|class| first.get(class).copied().flatten())
}

/// The classes of the next `count` frames.
fn run(ets: &mut Ets, waiting: [Option<usize>; QUEUES], count: usize) -> Vec<usize> {
    let mut next = || {
        let class = ets.select(waiting).unwrap();
        assert_eq!(ets.select(waiting), Some(class), "asked again");
        ets.sent(class, waiting[class].unwrap());
        class
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn weights_are_100_together() {
    let error = |weights| Ets::new(weights, LARGEST).map(drop).unwrap_err();
    assert_eq!(error(weights([50, 49])), EtsError::Sum(99));
    assert_eq!(error(weights([255, 101])), EtsError::Sum(356));
    assert_eq!(error(weights([])), EtsError::Sum(0));
    assert_eq!(error(weights([50, 0, 50])), EtsError::Zero(1));
    let text = EtsError::Sum(99).to_string();
    assert_eq!(text, "the sum of the weights is 99 %, not 100 %");
}

#[test]
fn a_round_by_hand() {
    // The quanta are 1000 and 3000 bytes. In each round class 0 sends one frame of 900 bytes and
    // keeps 100; class 1 sends two frames of 1400 bytes and keeps 200. In the seventh round class 1
    // has 3000 + 6 * 200 = 4200 bytes, enough for three frames.
    let mut ets = Ets::new(weights([25, 75]), 1000).unwrap();
    let sent = run(&mut ets, heads([Some(900), Some(1400)]), 22);
    let round = [0, 1, 1];
    assert_eq!(sent[..18], round.repeat(6));
    assert_eq!(sent[18..], [0, 1, 1, 1]);
}

#[test]
fn a_class_alone_gets_everything() {
    let mut ets = Ets::new(weights([1, 99]), LARGEST).unwrap();
    assert_eq!(run(&mut ets, heads([Some(LARGEST)]), 1000), [0; 1000]);
    assert_eq!(ets.select(heads([])), None);
    // Classes without a weight are not selected.
    assert_eq!(ets.select(heads([None, None, Some(64)])), None);
    ets.sent(2, 64);
}

#[test]
fn a_closed_gate_saves_nothing_up() {
    let mut ets = Ets::new(weights([50, 50]), LARGEST).unwrap();
    let both = heads([Some(64), Some(LARGEST)]);
    for _ in 0..1000 {
        run(&mut ets, heads([None, Some(LARGEST)]), 1);
    }
    // When its gate opens again, class 0 has one quantum: 1542 / 64 = 24 frames.
    let sent = run(&mut ets, both, 1000);
    let longest = sent.chunk_by(|a, b| a == b).map(<[_]>::len).max();
    assert_eq!(longest, Some(25), "1542 and what was left of it");
}

#[test]
fn a_frame_beyond_the_largest_waits_for_more_rounds() {
    let mut ets = Ets::new(weights([50, 50]), 100).unwrap();
    assert_eq!(run(&mut ets, heads([Some(250), Some(100)]), 5), [1, 1, 0, 1, 1]);
}

/// Weights of 2 to 8 classes with the sum 100.
fn any_weights() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(1u8..=99, 1..QUEUES).prop_map(|cuts| {
        let mut cuts = [vec![0], cuts, vec![100]].concat();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    })
}

proptest! {
    #[test]
    fn each_class_gets_its_share_within_10_per_cent(
        chosen in any_weights(),
        smallest in proptest::collection::vec(64usize..=LARGEST, QUEUES),
        seed: u64,
    ) {
        // Frame sizes are random, from the smallest of the class to LARGEST.
        let weights = std::array::from_fn(|class| chosen.get(class).copied());
        let mut ets = Ets::new(weights, LARGEST).unwrap();
        let mut random = seed | 1;
        let mut frame = |class: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            smallest[class] + (random >> 33) as usize % (LARGEST - smallest[class] + 1)
        };
        let mut waiting = std::array::from_fn(|class| Some(frame(class)));
        let mut sent = [0usize; QUEUES];
        // 20 rounds, in each of which the class with the least weight may send LARGEST bytes.
        let least = usize::from(*chosen.iter().min().unwrap());
        while sent.iter().sum::<usize>() < 20 * LARGEST * 100 / least {
            let class = ets.select(waiting).unwrap();
            let bytes = waiting[class].unwrap();
            ets.sent(class, bytes);
            sent[class] += bytes;
            waiting[class] = Some(frame(class));
        }
        let total: usize = sent.iter().sum();
        for (class, &weight) in chosen.iter().enumerate() {
            let share = sent[class] as f64 / total as f64 * 100.0 / f64::from(weight);
            prop_assert!((0.9..=1.1).contains(&share), "class {class}: {share}");
        }
    }
}
