//! Seeded random numbers: SplitMix64 (Steele, Lea, Flood, "Fast splittable
//! pseudorandom number generators", OOPSLA 2014).

/// A stream of random numbers that depends on its seed alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

/// SplitMix64's finaliser: spreads every bit over all bits.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

impl Rng {
    /// From a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of the component `name` in a world of this seed.
    pub fn for_component(seed: u64, name: &str) -> Self {
        let fold = |state: u64, byte: u8| mix(state ^ u64::from(byte)).wrapping_add(1);
        Self(name.bytes().fold(mix(seed), fold))
    }

    /// 64 random bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`; 0 if that is 0. Off uniform by less than
    /// `bound` in 2^64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_as_published() {
        // The reference implementation's first outputs for the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        let first = [rng.next_u64(), rng.next_u64(), rng.next_u64()];
        assert_eq!(
            first,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn components_have_streams_of_their_own() {
        let of = |seed, name| Rng::for_component(seed, name).next_u64();
        assert_eq!(of(1, "host"), of(1, "host"));
        assert_ne!(of(1, "host"), of(2, "host"));
        assert_ne!(of(1, "host"), of(1, "drive"));
        let mut rng = Rng::new(7);
        assert!((0..1000).all(|_| rng.below(10) < 10));
        assert_eq!(rng.below(0), 0);
    }
}
