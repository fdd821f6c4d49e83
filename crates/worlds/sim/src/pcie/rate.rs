//! The exact transmission time of bytes on a link.

use wire::Duration;

/// Generation of PCIe: signalling rate and encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// 2.5 GT/s, 8b/10b.
    Gen1,
    /// 5 GT/s, 8b/10b.
    Gen2,
    /// 8 GT/s, 128b/130b.
    Gen3,
    /// 16 GT/s, 128b/130b.
    Gen4,
    /// 32 GT/s, 128b/130b.
    Gen5,
}

impl Generation {
    /// Megatransfers per second on each lane (PCIe Base 5.0, section 1.1).
    pub const fn transfers(self) -> u64 {
        match self {
            Self::Gen1 => 2_500,
            Self::Gen2 => 5_000,
            Self::Gen3 => 8_000,
            Self::Gen4 => 16_000,
            Self::Gen5 => 32_000,
        }
    }

    /// The number of encoded bits and of data bits in a block (PCIe Base 5.0, sections 4.2.1 and
    /// 4.2.2).
    pub const fn encoding(self) -> (u64, u64) {
        match self {
            Self::Gen1 | Self::Gen2 => (10, 8),
            _ => (130, 128),
        }
    }
}

/// Picoseconds per byte, as a fraction. The time of a packet is rounded up to a picosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    numerator: u64,
    denominator: u64,
}

impl Rate {
    /// The rate of a link.
    ///
    /// # Panics
    /// If `width` is not 1, 2, 4, 8 or 16.
    pub fn new(generation: Generation, width: u8) -> Self {
        assert!(matches!(width, 1 | 2 | 4 | 8 | 16), "a link has 1, 2, 4, 8 or 16 lanes");
        let (encoded, data) = generation.encoding();
        // A byte has 8 bits, and a transfer takes 10^6 / `transfers` picoseconds.
        let numerator = 8 * encoded * 1_000_000;
        let denominator = data * generation.transfers() * u64::from(width);
        let divisor = gcd(numerator, denominator);
        Self { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// How long `bytes` bytes take, rounded up to a picosecond.
    pub const fn duration(self, bytes: usize) -> Duration {
        let ps = bytes as u64 * self.numerator;
        // The division is the most expensive operation.
        Duration::from_ps(if self.denominator == 1 { ps } else { ps.div_ceil(self.denominator) })
    }
}

/// The greatest common divisor of two numbers above 0 (Euclid).
const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
