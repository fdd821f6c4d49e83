//! A table whose keys are never valid twice, so that an answer to something
//! forgotten finds nothing.

/// Names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// As a number, for what leaves the controller.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// From a number that came back. A number never given out finds nothing.
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    const fn new(index: usize, generation: u32) -> Self {
        Self((generation as u64) << 32 | index as u64)
    }

    const fn index(self) -> usize {
        self.0 as u32 as usize
    }

    const fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

/// See the module. The owner bounds how many entries there are.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    pub fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() - 1
        });
        let (generation, place) = &mut self.entries[index];
        *generation = generation.wrapping_add(1);
        *place = Some(value);
        Key::new(index, *generation)
    }

    pub fn get(&self, key: Key) -> Option<&T> {
        let (generation, value) = self.entries.get(key.index())?;
        value.as_ref().filter(|_| *generation == key.generation())
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let (generation, value) = self.entries.get_mut(key.index())?;
        value.as_mut().filter(|_| *generation == key.generation())
    }

    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        self.free.push(key.index());
        self.entries[key.index()].1.take()
    }

    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets every entry; their keys find nothing from now on.
    pub fn clear(&mut self) {
        self.free.clear();
        for (index, (_, value)) in self.entries.iter_mut().enumerate() {
            *value = None;
            self.free.push(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_valid_twice() {
        let mut slots = Slots::default();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_ne!(first, second);
        assert_eq!((slots.get(first), slots.get(second)), (None, Some(&'b')));
        slots.clear();
        assert!(slots.is_empty());
        assert_eq!(slots.get_mut(second), None);
        assert_eq!(slots.remove(Key::from_u64(u64::MAX)), None);
        assert_eq!(slots.insert('c').index(), second.index());
    }
}
