//! Numbers made from bytes, such as a fuzzer's input. Without remaining bytes, all numbers are
//! zero.

/// The remaining bytes.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a>(pub &'a [u8]);

impl Source<'_> {
    /// Returns whether no bytes remain.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next `count` bytes, or fewer if fewer remain.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let (head, tail) = self.0.split_at(count.min(self.0.len()));
        self.0 = tail;
        head.to_vec()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns the next two bytes, little-endian.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Returns the next four bytes, little-endian.
    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    /// Returns the next eight bytes, little-endian.
    pub fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// Returns a number below `bound`, made from one byte.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Returns one of `choices`, selected by one byte.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}
