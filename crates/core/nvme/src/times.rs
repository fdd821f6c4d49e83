//! How long commands take in the controller.

use wire::Duration;
use wire::nvme::opcode::nvm;

/// Upper bounds of the bins in microseconds; the last bin has the longer times.
pub const BOUNDS_US: [u64; 16] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000,
];
/// The kinds of I/O commands, in the order of [`CommandTimes::list`].
pub const KINDS: [&str; 4] = ["read", "write", "flush", "other"];

/// Times of commands of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Number of commands by bin; see [`BOUNDS_US`].
    pub bins: [u64; BOUNDS_US.len() + 1],
    /// Sum of the times.
    pub sum_ns: u128,
}

/// Times of I/O commands by kind: from the arrival of the submission queue entry until the completion
/// queue entry is posted.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandTimes([Histogram; KINDS.len()]);

impl CommandTimes {
    /// Counts a command.
    pub(crate) fn record(&mut self, opcode: u8, time: Duration) {
        let kind = match opcode {
            nvm::READ => 0,
            nvm::WRITE => 1,
            nvm::FLUSH => 2,
            _ => 3,
        };
        let Histogram { bins, sum_ns } = &mut self.0[kind];
        bins[BOUNDS_US.partition_point(|bound| time > Duration::from_us(*bound))] += 1;
        *sum_ns += u128::from(time.as_ns());
    }

    /// The kinds with their times.
    pub fn list(&self) -> [(&'static str, Histogram); KINDS.len()] {
        std::array::from_fn(|kind| (KINDS[kind], self.0[kind]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_by_kind_and_bin() {
        let mut times = CommandTimes::default();
        for us in [0, 10, 11, 1_000_000, 1_000_001] {
            times.record(nvm::READ, Duration::from_us(us));
        }
        times.record(nvm::COMPARE, Duration::from_ns(10_001));
        let [read, write, flush, other] = times.list().map(|(_, times)| times);
        assert_eq!((read.bins[0], read.bins[1], read.bins[15], read.bins[16]), (2, 1, 1, 1));
        assert_eq!(read.sum_ns, 2_000_022_000);
        assert_eq!((other.bins[1], other.sum_ns), (1, 10_001));
        assert_eq!([write, flush], [Histogram::default(); 2]);
    }
}
