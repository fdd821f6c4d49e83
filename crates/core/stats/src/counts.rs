//! Distributions of whole numbers, such as depths of queues, each with a weight.

use std::collections::BTreeMap;

/// The maximum number of different values that are kept. A further value counts as the next greater
/// kept value, or as the greatest kept value if none is greater.
const MOST_VALUES: usize = 1 << 16;

/// A distribution of whole numbers, each with a weight such as a count or a duration. Exact for up
/// to 65 536 different values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    weights: BTreeMap<u64, u64>,
    total: u64,
    sum: u128,
    max: u64,
}

impl Counts {
    /// Adds a value. A weight of 0 adds nothing.
    pub fn record(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        self.total = self.total.saturating_add(weight);
        self.sum += u128::from(value) * u128::from(weight);
        self.max = self.max.max(value);
        let full = self.weights.len() >= MOST_VALUES && !self.weights.contains_key(&value);
        let near = if full { self.nearest(value) } else { value };
        let here = self.weights.entry(near).or_default();
        *here = here.saturating_add(weight);
    }

    fn nearest(&self, value: u64) -> u64 {
        let above = self.weights.range(value..).next();
        above.or_else(|| self.weights.last_key_value()).map_or(value, |(near, _)| *near)
    }

    /// The sum of all weights; saturates.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The greatest value; 0 without values.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The weighted arithmetic mean; 0 without values.
    pub fn mean(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 }
    }

    /// The lowest value `v` for which values up to `v` have at least the share `quantile` (0 to 1)
    /// of the weight; 0 without values.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let least = ((quantile * self.total as f64).ceil() as u64).max(1);
        let mut below = 0u64;
        let found = self.weights.iter().find(|(_, weight)| {
            below = below.saturating_add(**weight);
            below >= least
        });
        found.map_or(self.max, |(value, _)| *value)
    }
}

impl FromIterator<u64> for Counts {
    /// Each value with weight 1.
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut counts = Self::default();
        values.into_iter().for_each(|value| counts.record(value, 1));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_values() {
        let hundred: Counts = (1..=100).rev().collect();
        let quantile = |share| hundred.quantile(share);
        assert_eq!([quantile(0.0), quantile(0.5), quantile(0.99), quantile(1.0)], [1, 50, 99, 100]);
        assert_eq!((hundred.total(), hundred.max(), hundred.mean()), (100, 100, 50.5));
        let none = Counts::default();
        assert_eq!((none.quantile(0.5), none.max(), none.mean()), (0, 0, 0.0));
    }

    #[test]
    fn quantiles_and_mean_use_weights() {
        let mut depth = Counts::default();
        // Weights: 90 ns at 1, 9 ns at 4, 1 ns at 32: (90 + 36 + 32) / 100.
        [(1, 90), (32, 1), (4, 9), (7, 0)]
            .into_iter()
            .for_each(|(n, weight)| depth.record(n, weight));
        let quantile = |share| depth.quantile(share);
        assert_eq!(
            [quantile(0.5), quantile(0.9), quantile(0.91), quantile(0.99), quantile(0.991)],
            [1, 1, 4, 4, 32]
        );
        assert_eq!((depth.mean(), depth.max(), depth.total()), (1.58, 32, 100));
    }

    #[test]
    fn memory_is_bounded() {
        let mut counts: Counts = (0..MOST_VALUES as u64).map(|value| 2 * value).collect();
        [1, 3, u64::MAX].into_iter().for_each(|value| counts.record(value, 1));
        assert_eq!((counts.weights.len(), counts.max()), (MOST_VALUES, u64::MAX));
        assert_eq!((counts.weights[&2], counts.weights[&4], counts.total()), (2, 2, 65_539));
    }
}
