//! Counts of values to three significant digits, in the bins of HdrHistogram. Memory is
//! proportional to the number of different values, because a simulation has one instance per
//! stream.

use serde::{Deserialize, Serialize};

/// Each value below this number has its own bin (HdrHistogram's `sub_bucket_count` for three
/// digits). Above, each range from a power of two to the next has `HALF` bins.
const EXACT: u64 = 2048;
const HALF: u64 = EXACT / 2;

/// Bins that share an allocation.
const BLOCK: usize = 64;

/// A histogram: the number of values in each bin. Serialised as the pairs of least value and count
/// of the bins that are not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<(u64, u64)>", from = "Vec<(u64, u64)>")]
pub struct Bins {
    /// Blocks in ascending order, each with the number of its first bin divided by `BLOCK`.
    blocks: Vec<(u32, Box<[u64; BLOCK]>)>,
    sum: u64,
}

/// The bin of a value.
const fn bin(value: u64) -> u64 {
    let shift = shift(value);
    shift as u64 * HALF + (value >> shift)
}

/// Log2 of the number of values in the bin of `value`.
const fn shift(value: u64) -> u32 {
    (EXACT - 1).leading_zeros() - (value | (EXACT - 1)).leading_zeros()
}

/// The lowest and the largest value of a bin.
const fn values(bin: u64) -> (u64, u64) {
    let shift = (bin / HALF).saturating_sub(1);
    let least = (bin - shift * HALF) << shift;
    (least, least + ((1 << shift) - 1))
}

impl Bins {
    /// Counts a value.
    pub fn record(&mut self, value: u64) {
        self.record_many(value, 1);
    }

    fn record_many(&mut self, value: u64, count: u64) {
        let bin = bin(value) as usize;
        self.block((bin / BLOCK) as u32)[bin % BLOCK] += count;
        self.sum += count;
    }

    fn block(&mut self, number: u32) -> &mut [u64; BLOCK] {
        let at = self.blocks.binary_search_by_key(&number, |(number, _)| *number);
        let at = at.unwrap_or_else(|at| {
            self.blocks.insert(at, (number, Box::new([0; BLOCK])));
            at
        });
        &mut self.blocks[at].1
    }

    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &Self) {
        for (number, counts) in &other.blocks {
            self.block(*number).iter_mut().zip(&counts[..]).for_each(|(sum, count)| *sum += count);
        }
        self.sum += other.sum;
    }

    /// Number of counted values.
    pub fn len(&self) -> u64 {
        self.sum
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.sum == 0
    }

    /// The non-empty bins in ascending order: least value, largest value, count.
    pub fn used(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.blocks.iter().flat_map(|(number, counts)| {
            let first = *number as usize * BLOCK;
            let used = counts.iter().enumerate().filter(|(_, count)| **count > 0);
            used.map(move |(at, count)| {
                let (least, largest) = values((first + at) as u64);
                (least, largest, *count)
            })
        })
    }

    /// The largest value of the bin that contains `quantile` (0 to 1). For `quantile` 0, the least
    /// value of the first bin; 0 without values.
    pub fn at_quantile(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.clamp(0.0, 1.0) * self.sum as f64).ceil() as u64).max(1);
        let mut sum = 0;
        let found = self.used().find(|(.., count)| {
            sum += count;
            sum >= wanted
        });
        found.map_or(0, |(least, largest, _)| if quantile == 0.0 { least } else { largest })
    }

    /// The lowest value of the bin of `value`.
    pub fn least_of_bin(value: u64) -> u64 {
        values(bin(value)).0
    }
}

impl From<Bins> for Vec<(u64, u64)> {
    fn from(bins: Bins) -> Self {
        bins.used().map(|(least, _, count)| (least, count)).collect()
    }
}

impl From<Vec<(u64, u64)>> for Bins {
    fn from(pairs: Vec<(u64, u64)>) -> Self {
        let mut bins = Self::default();
        pairs.into_iter().for_each(|(least, count)| bins.record_many(least, count));
        bins
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_touch_and_are_exact_to_three_digits() {
        for number in 0..bin(u64::MAX) {
            let (least, largest) = values(number);
            assert_eq!(
                (bin(least), bin(largest), values(number + 1).0),
                (number, number, largest + 1)
            );
            assert!((largest - least) * 1000 <= least, "{least} to {largest}");
        }
        assert_eq!(values(bin(u64::MAX)).1, u64::MAX);
    }

    #[test]
    fn a_few_near_values_take_little_memory() {
        let mut bins = Bins::default();
        (20_000..20_500).for_each(|value| bins.record(value));
        assert!(bins.blocks.len() <= 2, "{}", bins.blocks.len());
    }

    proptest! {
        /// Compares the quantiles with the sorted values.
        #[test]
        fn quantiles_are_those_of_the_values(
            values in prop::collection::vec(0u64..5_000_000, 1..200),
            more in prop::collection::vec(any::<u64>(), 0..20),
            quantile in 0.0f64..=1.0,
        ) {
            let [mut bins, mut others] = [Bins::default(), Bins::default()];
            values.iter().for_each(|value| bins.record(*value));
            more.iter().for_each(|value| others.record(*value));
            bins.add(&others);
            let mut all = [values, more].concat();
            all.sort_unstable();
            prop_assert_eq!(bins.len(), all.len() as u64);
            let rank = ((quantile * all.len() as f64).ceil() as usize).max(1);
            let (least, largest) = super::values(bin(all[rank - 1]));
            let wanted = if quantile == 0.0 { least } else { largest };
            prop_assert_eq!(bins.at_quantile(quantile), wanted);
            let used: Vec<_> = bins.used().collect();
            prop_assert!(used.windows(2).all(|pair| pair[0].1 < pair[1].0));
            prop_assert_eq!(used.iter().map(|(.., count)| count).sum::<u64>(), bins.len());
            prop_assert_eq!(Bins::from(Vec::from(bins.clone())), bins);
        }
    }
}
