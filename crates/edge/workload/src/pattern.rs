//! The contents of blocks: a pattern that depends on the offset of the block and on the number of
//! writes of the block. Thus a read of a wrong block or of old data is detected.

use stats::random::mix;

/// The 64-bit words of the pattern from byte `offset` on (a multiple of 8), after `version` writes.
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

/// Fills `bytes` with the pattern for byte `offset` of a drive with this seed, after `version`
/// writes. `offset` and the length of `bytes` are multiples of 8.
pub fn fill(seed: u64, offset: u64, version: u32, bytes: &mut [u8]) {
    let chunks = bytes.as_chunks_mut::<8>().0;
    for (chunk, word) in chunks.iter_mut().zip(words(seed, offset, version)) {
        *chunk = word.to_le_bytes();
    }
}

/// Whether `bytes` contains the pattern that [`fill`] writes.
pub fn matches(seed: u64, offset: u64, version: u32, bytes: &[u8]) -> bool {
    let chunks = bytes.as_chunks::<8>().0.iter();
    // Nearly always all bytes match, so the differences are combined and checked only once.
    let differences = chunks
        .zip(words(seed, offset, version))
        .map(|(chunk, word)| u64::from_le_bytes(*chunk) ^ word);
    differences.fold(0, |all, difference| all | difference) == 0
}

/// Index and expected value of the first byte that differs from the pattern that [`fill`] writes;
/// `None` if no byte differs.
pub fn first_difference(seed: u64, offset: u64, version: u32, bytes: &[u8]) -> Option<(usize, u8)> {
    let expected = words(seed, offset, version).flat_map(u64::to_le_bytes);
    let mut pairs = bytes.iter().zip(expected).enumerate();
    pairs.find_map(|(at, (byte, expected))| (*byte != expected).then_some((at, expected)))
}
