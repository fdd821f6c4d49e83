//! Interrupts (NVMe 1.4, section 7.5): vectors, coalescing, masks.

use wire::{Duration, Instant};

/// One interrupt vector.
#[derive(Clone, Copy, Debug, Default)]
struct Vector {
    /// Completions since the last interrupt.
    count: u32,
    /// Time at which coalescing ends at the latest.
    deadline: Option<Instant>,
    /// CD: coalescing disabled for this vector.
    coalescing_disabled: bool,
}

/// The state of all vectors.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    vectors: Vec<Vector>,
    /// Vectors with completions since their last interrupt, in order.
    dirty: Vec<u16>,
    /// THR of Interrupt Coalescing, 0's based.
    threshold: u8,
    /// TIME of Interrupt Coalescing, in units of 100 us.
    time: u8,
    /// The mask that INTMS and INTMC show.
    pub mask: u32,
}

impl Interrupts {
    /// The state after a reset, with `vectors` vectors.
    pub(crate) fn new(vectors: u16) -> Self {
        Self { vectors: vec![Vector::default(); usize::from(vectors)], ..Self::default() }
    }

    pub(crate) fn vectors(&self) -> u16 {
        self.vectors.len() as u16
    }

    /// Sets Interrupt Coalescing (section 5.21.1.8): TIME in bits 15:8, THR in bits 7:0.
    pub(crate) fn set_coalescing(&mut self, bits: u32) {
        (self.threshold, self.time) = (bits as u8, (bits >> 8) as u8);
    }

    /// CD of a vector; `None` if there is no such vector.
    pub(crate) fn coalescing_disabled(&self, vector: u16) -> Option<bool> {
        Some(self.vectors.get(usize::from(vector))?.coalescing_disabled)
    }

    /// Sets CD of a vector that exists.
    pub(crate) fn set_coalescing_disabled(&mut self, vector: u16, disabled: bool) {
        self.vectors[usize::from(vector)].coalescing_disabled = disabled;
    }

    /// The vectors whose coalescing is disabled.
    pub(crate) fn all_disabled(&self) -> Vec<u16> {
        (0..self.vectors()).filter(|one| self.coalescing_disabled(*one) == Some(true)).collect()
    }

    /// Counts a completion in a queue with this vector. Vector 0, of the admin queue, is never
    /// coalesced.
    pub(crate) fn posted(&mut self, now: Instant, vector: u16) {
        let span = Duration::from_us(100 * u64::from(self.time));
        let entry = &mut self.vectors[usize::from(vector)];
        if entry.count == 0 {
            self.dirty.push(vector);
            entry.deadline = Some(now + span);
        }
        entry.count += 1;
    }

    /// Takes a vector whose interrupt is due now, the vector with the oldest completion first.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<u16> {
        let at = self.dirty.iter().position(|vector| self.is_due(now, *vector))?;
        let vector = self.dirty.remove(at);
        let entry = &mut self.vectors[usize::from(vector)];
        (entry.count, entry.deadline) = (0, None);
        Some(vector)
    }

    fn is_due(&self, now: Instant, vector: u16) -> bool {
        let entry = &self.vectors[usize::from(vector)];
        vector == 0
            || entry.coalescing_disabled
            || entry.count > u32::from(self.threshold)
            || entry.deadline.is_none_or(|deadline| deadline <= now)
    }

    /// Time at which the next interrupt is due at the latest; `None` if no completion waits.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.dirty.iter().filter_map(|vector| self.vectors[usize::from(*vector)].deadline).min()
    }
}
