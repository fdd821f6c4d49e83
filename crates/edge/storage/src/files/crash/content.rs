//! The content of a file, with all states that are possible after a crash.

use stats::random::Random;
use std::collections::BTreeMap;

/// Number of bytes that a disk writes atomically: a logical block of most drives.
pub(super) const SECTOR: usize = 512;

type Sector = [u8; SECTOR];
const ZEROES: Sector = [0; SECTOR];

/// All values from the durable value to the current value.
#[derive(Clone, Debug)]
pub(super) struct Versions<T> {
    all: Vec<T>,
    /// Whether a sync has failed since the last change. Then the next sync does not write the page,
    /// as on Linux.
    given_up: bool,
}

impl<T: Clone + PartialEq> Versions<T> {
    pub fn new(durable: T) -> Self {
        Self { all: vec![durable], given_up: false }
    }

    pub fn current(&self) -> &T {
        self.all.last().expect("there is always one")
    }

    fn set(&mut self, value: T) {
        self.all.push(value);
        self.given_up = false;
    }

    fn sync(&mut self, succeeds: bool) {
        match succeeds {
            true if !self.given_up => drop(self.all.drain(..self.all.len() - 1)),
            true => {}
            false => self.given_up = self.all.len() > 1,
        }
    }

    /// The value after a crash.
    fn crash(&self, fate: Fate, random: &mut Random) -> T {
        let index = match fate {
            Fate::Lost => 0,
            Fate::Kept => self.all.len() - 1,
            Fate::Torn => random.below(self.all.len() as u64) as usize,
        };
        self.all[index].clone()
    }
}

/// The effect of a crash on the unsynced changes of a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    Kept,
    /// Any subset is kept.
    Torn,
}

impl Fate {
    pub fn draw(random: &mut Random) -> Self {
        match random.below(4) {
            0 => Self::Lost,
            1 => Self::Kept,
            _ => Self::Torn,
        }
    }
}

/// A file's content.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// The sectors by number. An absent sector is all zeroes and was never written.
    sectors: BTreeMap<u64, Versions<Sector>>,
    length: Versions<u64>,
}

impl Default for Content {
    fn default() -> Self {
        Self { sectors: BTreeMap::new(), length: Versions::new(0) }
    }
}

impl Content {
    pub fn length(&self) -> u64 {
        *self.length.current()
    }

    /// Reads `bytes` at `offset`, which must lie inside the file.
    pub fn read(&self, bytes: &mut [u8], offset: u64) {
        for (number, range, place) in pieces(offset, bytes.len() as u64) {
            let sector = self.sectors.get(&number).map_or(&ZEROES, Versions::current);
            bytes[place..place + range.len()].copy_from_slice(&sector[range]);
        }
    }

    pub fn write(&mut self, bytes: &[u8], offset: u64) {
        for (number, range, place) in pieces(offset, bytes.len() as u64) {
            let from = &bytes[place..place + range.len()];
            self.change(number, |sector| sector[range].copy_from_slice(from));
        }
        self.grow(offset + bytes.len() as u64);
    }

    /// Makes a range read as zeroes.
    pub fn zero(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).div_ceil(SECTOR as u64);
        let known: Vec<_> =
            self.sectors.range(offset / SECTOR as u64..end).map(|(number, _)| *number).collect();
        for number in known {
            let start = number * SECTOR as u64;
            let from = offset.saturating_sub(start) as usize;
            let to = (offset + length - start).min(SECTOR as u64) as usize;
            self.change(number, |sector| sector[from..to].fill(0));
        }
    }

    pub fn grow(&mut self, length: u64) {
        if length > self.length() {
            self.length.set(length);
        }
    }

    pub fn set_length(&mut self, length: u64) {
        let old = self.length();
        if length < old {
            self.zero(length, old - length);
        }
        if length != old {
            self.length.set(length);
        }
    }

    /// Handles the end of a sync.
    pub fn sync(&mut self, succeeds: bool) {
        self.sectors.values_mut().for_each(|sector| sector.sync(succeeds));
        self.length.sync(succeeds);
    }

    /// Handles the end of a sync of the sectors of a range.
    pub fn sync_range(&mut self, offset: u64, length: u64, succeeds: bool) {
        let sectors = offset / SECTOR as u64..(offset + length).div_ceil(SECTOR as u64);
        self.sectors.range_mut(sectors).for_each(|(_, sector)| sector.sync(succeeds));
    }

    /// The content after a crash, which is completely durable.
    pub fn crash(&self, random: &mut Random) -> Self {
        let fate = Fate::draw(random);
        let length = self.length.crash(fate, random);
        let sectors = self
            .sectors
            .iter()
            .map(|(number, sector)| (*number, Versions::new(sector.crash(fate, random))));
        let mut content = Self { sectors: sectors.collect(), length: Versions::new(u64::MAX) };
        // Bytes after the end are zeroes.
        content.zero(length, u64::MAX - length);
        content.sync(true);
        Self { length: Versions::new(length), ..content }
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Sector)) {
        let sector = self.sectors.entry(number).or_insert_with(|| Versions::new(ZEROES));
        let mut value = *sector.current();
        change(&mut value);
        sector.set(value);
    }
}

/// The sectors of a byte range: number of the sector, range in the sector, and offset in the byte
/// range.
fn pieces(offset: u64, length: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>, usize)> {
    let (sector, end) = (SECTOR as u64, offset + length);
    (offset / sector..end.div_ceil(sector)).map(move |number| {
        let start = number * sector;
        let (from, to) = (offset.max(start), end.min(start + sector));
        (number, (from - start) as usize..(to - start) as usize, (from - offset) as usize)
    })
}
