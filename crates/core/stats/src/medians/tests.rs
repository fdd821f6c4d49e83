//! Known intervals, and how often the comparison distinguishes equal and different series.

use super::*;
use crate::random::Random;

/// `n` skewed values around `mean`: exponentials of a first-order autoregressive process with the
/// coefficient `memory` / 16. The standard deviation of the logarithms is about `spread` / 1000.
fn latencies(seed: u64, n: usize, mean: f64, spread: i64, memory: i64) -> Vec<u64> {
    const ONE: i64 = 1 << 20;
    let mut random = Random::new(seed);
    // This sigma gives the same deviation for every `memory`.
    let share = memory as f64 / 16.0;
    let sigma = (ONE as f64 * spread as f64 / 1000.0 * (1.0 - share * share).sqrt()) as u64;
    let mut level = random.normal(sigma);
    let mut next = || {
        level = level * memory / 16 + random.normal(sigma);
        (mean * (level as f64 / ONE as f64).exp()) as u64
    };
    // The first values have a smaller deviation than later values.
    (0..200).for_each(|_| _ = next());
    (0..n).map(|_| next()).collect()
}

#[test]
fn intervals_are_those_of_the_order_statistics() {
    // David and Nagaraja: of six values the range has 1 - 2 * 2^-6 = 96.9 %, of five less than 95.
    let median_of_first = |n: u64| {
        let (series, median) = Series::new(&(1..=n).collect::<Vec<_>>()).unwrap();
        (median, Series { tau: 1.0, ..series }.interval(Z95))
    };
    assert_eq!(median_of_first(5), (3, None));
    assert_eq!(median_of_first(6), (3, Some((1, 6))));
    // 50.5 - 1.96 * 5 = 40.7.
    assert_eq!(median_of_first(100), (50, Some((40, 61))));
    assert!(Series::new(&[]).is_none() && median(&[]).is_none());
}

#[test]
fn differences_have_the_interval_of_both_medians() {
    // (low, high) of 100 -+ 3 and of 110 -+ 4: 10 -+ sqrt(9 + 16).
    assert_eq!(mover([100.0, 110.0], [(97.0, 103.0), (106.0, 114.0)]), (5.0, 15.0));
    assert_eq!(mover([0.0, 0.0], [(-4.0, 0.0), (-3.0, 0.0)]), (-3.0, 4.0));
}

#[test]
fn equal_series_do_not_differ() {
    let series = latencies(1, 500, 1e5, 300, 8);
    let same = compare(&series, &series).unwrap();
    assert_eq!((same.p, same.difference.value, same.ratio.unwrap().value), (1.0, 0.0, 1.0));
    let constant = compare(&[7; 50], &[7; 60]).unwrap();
    assert_eq!((constant.p, constant.difference.interval), (1.0, Some((0.0, 0.0))));
    let zero = compare(&[0; 50], &[3; 50]).unwrap();
    assert!(zero.ratio.is_none() && zero.p < 1e-11);
    assert!(compare(&[1, 2, 3], &[100, 200, 300]).unwrap().difference.interval.is_none());
    assert!(compare(&[1], &[]).is_none());
}

#[test]
fn memory_makes_intervals_wider() {
    let tau = |memory| {
        let all = (0..20).map(|seed| {
            let values = latencies(seed, 4000, 1e5, 300, memory);
            Series::new(&values).unwrap().0.tau
        });
        all.sum::<f64>() / 20.0
    };
    // For a normal process, the correlation of "at most the median" is (2 / pi) * asin(r^lag).
    let exact = |r: f64| {
        let correlations = (1..200).map(|lag| r.powi(lag).asin() * 2.0 / std::f64::consts::PI);
        1.0 + 2.0 * correlations.sum::<f64>()
    };
    for memory in [0, 8, 14] {
        let (found, exact) = (tau(memory as i64), exact(memory as f64 / 16.0));
        assert!((0.85..1.25).contains(&(found / exact)), "{memory}: {found}, {exact}");
    }
}

/// Calculates tau directly from the definition, value by value.
#[test]
fn autocorrelation_times_are_those_of_the_definition() {
    for (seed, n, memory) in [(3, 333, 12), (4, 64, 8), (5, 129, 15), (6, 7, 0)] {
        let values = latencies(seed, n, 1e5, 300, memory);
        let median = Series::new(&values).unwrap().1;
        let bit = |at: usize| f64::from(u8::from(values[at] <= median));
        let share = (0..n).map(bit).sum::<f64>() / n as f64;
        let covariance = |lag: usize| {
            let product = |at: usize| (bit(at) - share) * (bit(at + lag) - share);
            (0..n - lag).map(product).sum::<f64>() / n as f64
        };
        let pairs = (0..(n / 4).max(1)).map(|pair| covariance(2 * pair) + covariance(2 * pair + 1));
        let mut before = f64::INFINITY;
        let monotone = pairs.take_while(|both| *both > 1e-12).map(|both| {
            before = before.min(both);
            before
        });
        let tau = (2.0 * monotone.sum::<f64>() / covariance(0) - 1.0).max(1.0);
        let tau = tau / (1.0 - 2.0 * tau / n as f64).max(tau / n as f64);
        let found = autocorrelation_time(&values, median);
        assert!((found - tau).abs() < 1e-6, "{n} values, memory {memory}: {found}, not {tau}");
    }
}

/// About one of twenty pairs of equal runs seems to differ.
#[test]
fn equal_runs_differ_at_about_the_significance_level() {
    const VALUES: u64 = 100_000;
    for (n, spread, memory) in
        [(50, 300, 10), (300, 300, 0), (300, 800, 6), (500, 300, 10), (1000, 150, 12)]
    {
        let found = |seed: u64| {
            let series = |seed| latencies(seed, n, 1e5, spread, memory);
            compare(&series(2 * seed), &series(2 * seed + 1)).unwrap().p < 0.05
        };
        let pairs = VALUES / n as u64;
        let share = (0..pairs).filter(|seed| found(*seed)).count() as f64 / pairs as f64;
        assert!((0.02..0.08).contains(&share), "{n} values, memory {memory}: {share}");
    }
}

#[test]
fn difference_of_five_per_cent_is_found() {
    let found = |seed: u64| {
        let series = |seed, mean| latencies(seed, 2000, mean, 150, 6);
        let both = compare(&series(2 * seed, 1e5), &series(2 * seed + 1, 1.05e5)).unwrap();
        let (low, high) = both.ratio.unwrap().interval.unwrap();
        // With 20 comparisons the smallest p-value must be below 0.05 / 20.
        (both.p < 0.0025, low < 1.05 && 1.05 < high)
    };
    let all: Vec<_> = (0..100).map(found).collect();
    let count =
        |condition: fn(&(bool, bool)) -> bool| all.iter().filter(|one| condition(one)).count();
    assert!(count(|one| one.0) >= 95, "found {} of 100", count(|one| one.0));
    assert!(count(|one| one.1) >= 88, "intervals with the ratio in them: {}", count(|one| one.1));
}

/// Holm, 1979: p-values 0.01, 0.04, 0.03, 0.005 of four become 0.03, 0.06, 0.06, 0.02.
#[test]
fn many_comparisons_are_corrected() {
    let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
    let expected = [0.03, 0.06, 0.06, 0.02];
    assert!(corrected.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{corrected:?}");
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}
