//! The contents of blocks: a pattern of their offset and their number of
//! writes, which detects a block from the wrong place or time.

use stats::random::mix;

/// The words from byte `offset` (a multiple of 8) on after `version` writes.
fn words(seed: u64, offset: u64, version: u32) -> impl Iterator<Item = u64> {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let seed = mix(seed) ^ u64::from(version).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mut place = (offset >> 3).wrapping_mul(STEP);
    std::iter::repeat_with(move || {
        let mixed = (seed ^ place).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        place = place.wrapping_add(STEP);
        mixed ^ mixed >> 29
    })
}

/// Fills `bytes`, a multiple of 8, with the pattern at `offset` of the drive
/// with this seed after `version` writes.
pub fn fill(seed: u64, offset: u64, version: u32, bytes: &mut [u8]) {
    let chunks = bytes.as_chunks_mut::<8>().0;
    for (chunk, word) in chunks.iter_mut().zip(words(seed, offset, version)) {
        *chunk = word.to_le_bytes();
    }
}

/// Whether `bytes` have the pattern of [`fill`].
pub fn matches(seed: u64, offset: u64, version: u32, bytes: &[u8]) -> bool {
    let chunks = bytes.as_chunks::<8>().0.iter();
    // Nearly all bytes match, so differences are combined and checked once per chunk.
    let differences = chunks
        .zip(words(seed, offset, version))
        .map(|(chunk, word)| u64::from_le_bytes(*chunk) ^ word);
    differences.fold(0, |all, difference| all | difference) == 0
}

/// The first byte of `bytes` that differs from the pattern of [`fill`]: its index, and the expected
/// byte.
pub fn first_difference(seed: u64, offset: u64, version: u32, bytes: &[u8]) -> Option<(usize, u8)> {
    let expected = words(seed, offset, version).flat_map(u64::to_le_bytes);
    let mut pairs = bytes.iter().zip(expected).enumerate();
    pairs.find_map(|(at, (byte, expected))| (*byte != expected).then_some((at, expected)))
}
