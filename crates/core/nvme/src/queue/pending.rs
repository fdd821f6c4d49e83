//! The set of submission queues with entries to fetch.

use crate::config::MAX_QUEUES;

const BITS: usize = u64::BITS as usize;
/// Words for the queues 0 to [`MAX_QUEUES`].
const WORDS: usize = MAX_QUEUES as usize / BITS + 1;

/// A set of queues. The search for the next queue takes a few steps, regardless of the number of
/// queues.
#[derive(Debug)]
pub(crate) struct Pending {
    words: [u64; WORDS],
    /// A bit for each word that is not 0.
    used: u64,
}

impl Default for Pending {
    fn default() -> Self {
        const { assert!(WORDS <= BITS) }
        Self { words: [0; WORDS], used: 0 }
    }
}

impl Pending {
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(super) fn insert(&mut self, id: u16) {
        let (word, bit) = place(id);
        self.words[word] |= 1 << bit;
        self.used |= 1 << word;
    }

    pub(super) fn remove(&mut self, id: u16) {
        let (word, bit) = place(id);
        self.words[word] &= !(1 << bit);
        if self.words[word] == 0 {
            self.used &= !(1 << word);
        }
    }

    /// The lowest queue in the set from `id` on, otherwise the lowest queue of all; `None` if the
    /// set is empty.
    pub(super) fn next(&self, id: u16) -> Option<u16> {
        let (word, bit) = place(id);
        let first = |word: usize, bits: u64| (word * BITS) as u16 + bits.trailing_zeros() as u16;
        let here = self.words[word] >> bit << bit;
        if here != 0 {
            return Some(first(word, here));
        }
        let later = self.used & !(u64::MAX >> (BITS - 1 - word));
        let words = if later == 0 { self.used } else { later };
        let word = words.trailing_zeros() as usize;
        (words != 0).then(|| first(word, self.words[word]))
    }
}

fn place(id: u16) -> (usize, usize) {
    (usize::from(id) / BITS, usize::from(id) % BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn pending_queues_match_set_model(
            changes in proptest::collection::vec((any::<bool>(), 0..=MAX_QUEUES), 0..40),
            from in 0..=MAX_QUEUES,
        ) {
            let (mut pending, mut model) = (Pending::default(), BTreeSet::new());
            for (insert, id) in changes {
                // Also IDs from 0 to 2, so that some IDs are removed again.
                for id in [id, id % 3] {
                    if insert {
                        pending.insert(id);
                        model.insert(id);
                    } else {
                        pending.remove(id);
                        model.remove(&id);
                    }
                }
                let expected = model.range(from..).next().or(model.first());
                prop_assert_eq!(pending.next(from), expected.copied());
            }
        }
    }
}
