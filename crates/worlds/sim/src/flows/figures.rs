//! Figures computed from the samples between two times.

use super::{FlowsReport, Sample};
use crate::ethernet::frame::GAP;
use wire::{Duration, Instant};

impl FlowsReport {
    fn between(&self, from: Instant, to: Instant) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.at > from && sample.at <= to)
    }

    /// Bits per second in one direction of a cable, including preamble and gap.
    pub fn line_rate(&self, direction: usize, from: Instant, to: Instant) -> u64 {
        let bytes = self.between(from, to).map(|sample| {
            let load = sample.loads[direction];
            load.bytes + GAP as u64 * load.packets
        });
        let bits = u128::from(8 * bytes.sum::<u64>());
        (bits * 1_000_000_000_000 / u128::from((to - from).as_ps().max(1))) as u64
    }

    /// Bytes that each flow delivered between `from` and `to`.
    pub fn delivered(&self, from: Instant, to: Instant) -> Vec<u64> {
        let mut sums = vec![0; self.senders.len()];
        for sample in self.between(from, to) {
            sums.iter_mut().zip(&sample.delivered).for_each(|(sum, more)| *sum += more);
        }
        sums
    }

    /// The longest wait at the watched port between `from` and `to`.
    pub fn longest_wait(&self, from: Instant, to: Instant) -> Duration {
        self.between(from, to).map(|sample| sample.longest_wait).max().unwrap_or_default()
    }

    /// Time from `since` to the end of the first interval in which this direction of a cable
    /// carries at least `rate` bits per second. `None`: no interval does.
    pub fn time_to_rate(&self, direction: usize, rate: u64, since: Instant) -> Option<Duration> {
        let mut before = since;
        self.samples.iter().filter(|sample| sample.at > since).find_map(|sample| {
            let from = std::mem::replace(&mut before, sample.at);
            (self.line_rate(direction, from, sample.at) >= rate).then(|| sample.at - since)
        })
    }
}

/// Jain's index of fairness in thousandths: 1000 for equal shares, 1000/n if one of n shares has
/// everything, 0 if all shares are zero (R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of
/// Fairness and Discrimination for Resource Allocation in Shared Computer Systems", DEC TR-301,
/// 1984).
pub fn jain(shares: &[u64]) -> u64 {
    let sum: u128 = shares.iter().map(|share| u128::from(*share)).sum();
    let squares: u128 = shares.iter().map(|share| u128::from(*share).pow(2)).sum();
    (1000 * sum * sum / (shares.len() as u128 * squares).max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_index_of_known_shares() {
        assert_eq!(jain(&[7, 7, 7]), 1000);
        assert_eq!(jain(&[1, 0, 0, 0]), 250);
        assert_eq!(jain(&[3, 1]), 800);
        assert_eq!(jain(&[0, 0]), 0);
    }
}
