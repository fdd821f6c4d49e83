//! A bare binary heap of wake-ups: what a kernel could do that did nothing else.

use crate::cpu::CpuTime;
use stats::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

/// Events taken.
const EVENTS: u64 = 2_000_000;
/// The mean time between two events, in picoseconds; any other gives the same speed.
const APART: u64 = 300_000;

/// Events a second of processor time, if an event is to take the first key of a heap and to put one in
/// again, with `pending` keys in it. Keys are those of the kernel: time and sequence in 128 bits.
pub fn events_per_s(pending: usize) -> f64 {
    let mut random = Random::new(1);
    let mut key = |from: u64, sequence: u64| {
        let at = from + random.below(2 * APART * pending as u64 + 1);
        Reverse(u128::from(at) << 64 | u128::from(sequence))
    };
    let mut heap: BinaryHeap<_> = (0..pending as u64).map(|n| key(0, n)).collect();
    let began = CpuTime::now();
    for sequence in 0..EVENTS {
        let Some(Reverse(first)) = heap.pop() else { break };
        heap.push(key((first >> 64) as u64, pending as u64 + sequence));
    }
    black_box(&heap);
    EVENTS as f64 * 1e9 / CpuTime::now().since(began).0.max(1) as f64
}
