//! A running digest of all events. The digest is not cryptographic. It depends on every bit and is
//! equal on every machine.

/// 64 bits, folded from a stream of words by widening multiplication, with the constants of wyhash
/// (Wang Yi, "wyhash", final version 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(u64);

const P0: u64 = 0xa076_1d64_78bd_642f;
const P1: u64 = 0xe703_7ed1_a0b4_28db;

impl Default for Digest {
    fn default() -> Self {
        Self(P0)
    }
}

const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

impl Digest {
    pub(crate) const fn word(&mut self, word: u64) {
        // The state is also added, because a word that makes a factor zero must not erase it.
        self.0 = fold(self.0 ^ word ^ P1, P0 ^ word.rotate_left(32)).wrapping_add(self.0 ^ word);
    }

    /// Mixes in bytes and their number.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u64);
        // The multiplications of two accumulators run in parallel.
        let (blocks, rest) = bytes.as_chunks::<32>();
        let mut lanes = [self.0, self.0 ^ P0];
        for block in blocks {
            for (lane, pair) in lanes.iter_mut().zip(block.as_chunks::<16>().0) {
                let low = u64::from_le_bytes(pair[..8].try_into().expect("8 bytes"));
                let high = u64::from_le_bytes(pair[8..].try_into().expect("8 bytes"));
                *lane = fold(*lane ^ low ^ P1, high ^ P0).wrapping_add(*lane ^ low);
            }
        }
        if !blocks.is_empty() {
            self.0 = lanes[0];
            self.word(lanes[1]);
        }
        for chunk in rest.chunks(8) {
            let mut last = [0; 8];
            last[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(last));
        }
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(bytes: &[u8]) -> u64 {
        let mut digest = Digest::default();
        digest.bytes(bytes);
        digest.value()
    }

    #[test]
    fn digest_depends_on_every_bit_order_and_length() {
        let base: Vec<u8> = (0..100).collect();
        for at in 0..base.len() {
            for bit in 0..8 {
                let mut other = base.clone();
                other[at] ^= 1 << bit;
                assert_ne!(digest_of(&base), digest_of(&other), "bit {bit} of byte {at}");
            }
        }
        assert_ne!(digest_of(&[0; 16]), digest_of(&[0; 17]));
        let mut swapped = base.clone();
        swapped.swap(0, 16);
        assert_ne!(digest_of(&base), digest_of(&swapped));
    }

    #[test]
    fn digest_matches_golden_values() {
        assert_eq!(digest_of(b"farlane"), GOLDEN[0]);
        let long: Vec<u8> = (0..100).collect();
        assert_eq!(digest_of(&long), GOLDEN[1]);
    }

    /// Results of the first implementation. With other values, digests of old reports would not be
    /// comparable.
    const GOLDEN: [u64; 2] = [13_517_433_365_675_013_481, 871_196_929_793_732_692];
}
