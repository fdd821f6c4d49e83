//! One armed wake-up a component: a binary heap in which entries can move.

/// Not in the heap.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Wake {
    at: u64,
    sequence: u64,
    component: u32,
}

impl Wake {
    /// Time, then sequence, in one comparison; no sequence is there twice.
    fn key(self) -> u128 {
        u128::from(self.at) << 64 | u128::from(self.sequence)
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    heap: Vec<Wake>,
    /// Where each component is in the heap.
    places: Vec<u32>,
    sequence: u64,
}

impl Wakes {
    pub fn add(&mut self) -> u32 {
        self.places.push(NOWHERE);
        self.places.len() as u32 - 1
    }

    pub fn armed(&self, component: u32) -> Option<u64> {
        let place = self.places[component as usize];
        self.heap.get(place as usize).map(|wake| wake.at)
    }

    pub fn first(&self) -> Option<(u64, u32)> {
        self.heap.first().map(|wake| (wake.at, wake.component))
    }

    /// Arms or moves. Arming for the same time again changes nothing.
    pub fn arm(&mut self, component: u32, at: u64) {
        let place = self.places[component as usize];
        if place == NOWHERE {
            self.sequence += 1;
            self.heap.push(Wake { at, sequence: self.sequence, component });
            self.rise(self.heap.len() - 1);
            return;
        }
        if self.heap[place as usize].at != at {
            self.move_to(component, at);
        }
    }

    /// Moves one that is armed behind all others of that time.
    pub fn move_to(&mut self, component: u32, at: u64) {
        let place = self.places[component as usize] as usize;
        self.sequence += 1;
        self.heap[place] = Wake { at, sequence: self.sequence, component };
        let place = self.rise(place);
        self.sink(place);
    }

    pub fn disarm(&mut self, component: u32) {
        let place = std::mem::replace(&mut self.places[component as usize], NOWHERE);
        if place == NOWHERE {
            return;
        }
        let place = place as usize;
        self.heap.swap_remove(place);
        if place < self.heap.len() {
            let place = self.rise(place);
            self.sink(place);
        }
    }

    /// Moves an entry up to its place, and notes it.
    fn rise(&mut self, mut place: usize) -> usize {
        let wake = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].key() <= wake.key() {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, wake);
        place
    }

    fn sink(&mut self, mut place: usize) {
        let wake = self.heap[place];
        loop {
            let left = 2 * place + 1;
            let Some(first) = self.heap.get(left) else { break };
            let right = self.heap.get(left + 1).filter(|right| right.key() < first.key());
            let (child, next) = right.map_or((left, *first), |right| (left + 1, *right));
            if wake.key() <= next.key() {
                break;
            }
            self.put(place, next);
            place = child;
        }
        self.put(place, wake);
    }

    fn put(&mut self, place: usize, wake: Wake) {
        self.heap[place] = wake;
        self.places[wake.component as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a sorted map: the same order, whatever is armed, moved and
        /// disarmed.
        #[test]
        fn as_a_sorted_map(steps in prop::collection::vec((0u32..8, 0u64..20, 0u8..4), 1..200)) {
            let mut wakes = Wakes::default();
            (0..8).for_each(|_| { wakes.add(); });
            let (mut map, mut sequence) = (BTreeMap::<u32, (u64, u64)>::new(), 0u64);
            for (component, at, what) in steps {
                match what {
                    0 => {
                        wakes.disarm(component);
                        map.remove(&component);
                    }
                    1 => {
                        let first = map.iter().min_by_key(|(_, key)| **key).map(|(c, k)| (k.0, *c));
                        prop_assert_eq!(wakes.first(), first);
                        if let Some((_, component)) = first {
                            wakes.disarm(component);
                            map.remove(&component);
                        }
                    }
                    _ => {
                        wakes.arm(component, at);
                        if map.get(&component).is_none_or(|old| old.0 != at) {
                            sequence += 1;
                            map.insert(component, (at, sequence));
                        }
                    }
                }
                for c in 0..8 {
                    prop_assert_eq!(wakes.armed(c), map.get(&c).map(|key| key.0));
                }
            }
        }
    }
}
