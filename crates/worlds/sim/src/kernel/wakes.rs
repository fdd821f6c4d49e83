//! The armed wake-ups of all components in a tournament tree. Each component is a leaf with at most
//! one wake-up; each inner node is the earlier of its two children.

/// The key of a component without a wake-up; it is after every other key.
const NEVER: u128 = u128::MAX;

/// Bits of a key for the number of the component. 40 bits remain for the sequence of arming.
const COMPONENT: u32 = 24;

/// The armed wake-ups of all components.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    components: u32,
    /// A binary tree of keys. The root is the earliest key and has index 1. The children of n have
    /// the indices 2n and 2n + 1. The leaves, one per component, are the second half. A key
    /// combines time, sequence of arming and component.
    keys: Vec<u128>,
    sequence: u64,
}

const fn time(key: u128) -> u64 {
    (key >> 64) as u64
}

impl Wakes {
    pub(super) fn add(&mut self) -> u32 {
        let component = self.components;
        self.components += 1;
        assert!(component < 1 << COMPONENT, "more components than a key can number");
        let half = self.keys.len() / 2;
        if component as usize == half {
            let places = half.max(1) * 2;
            let armed = self.keys.split_off(half);
            self.keys = vec![NEVER; 2 * places];
            for (component, key) in armed.into_iter().enumerate() {
                self.set(component as u32, key);
            }
        }
        component
    }

    /// Number of components.
    pub(super) fn components(&self) -> u64 {
        self.components.into()
    }

    /// The index of the component's own key.
    fn leaf(&self, component: u32) -> usize {
        self.keys.len() / 2 + component as usize
    }

    pub(super) fn armed(&self, component: u32) -> Option<u64> {
        let key = self.keys[self.leaf(component)];
        (key != NEVER).then_some(time(key))
    }

    pub(super) fn first(&self) -> Option<(u64, u32)> {
        let key = self.keys.get(1).copied().filter(|key| *key != NEVER)?;
        Some((time(key), key as u32 & ((1 << COMPONENT) - 1)))
    }

    /// Arms or moves a wake-up. Arming for the same time again changes nothing.
    pub(super) fn arm(&mut self, component: u32, at: u64) {
        if self.armed(component) != Some(at) {
            self.move_to(component, at);
        }
    }

    /// Arms or moves a wake-up, so that it comes after all others at the same time.
    pub(super) fn move_to(&mut self, component: u32, at: u64) {
        self.sequence += 1;
        debug_assert!(self.sequence >> (64 - COMPONENT) == 0, "more wake-ups than a key numbers");
        let order = self.sequence << COMPONENT | u64::from(component);
        self.set(component, u128::from(at) << 64 | u128::from(order));
    }

    pub(super) fn disarm(&mut self, component: u32) {
        if self.keys[self.leaf(component)] != NEVER {
            self.set(component, NEVER);
        }
    }

    fn set(&mut self, component: u32, mut key: u128) {
        let mut place = self.leaf(component);
        while self.keys[place] != key {
            self.keys[place] = key;
            if place == 1 {
                return;
            }
            key = key.min(self.keys[place ^ 1]);
            place /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compares the order of wake-ups with a sorted map, for random steps.
        #[test]
        fn wakes_match_sorted_map(steps in prop::collection::vec((0u32..8, 0u64..20, 0u8..4), 1..200)) {
            let mut wakes = Wakes::default();
            (0..8).for_each(|_| { wakes.add(); });
            let (mut map, mut sequence) = (BTreeMap::<u32, (u64, u64)>::new(), 0u64);
            for (component, at, operation) in steps {
                match operation {
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
