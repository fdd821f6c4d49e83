//! Equal parts of a run, by their medians: what stays when single frames are late.

use super::Point;
use crate::statistics::quantile;

/// Parts of a run.
const PARTS: usize = 40;
/// Frames of a part at least.
const LEAST: usize = 16;

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first frame.
    pub first: u64,
    /// Its last frame.
    pub last: u64,
    /// The median of its latencies in ns.
    pub median: i64,
    /// The 90th less the 10th percentile in ns.
    pub spread: i64,
}

/// The parts of a run; none if it is shorter than 40 parts of 16 frames.
pub fn blocks(points: &[Point]) -> Vec<Block> {
    let size = points.len() / PARTS;
    if size < LEAST {
        return Vec::new();
    }
    // The last part has the rest too.
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
