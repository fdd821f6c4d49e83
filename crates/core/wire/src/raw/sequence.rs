//! Sequence numbers modulo 2^24.

/// The number of a data frame, modulo 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(u32);

/// The modulus of sequence numbers.
const MODULUS: u32 = 1 << 24;

impl Sequence {
    /// `number` modulo 2^24.
    pub const fn new(number: u32) -> Self {
        Self(number % MODULUS)
    }

    /// The number, below 2^24.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The number `count` later.
    #[must_use]
    pub const fn plus(self, count: usize) -> Self {
        Self::new(self.0 + (count % MODULUS as usize) as u32)
    }

    /// Distance from `base` forward to this number: 0 to 2^23 - 1; `None` if this number is behind
    /// `base`.
    pub const fn ahead_of(self, base: Self) -> Option<usize> {
        let distance = (self.0 + MODULUS - base.0) % MODULUS;
        if distance < MODULUS / 2 { Some(distance as usize) } else { None }
    }

    pub(super) const fn to_bytes(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }

    pub(super) const fn from_bytes([a, b, c]: [u8; 3]) -> Self {
        Self(u32::from_be_bytes([0, a, b, c]))
    }
}
