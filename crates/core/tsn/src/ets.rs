//! Enhanced transmission selection: classes share the line by weights (IEEE 802.1Q-2022, 8.6.8.3
//! and clause 37).
//!
//! The standard leaves the algorithm open. This one is deficit round robin (Shreedhar, Varghese,
//! "Efficient fair queueing using deficit round robin", SIGCOMM 1995): each class in turn gets a
//! quantum in proportion to its weight, and sends frames as long as what it has is enough for the
//! next one. Classes with strict priority or a credit-based shaper go first; they have no weight.

use crate::QUEUES;
use thiserror::Error;

/// An error in weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EtsError {
    /// A class that would never send.
    #[error("the weight of class {0} is 0 %; the minimum is 1 %")]
    Zero(usize),
    /// The weights are not 100 % together (clause 37).
    #[error("the sum of the weights is {0} %, not 100 %")]
    Sum(u32),
}

/// A class that takes part.
#[derive(Clone, Copy, Debug)]
struct Share {
    /// What it gets in a round.
    quantum: u64,
    /// What it has of it, and has not sent.
    deficit: u64,
}

/// Chooses among the classes of a port that have weights.
#[derive(Clone, Debug)]
pub struct Ets {
    classes: [Option<Share>; QUEUES],
    /// How much a byte costs, so that all quanta are integers: the least weight.
    cost: u64,
    turn: usize,
    /// Whether the class whose turn it is has got its quantum.
    is_paid: bool,
}

impl Ets {
    /// Of classes with `weights` in per cent; `None` is a class without a share. The class with the
    /// least weight may send one frame of `largest` bytes in each round, with what else a frame
    /// takes on the line.
    ///
    /// # Errors
    /// If a weight is zero, or they are not 100 together.
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

    /// The class that sends next, out of those with a frame that may leave now; `waiting` has the
    /// bytes of each one's head frame, with what it takes on the line besides. Classes without such
    /// a frame, as behind a closed gate, lose what they had.
    ///
    /// Asked again with the same frames, it answers the same until [`Self::sent`].
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

    /// `class` has begun to send a frame of `bytes`, counted as in [`Self::select`]. Classes
    /// without a share change nothing.
    pub fn sent(&mut self, class: usize, bytes: usize) {
        if let Some(share) = &mut self.classes[class] {
            share.deficit = share.deficit.saturating_sub(bytes as u64 * self.cost);
        }
    }
}
