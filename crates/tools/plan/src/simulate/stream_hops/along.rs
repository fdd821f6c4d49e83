//! Latency along time.

/// A bin of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bin {
    /// Frames that arrived in the bin.
    pub count: u64,
    /// The shortest, the sum and the longest of their latencies in picoseconds.
    pub least: u64,
    /// Sum of the latencies.
    pub sum: u128,
    /// The longest latency.
    pub most: u64,
}

impl Bin {
    /// Returns the mean latency in picoseconds; 0 without frames.
    pub fn mean(&self) -> u64 {
        (self.sum / u128::from(self.count.max(1))) as u64
    }

    fn add(&mut self, other: &Self) {
        match (self.count, other.count) {
            (0, _) => *self = *other,
            (_, 0) => {}
            _ => {
                self.count += other.count;
                self.least = self.least.min(other.least);
                self.sum += other.sum;
                self.most = self.most.max(other.most);
            }
        }
    }
}

/// Latencies by the time of arrival, from the start of the simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Along {
    /// Length of a bin in picoseconds. It doubles when there are too many bins.
    pub width: u64,
    /// The bins.
    pub bins: Vec<Bin>,
}

impl Along {
    pub(super) fn new() -> Self {
        Self { width: 1_000_000, bins: Vec::new() }
    }

    /// Adds a frame; `points` is the maximum number of bins.
    pub(super) fn add(&mut self, at: u64, latency: u64, points: usize) {
        while at / self.width >= points as u64 {
            let joined = self.bins.chunks(2).map(|pair| {
                let mut joined = pair[0];
                pair[1..].iter().for_each(|bin| joined.add(bin));
                joined
            });
            self.bins = joined.collect();
            self.width *= 2;
        }
        let bin = (at / self.width) as usize;
        self.bins.resize(self.bins.len().max(bin + 1), Bin::default());
        let sum = u128::from(latency);
        self.bins[bin].add(&Bin { count: 1, least: latency, sum, most: latency });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_bins_keep_count_sum_and_extremes() {
        let mut along = Along::new();
        let arrivals: Vec<(u64, u64)> = (0..1_000).map(|n| (n * 7_300_000, 100 + n % 37)).collect();
        arrivals.iter().for_each(|(at, latency)| along.add(*at, *latency, 20));
        assert!(along.bins.len() <= 20 && along.bins.len() > 10);
        for (number, bin) in along.bins.iter().enumerate() {
            let own = arrivals.iter().filter(|(at, _)| (at / along.width) as usize == number);
            let own: Vec<u64> = own.map(|(_, latency)| *latency).collect();
            assert_eq!(bin.count, own.len() as u64);
            assert_eq!(bin.sum, own.iter().map(|ps| u128::from(*ps)).sum());
            let extremes = (own.iter().min().copied(), own.iter().max().copied());
            assert_eq!((Some(bin.least), Some(bin.most)), extremes);
        }
    }
}
