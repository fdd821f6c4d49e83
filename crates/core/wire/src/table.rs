//! Tables with numbers as keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A hash table whose keys are numbers. The hash takes few instructions. Colliding keys make the
/// table slow, so limit the number of keys that a peer chooses.
pub type Table<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// The hash of a [`Table`].
#[derive(Clone, Debug, Default)]
pub struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        // 2^64 divided by the golden ratio; a table uses the lowest and the highest bits.
        let product = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
