//! The armed wake-ups of all components, one each, in a tournament tree: each
//! component is a leaf, each inner node has the earlier of its two children.

/// Not armed: behind everything.
const NEVER: u128 = u128::MAX;

/// The armed wake-ups of all components.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    components: u32,
    /// Time and sequence of each component's wake-up, in one number; a power of two of them.
    keys: Vec<u128>,
    /// A binary tree: the winner of all is at 1, those of the pairs below n at
    /// 2n and 2n + 1, the components themselves in its second half.
    winners: Vec<u32>,
    sequence: u64,
}

const fn time(key: u128) -> u64 {
    (key >> 64) as u64
}

impl Wakes {
    pub fn add(&mut self) -> u32 {
        let component = self.components;
        self.components += 1;
        if component as usize == self.keys.len() {
            let places = self.keys.len().max(1) * 2;
            self.keys.resize(places, NEVER);
            let themselves = 0..places as u32;
            self.winners = vec![0; places].into_iter().chain(themselves).collect();
            (1..places).rev().for_each(|pair| self.play(pair));
        }
        component
    }

    pub fn armed(&self, component: u32) -> Option<u64> {
        let key = self.keys[component as usize];
        (key != NEVER).then_some(time(key))
    }

    pub fn first(&self) -> Option<(u64, u32)> {
        let component = *self.winners.get(1)?;
        Some((self.armed(component)?, component))
    }

    /// Arms or moves. Arming for the same time again changes nothing.
    pub fn arm(&mut self, component: u32, at: u64) {
        if self.armed(component) != Some(at) {
            self.move_to(component, at);
        }
    }

    /// Arms or moves one, behind all others of that time.
    pub fn move_to(&mut self, component: u32, at: u64) {
        self.sequence += 1;
        self.set(component, u128::from(at) << 64 | u128::from(self.sequence));
    }

    pub fn disarm(&mut self, component: u32) {
        if self.keys[component as usize] != NEVER {
            self.set(component, NEVER);
        }
    }

    fn set(&mut self, component: u32, key: u128) {
        self.keys[component as usize] = key;
        let mut pair = (self.keys.len() + component as usize) / 2;
        while pair > 0 {
            self.play(pair);
            pair /= 2;
        }
    }

    fn play(&mut self, pair: usize) {
        let (left, right) = (self.winners[2 * pair], self.winners[2 * pair + 1]);
        let wins = self.keys[left as usize] <= self.keys[right as usize];
        self.winners[pair] = if wins { left } else { right };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against a sorted map: the same order, whatever is armed, moved and disarmed.
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
