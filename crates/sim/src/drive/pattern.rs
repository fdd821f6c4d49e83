//! The contents of blocks: a pattern of their offset and their number of
//! writes, which detects a block from the wrong place or time.

use stats::random::mix;

/// The word at byte `offset` (a multiple of 8) after `version` writes.
const fn word(seed: u64, offset: u64, version: u32) -> u64 {
    let place = seed ^ (offset >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (place ^ (version as u64).wrapping_mul(0xd6e8_feb8_6659_fd93))
        .wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 29
}

/// Fills `bytes`, a multiple of 8, with the pattern at `offset` of the drive
/// with this seed after `version` writes.
pub fn fill(seed: u64, offset: u64, version: u32, bytes: &mut [u8]) {
    let seed = mix(seed);
    for (at, chunk) in (offset..).step_by(8).zip(bytes.as_chunks_mut::<8>().0) {
        *chunk = word(seed, at, version).to_le_bytes();
    }
}

/// Whether `bytes` have the pattern of [`fill`].
pub fn matches(seed: u64, offset: u64, version: u32, bytes: &[u8]) -> bool {
    let seed = mix(seed);
    let words = bytes.as_chunks::<8>().0;
    (offset..)
        .step_by(8)
        .zip(words)
        .all(|(at, chunk)| *chunk == word(seed, at, version).to_le_bytes())
}
