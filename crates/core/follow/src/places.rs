//! Ranges of addresses with values.

use std::ops::Range;

/// Address ranges, each with a value. Where ranges overlap, the range with the greatest start
/// counts; with equal starts, the range added last.
#[derive(Clone, Debug)]
pub struct Places<T> {
    /// Sorted by start.
    ranges: Vec<(Range<u64>, T)>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { ranges: Vec::new() }
    }
}

impl<T> Places<T> {
    /// Adds a range.
    pub fn add(&mut self, range: Range<u64>, value: T) {
        let at = self.ranges.partition_point(|(other, _)| other.start <= range.start);
        self.ranges.insert(at, (range, value));
    }

    /// Removes the ranges whose values `gone` accepts.
    pub fn remove(&mut self, gone: impl Fn(&T) -> bool) {
        self.ranges.retain(|(_, value)| !gone(value));
    }

    /// The offset of `address` in its range, in bytes, and the value of the range; `None` if no
    /// range contains the address.
    pub fn at(&self, address: u64) -> Option<(u64, &T)> {
        let before = self.ranges.partition_point(|(range, _)| range.start <= address);
        let (range, value) = self.ranges.get(before.checked_sub(1)?)?;
        (address < range.end).then(|| (address - range.start, value))
    }

    /// Whether `range` overlaps any of the ranges.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        let before = self.ranges.partition_point(|(other, _)| other.start < range.end);
        self.ranges[..before].iter().any(|(other, _)| other.end > range.start)
    }
}

impl<T> FromIterator<(Range<u64>, T)> for Places<T> {
    fn from_iter<I: IntoIterator<Item = (Range<u64>, T)>>(ranges: I) -> Self {
        let mut places = Self::default();
        ranges.into_iter().for_each(|(range, value)| places.add(range, value));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_their_range() {
        let mut places: Places<char> =
            [(0x30..0x40, 'c'), (0x10..0x20, 'a'), (0x20..0x28, 'b')].into_iter().collect();
        let all = |places: &Places<char>| {
            [0xf, 0x10, 0x1f, 0x20, 0x28, 0x3f, 0x40].map(|at| places.at(at).map(|(_, c)| *c))
        };
        let (a, b, c) = (Some('a'), Some('b'), Some('c'));
        assert_eq!(all(&places), [None, a, a, b, None, c, None]);
        assert_eq!(places.at(0x3f), Some((0xf, &'c')));
        let touched = [0..0x10, 0xf..0x11, 0x28..0x30, 0x27..0x28, 0x3f..0x50, 0x40..0x50];
        let touched = touched.map(|range| places.touches(&range));
        assert_eq!(touched, [false, true, false, true, true, false]);
        places.remove(|value| *value == 'b');
        assert_eq!(all(&places), [None, a, a, None, None, c, None]);
        places.add(0x10..0x18, 'd');
        assert_eq!(places.at(0x10), Some((0, &'d')), "added last");
        assert_eq!(places.at(0x1f), None);
    }
}
