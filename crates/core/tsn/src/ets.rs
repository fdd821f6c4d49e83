//! Enhanced transmission selection: classes share the line by weights (IEEE 802.1Q-2022, 8.6.8.3
//! and clause 37).
//!
//! The standard leaves the algorithm open. This module uses deficit round robin (Shreedhar,
//! Varghese, "Efficient fair queueing using deficit round robin", SIGCOMM 1995): each class in turn
//! gets a quantum in proportion to its weight, and sends frames while its deficit counter covers
//! the next frame. Classes with strict priority or a credit-based shaper have no weight and send
//! first.

use crate::QUEUES;
use thiserror::Error;

/// Why weights are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EtsError {
    /// The weight of a class is zero. The class would never send.
    #[error("the weight of class {0} is 0 %; the minimum is 1 %")]
    Zero(usize),
    /// The sum of the weights is not 100 % (clause 37).
    #[error("the sum of the weights is {0} %, not 100 %")]
    Sum(u32),
}

/// A class with a weight.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// Quantum per round, in bytes times `Ets::cost`.
    quantum: u64,
    /// Deficit counter: the unused part of earlier quanta, in the same unit.
    deficit: u64,
}

/// Selects among the classes of a port that have weights.
#[derive(Clone, Debug)]
pub struct Ets {
    classes: [Option<Share>; QUEUES],
    /// The cost of a byte: the least weight, with which all quanta are integers.
    cost: u64,
    turn: usize,
    /// Whether the current class has got its quantum.
    is_paid: bool,
}

impl Ets {
    /// A selection of classes with `weights` in percent. `None`: the class has no weight. In each
    /// round the class with the least weight may send one frame of `largest` bytes, which include
    /// line overhead.
    ///
    /// # Errors
    /// If a weight is zero, or their sum is not 100.
    pub fn new(weights: [Option<u8>; QUEUES], largest: usize) -> Result<Self, EtsError> {
        if let Some(class) = weights.iter().position(|&weight| weight == Some(0)) {
            return Err(EtsError::Zero(class));
        }
        let sum = weights.iter().flatten().map(|&weight| u32::from(weight)).sum();
        if sum != 100 {
            return Err(EtsError::Sum(sum));
        }
        let least = weights.iter().flatten().min().map_or(1, |&weight| weight.into());
        let share =
            |weight: u8| Share { quantum: u64::from(weight) * largest.max(1) as u64, deficit: 0 };
        let classes = weights.map(|weight| weight.map(share));
        Ok(Self { classes, cost: least, turn: 0, is_paid: false })
    }

    /// The class that sends next; `None` if no class with a weight has a frame. `waiting` has, for
    /// each class with a frame that may leave now, the bytes of the first frame, including line
    /// overhead. Classes without such a frame lose their deficit.
    ///
    /// Repeated calls with the same frames return the same class until [`Self::sent`].
    pub fn select(&mut self, waiting: [Option<usize>; QUEUES]) -> Option<usize> {
        let mut any = false;
        for (share, frame) in self.classes.iter_mut().zip(waiting) {
            match (share, frame) {
                (Some(_), Some(_)) => any = true,
                (Some(share), None) => share.deficit = 0,
                (None, _) => {}
            }
        }
        if !any {
            return None;
        }
        loop {
            if let (Some(share), Some(bytes)) = (&mut self.classes[self.turn], waiting[self.turn]) {
                if !std::mem::replace(&mut self.is_paid, true) {
                    share.deficit += share.quantum;
                }
                if share.deficit >= bytes as u64 * self.cost {
                    return Some(self.turn);
                }
            }
            self.turn = (self.turn + 1) % QUEUES;
            self.is_paid = false;
        }
    }

    /// Notes that `class` has begun to send a frame of `bytes`, counted as in [`Self::select`].
    /// Ignores classes without a weight.
    pub fn sent(&mut self, class: usize, bytes: usize) {
        if let Some(share) = &mut self.classes[class] {
            share.deficit = share.deficit.saturating_sub(bytes as u64 * self.cost);
        }
    }
}
