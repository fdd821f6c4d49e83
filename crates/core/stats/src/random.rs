//! Seeded random integers, the same on every machine, for simulated worlds and tests.

use std::ops::RangeInclusive;

/// The generator SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom
/// number generators", OOPSLA 2014).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(u64);

/// The finaliser of SplitMix64: every input bit changes about half of the output bits.
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A probability, in parts of 10^12.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// Probability 0.
    pub const NEVER: Self = Self(0);
    /// Probability 1.
    pub const ALWAYS: Self = Self(Self::ONE);
    const ONE: u64 = 1_000_000_000_000;

    /// The probability `parts` / 10^12; `None` above 1.
    pub const fn from_parts_per_trillion(parts: u64) -> Option<Self> {
        if parts <= Self::ONE { Some(Self(parts)) } else { None }
    }

    /// The probability `parts` / 10^6; `None` above 1.
    pub const fn from_ppm(parts: u32) -> Option<Self> {
        Self::from_parts_per_trillion(parts as u64 * 1_000_000)
    }

    /// `count` times this probability, rounded down.
    pub const fn part_of(self, count: u64) -> u64 {
        (count as u128 * self.0 as u128 / Self::ONE as u128) as u64
    }
}

impl Random {
    /// The generator of the sequence of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator of the component `name` in a world with this seed.
    pub fn for_component(seed: u64, name: &str) -> Self {
        let fold = |state: u64, byte: u8| mix(state ^ u64::from(byte)).wrapping_add(1);
        Self(name.bytes().fold(mix(seed), fold))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to `bound` - 1; 0 if `bound` is 0 (Lemire, "Fast random integer generation
    /// in an interval", 2019; the bias is below 2^-64 * `bound`).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `range`, which must have fewer than 2^64 numbers.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// Random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.bits() as u8).collect()
    }

    /// Whether an event of this probability happens. Draws no number for `NEVER` and `ALWAYS`.
    pub fn happens(&mut self, chance: Probability) -> bool {
        match chance {
            Probability::NEVER => false,
            Probability::ALWAYS => true,
            Probability(parts) => self.below(Probability::ONE) < parts,
        }
    }

    /// An exponentially distributed number with the given mean: the time between the events of a
    /// Poisson process. The greatest number is about 44 times the mean.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        // -ln(u) = -log2(u) * ln 2, both in 32 fractional bits.
        const LN_2: u128 = 2_977_044_472;
        let bits = u128::from(minus_log2(self.bits() | 1));
        ((u128::from(mean) * ((bits * LN_2) >> 32)) >> 32) as u64
    }

    /// An approximately normal number with mean 0 and standard deviation `sigma`: the sum of twelve
    /// uniform numbers (Irwin-Hall). The number is never beyond 6 `sigma`.
    pub fn normal(&mut self, sigma: u64) -> i64 {
        let mut sum = 0i64;
        for _ in 0..6 {
            let bits = self.bits();
            sum += (bits >> 32) as i64 + (bits & 0xffff_ffff) as i64;
        }
        let centred = sum - 6 * (1i64 << 32);
        ((i128::from(centred) * i128::from(sigma)) >> 32) as i64
    }
}

/// -log2(x / 2^64) with 32 fractional bits: the exponent, then a bit for each
/// squaring of the mantissa.
fn minus_log2(x: u64) -> u64 {
    let zeros = x.leading_zeros();
    let mut mantissa = u128::from(x << zeros);
    let mut fraction = 0u64;
    for _ in 0..32 {
        mantissa = (mantissa * mantissa) >> 63;
        fraction <<= 1;
        if mantissa >> 64 != 0 {
            mantissa >>= 1;
            fraction |= 1;
        }
    }
    (u64::from(zeros + 1) << 32) - fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_as_published() {
        // The reference implementation's first outputs for the seed 1234567.
        let mut random = Random::new(1_234_567);
        assert_eq!(
            [random.bits(), random.bits(), random.bits()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn components_have_streams_of_their_own() {
        let first_bits = |seed, name| Random::for_component(seed, name).bits();
        assert_eq!(first_bits(1, "host"), first_bits(1, "host"));
        assert_ne!(first_bits(1, "host"), first_bits(2, "host"));
        assert_ne!(first_bits(1, "host"), first_bits(1, "drive"));
    }

    #[test]
    fn numbers_are_within_their_bounds() {
        let mut random = Random::new(7);
        assert!(
            (0..1000).all(|_| random.below(10) < 10 && (3..=5).contains(&random.within(3..=5)))
        );
        assert_eq!(random.below(0), 0);
    }

    /// Mean and spread of a million numbers, within a few standard errors.
    #[test]
    fn distributions() {
        const COUNT: u64 = 1_000_000;
        let mut random = Random::new(42);
        let sum: u64 = (0..COUNT).map(|_| random.exponential(1_000_000)).sum();
        let mean = sum / COUNT;
        assert!((997_000..1_003_000).contains(&mean), "exponential mean {mean}");
        let above = (0..COUNT).filter(|_| random.exponential(1_000) > 2_000).count();
        // e^-2 = 0.13534.
        assert!((134_000..136_700).contains(&above), "{above} above twice the mean");
        let (mut sum, mut squares) = (0i64, 0i128);
        for _ in 0..COUNT {
            let value = random.normal(10_000);
            sum += value;
            squares += i128::from(value) * i128::from(value);
        }
        let (mean, variance) = (sum / COUNT as i64, squares / i128::from(COUNT));
        assert!(mean.abs() < 40, "normal mean {mean}");
        assert!((99_400_000..100_600_000).contains(&variance), "normal variance {variance}");
    }
}
