//! Equal parts of a run, and the median of each part, which single late frames do not change.

use super::Point;
use crate::statistics::quantile;

/// Number of parts of a run.
const PARTS: usize = 40;
/// The least number of frames in a part.
const LEAST: usize = 16;

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Number of the first frame.
    pub first: u64,
    /// Number of the last frame.
    pub last: u64,
    /// Median latency in ns.
    pub median: i64,
    /// The 90th minus the 10th percentile in ns.
    pub spread: i64,
}

/// The 40 parts of a run. Empty if the run has fewer than 640 frames.
pub fn blocks(points: &[Point]) -> Vec<Block> {
    let size = points.len() / PARTS;
    if size < LEAST {
        return Vec::new();
    }
    // The last part also has the remaining frames.
    let ends = (0..PARTS).map(|part| {
        let to = if part + 1 == PARTS { points.len() } else { (part + 1) * size };
        &points[part * size..to]
    });
    ends.map(block).collect()
}

fn block(points: &[Point]) -> Block {
    let mut sorted: Vec<i64> = points.iter().map(|point| point.latency).collect();
    sorted.sort_unstable();
    Block {
        first: points[0].sequence,
        last: points[points.len() - 1].sequence,
        median: quantile(&sorted, 5_000),
        spread: quantile(&sorted, 9_000) - quantile(&sorted, 1_000),
    }
}
