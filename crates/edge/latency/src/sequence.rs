//! Losses, duplicates and order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most frames of a run.
pub const MOST: u64 = 10_000_000;

/// Losses, duplicates and order of the frames of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "FrameCounts")]
pub struct Counts {
    /// Frames sent, as the talker reports at the end. Without a report, one more than the highest
    /// received number.
    pub sent: u64,
    /// Different frames received.
    pub received: u64,
    /// Frames never received.
    pub lost: u64,
    /// Repeated receptions of a frame.
    pub duplicates: u64,
    /// Frames received after a later frame (RFC 4737, section 3.3).
    pub reordered: u64,
    /// The longest run of consecutive losses.
    pub longest_loss: u64,
}

/// Follows sequence numbers.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// One bit per number.
    seen: Vec<u64>,
    /// The highest received number plus 1.
    next: u64,
    /// Number of frames that the talker reported.
    sent: Option<u64>,
    received: u64,
    duplicates: u64,
    reordered: u64,
}

impl Sequence {
    /// Records a received number. Returns whether the number is new and below [`MOST`].
    pub fn take(&mut self, number: u64) -> bool {
        if number >= MOST {
            return false;
        }
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.duplicates += 1;
            return false;
        }
        self.seen[word] |= bit;
        self.received += 1;
        if number < self.next {
            self.reordered += 1;
        }
        self.next = self.next.max(number + 1);
        true
    }

    /// Records the number of sent frames, as the talker reports it.
    pub fn end(&mut self, sent: u64) {
        self.sent = Some(sent.min(MOST));
    }

    /// Whether the talker has reported the number of frames sent.
    pub fn is_ended(&self) -> bool {
        self.sent.is_some()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        let sent = self.sent.unwrap_or(self.next).max(self.next);
        let has = |number: u64| {
            let word = self.seen.get((number / 64) as usize);
            word.is_some_and(|word| word >> (number % 64) & 1 != 0)
        };
        let (mut run, mut longest_loss) = (0, 0);
        for number in 0..sent {
            run = if has(number) { 0 } else { run + 1 };
            longest_loss = longest_loss.max(run);
        }
        Counts {
            sent,
            received: self.received,
            lost: sent - self.received,
            duplicates: self.duplicates,
            reordered: self.reordered,
            longest_loss,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn losses_copies_and_order() {
        let mut sequence = Sequence::default();
        let fresh: Vec<bool> = [0, 1, 4, 2, 2, 7].map(|number| sequence.take(number)).to_vec();
        assert_eq!(fresh, [true, true, true, true, false, true]);
        let counts =
            Counts { sent: 8, received: 5, lost: 3, duplicates: 1, reordered: 1, longest_loss: 2 };
        assert_eq!(sequence.counts(), counts);
        sequence.end(12);
        let counts = Counts { sent: 12, lost: 7, longest_loss: 4, ..counts };
        assert_eq!(sequence.counts(), counts, "8 to 11 are lost too");
        assert!(!sequence.take(MOST), "no number of a run");
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_set(numbers in prop::collection::vec(0u64..300, 0..200)) {
            let (mut sequence, mut set) = (Sequence::default(), BTreeSet::new());
            for number in &numbers {
                prop_assert_eq!(sequence.take(*number), set.insert(*number));
            }
            let counts = sequence.counts();
            prop_assert_eq!(counts.received, set.len() as u64);
            prop_assert_eq!(counts.received + counts.duplicates, numbers.len() as u64);
            prop_assert_eq!(counts.sent, set.last().map_or(0, |last| last + 1));
            prop_assert_eq!(counts.sent - counts.lost, counts.received);
        }
    }
}
