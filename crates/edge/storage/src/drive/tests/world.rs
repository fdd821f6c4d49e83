//! A drive on a disk that crashes, and the states allowed afterwards.

use super::super::*;
use crate::files::crash::Disk;
use crate::media::Media;
use bytes::Bytes;
use nvme::block::{Completion, Operation, Request};
use std::collections::BTreeMap;

/// Number of sectors of contents. All bytes of a sector have the same value.
pub const SECTORS: usize = 8;
const SECTOR: usize = 512;

/// An operation on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Changes records, each with number: sets it to a number of bytes of one value, or removes it.
    Commit(Vec<(u8, Option<(u8, usize)>)>),
    /// Creates contents, and a record in the same commit.
    Create(u8),
    /// Removes the record of contents, then the contents.
    Forget(u8),
    /// Writes to contents: first sector, number of sectors, value.
    Write(u8, usize, usize, u8),
    Zero(u8, usize),
    Flush(u8),
    /// Closes the media.
    Close(u8),
    /// Closes all media and the drive, and opens the drive again.
    Reopen,
}

/// The possible values of a sector.
#[derive(Clone, Debug)]
struct Sector {
    /// All values since the last flush. The first value is the one that the flush made durable.
    values: Vec<u8>,
    /// The index of the last acknowledged value.
    acknowledged: usize,
}

#[derive(Debug)]
struct Contents {
    media: Option<FileMedia>,
    sectors: Vec<Sector>,
    incarnation: Option<u64>,
    /// Whether a write has begun since the contents were last closed.
    written: bool,
}

impl Contents {
    fn new() -> Self {
        let sectors = vec![Sector { values: vec![0], acknowledged: 0 }; SECTORS];
        Self { media: None, sectors, incarnation: None, written: false }
    }

    fn written_to(&mut self, acknowledged: bool, first: usize, count: usize, value: u8) {
        for sector in self.sectors.iter_mut().skip(first).take(count) {
            match acknowledged {
                true => sector.acknowledged = sector.values.len() - 1,
                false => sector.values.push(value),
            }
        }
    }

    fn flushed(&mut self) {
        for sector in &mut self.sectors {
            sector.values.drain(..sector.acknowledged);
            sector.acknowledged = 0;
        }
    }
}

/// How the run of a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process is killed.
    Kill,
    /// The machine crashes. The seed determines which data are lost.
    Crash(u64),
}

/// A drive and its expected state.
pub struct World {
    pub disk: Disk,
    drive: Option<DriveFolder>,
    /// The records of all acknowledged commits.
    acknowledged: Records,
    /// The records after an unfinished commit, which may be stored instead.
    pending: Option<Records>,
    contents: BTreeMap<u8, Contents>,
    boots: u64,
}

impl World {
    /// A drive without records, durably created.
    pub fn new() -> Self {
        let disk = Disk::new();
        let path = Path::new("drive");
        DriveFolder::create_in(&disk.root(), "drive", path, Records::new(), &[]).unwrap();
        let contents = BTreeMap::new();
        let (acknowledged, pending) = (Records::new(), None);
        Self { disk, drive: None, acknowledged, pending, contents, boots: 0 }
    }

    /// Makes the process end before step `step` of the following operations.
    pub fn stop_at(&mut self, step: usize) {
        self.disk = self.disk.after_kill().stopping_at(step);
    }

    /// Opens the drive and executes all operations up to the first error.
    pub fn run(&mut self, ops: &[Op]) -> io::Result<()> {
        self.open()?;
        ops.iter().try_for_each(|op| self.apply(op))
    }

    pub fn open(&mut self) -> io::Result<()> {
        let (drive, _) = open(&self.disk, self.boots)?;
        self.drive = Some(drive);
        Ok(())
    }

    fn drive(&self) -> &DriveFolder {
        self.drive.as_ref().unwrap()
    }

    pub fn apply(&mut self, op: &Op) -> io::Result<()> {
        match op {
            Op::Commit(changes) => {
                let changes: Vec<_> = changes.iter().map(change).collect();
                self.commit(&changes)
            }
            Op::Create(id) => {
                if self.contents.contains_key(id) {
                    return Ok(());
                }
                let new = self.drive().create_contents(&new(*id))?;
                self.commit(&[new, (format!("of {id}"), Some(vec![*id]))])?;
                self.contents.insert(*id, Contents::new());
                Ok(())
            }
            Op::Forget(id) => {
                let Some(contents) = self.contents.get_mut(id) else { return Ok(()) };
                close(contents)?;
                let forgotten = DriveFolder::forget_contents(&name(*id))?;
                self.commit(&[forgotten, (format!("of {id}"), None)])?;
                self.contents.remove(id);
                self.drive().remove_contents(&name(*id))
            }
            Op::Write(id, first, count, value) => {
                let first = first % SECTORS;
                let count = (*count).clamp(1, SECTORS - first);
                let data = Bytes::from(vec![*value; count * SECTOR]);
                let operation = Operation::Write { offset: (first * SECTOR) as u64, data };
                self.write(*id, first, count, *value, operation)
            }
            Op::Zero(id, first) => {
                let (offset, length) = ((first % SECTORS * SECTOR) as u64, SECTOR as u64);
                self.write(*id, first % SECTORS, 1, 0, Operation::WriteZeroes { offset, length })
            }
            Op::Flush(id) => {
                let Some(contents) = self.contents.get_mut(id) else { return Ok(()) };
                if let Some(media) = &mut contents.media {
                    request(media, Operation::Flush).map_err(io::Error::other)?;
                    contents.flushed();
                }
                Ok(())
            }
            Op::Close(id) => self.contents.get_mut(id).map_or(Ok(()), close),
            Op::Reopen => {
                self.contents.values_mut().try_for_each(close)?;
                self.drive = None;
                self.open()
            }
        }
    }

    fn commit(&mut self, changes: &[Change]) -> io::Result<()> {
        let mut next = self.acknowledged.clone();
        for (name, bytes) in changes.iter().cloned() {
            match bytes {
                Some(bytes) => drop(next.insert(name, bytes)),
                None => drop(next.remove(&name)),
            }
        }
        self.pending = Some(normalised(next));
        let committed = self.drive().commit(changes);
        let records = normalised(self.drive().records());
        if let Err(error) = committed {
            assert_eq!(records, self.acknowledged, "nothing has changed");
            return Err(error);
        }
        self.acknowledged = self.pending.take().unwrap();
        assert_eq!(records, self.acknowledged);
        Ok(())
    }

    fn write(
        &mut self,
        id: u8,
        first: usize,
        count: usize,
        value: u8,
        operation: Operation,
    ) -> io::Result<()> {
        let drive = self.drive.clone().unwrap();
        let Some(contents) = self.contents.get_mut(&id) else { return Ok(()) };
        if contents.media.is_none() {
            let mut media = drive.open_contents(&name(id))?;
            media.begin();
            let known = contents.incarnation.replace(media.incarnation());
            assert!(known.is_none_or(|known| known == media.incarnation()));
            contents.media = Some(media);
        }
        contents.written = true;
        contents.written_to(false, first, count, value);
        request(contents.media.as_mut().unwrap(), operation).map_err(io::Error::other)?;
        contents.written_to(true, first, count, value);
        Ok(())
    }

    /// Ends the process or crashes the machine. Checks the remaining data, and continues with them.
    pub fn end(&mut self, end: End) {
        let disk = match end {
            End::Kill => self.disk.after_kill(),
            End::Crash(seed) => self.disk.after_crash(seed),
        };
        // Accesses of the old process from now on do not matter.
        self.contents.values_mut().for_each(|contents| drop(contents.media.take()));
        self.drive = None;
        self.disk = disk;
        self.boots += u64::from(end != End::Kill);
        self.settle(end);
    }

    /// Checks the data that an end leaves, but does not continue with them.
    pub fn check(&self, end: End) {
        let disk = match end {
            End::Kill => self.disk.after_kill(),
            End::Crash(seed) => self.disk.after_crash(seed),
        };
        let contents = self.contents.iter().map(|(id, contents)| {
            let Contents { sectors, incarnation, written, .. } = contents;
            let (sectors, media) = (sectors.clone(), None);
            (*id, Contents { media, sectors, incarnation: *incarnation, written: *written })
        });
        let mut world = Self {
            disk,
            drive: None,
            acknowledged: self.acknowledged.clone(),
            pending: self.pending.clone(),
            contents: contents.collect(),
            boots: self.boots + u64::from(end != End::Kill),
        };
        world.settle(end);
    }

    /// Opens the drive that `end` left on the disk. Checks that its state is a possible one, and
    /// continues with this state.
    fn settle(&mut self, end: End) {
        let (drive, _) = open(&self.disk, self.boots).expect("it opens");
        let records = normalised(drive.records());
        let pending = self.pending.take();
        assert!(
            records == self.acknowledged || Some(&records) == pending.as_ref(),
            "neither old nor new: {:?}",
            records.keys()
        );
        self.acknowledged = records;
        let named: Vec<_> = drive.contents().unwrap().into_iter().map(|info| info.name).collect();
        let files = self.disk.root().folder("drive").unwrap().folder(CONTENTS).unwrap();
        assert_eq!(files.list().unwrap(), named, "every file of contents has a record");
        self.contents.retain(|id, _| named.contains(&name(*id)));
        for id in 0..=u8::MAX {
            if named.contains(&name(id)) {
                let contents = self.contents.entry(id).or_insert_with(Contents::new);
                settle_contents(&drive, id, contents, end);
            }
        }
    }
}

fn settle_contents(drive: &DriveFolder, id: u8, contents: &mut Contents, end: End) {
    let mut media = drive.open_contents(&name(id)).expect("contents open");
    assert_eq!(media.size(), (SECTORS * SECTOR) as u64);
    let same = contents.incarnation == Some(media.incarnation());
    if contents.incarnation.is_some() && (end == End::Kill || !contents.written) {
        assert!(same, "nothing was lost");
    }
    for (number, sector) in contents.sectors.iter_mut().enumerate() {
        let operation = Operation::Read { offset: (number * SECTOR) as u64, length: SECTOR };
        let bytes = request(&mut media, operation).unwrap();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a sector is torn");
        // With the same incarnation, all acknowledged writes must be present.
        let first = if same || end == End::Kill { sector.acknowledged } else { 0 };
        let found = sector.values[first..].iter().rposition(|value| *value == bytes[0]);
        let found = found.unwrap_or_else(|| {
            panic!(
                "sector {number} of {id} is {}, not of {:?} from {first}",
                bytes[0], sector.values
            )
        });
        sector.acknowledged = first + found;
        sector.values.truncate(first + found + 1);
    }
    media.begin();
    contents.incarnation = Some(media.incarnation());
    media.close().unwrap();
    contents.written = false;
    contents.flushed();
}

fn close(contents: &mut Contents) -> io::Result<()> {
    let Some(mut media) = contents.media.take() else { return Ok(()) };
    media.close()?;
    contents.written = false;
    contents.flushed();
    Ok(())
}

fn open(disk: &Disk, boots: u64) -> io::Result<(DriveFolder, Vec<String>)> {
    let folder = disk.root().folder("drive")?;
    DriveFolder::open_in(folder, Path::new("drive"), &Formats::KNOWN, &format!("boot {boots}"))
}

pub fn request(media: &mut FileMedia, operation: Operation) -> Completion {
    if let Some(outcome) = media.start(Request { id: 7, command: None, nsid: 1, operation }) {
        return outcome;
    }
    loop {
        if let Some((7, outcome)) = media.poll_completion() {
            return outcome;
        }
        std::thread::yield_now();
    }
}

pub fn new(id: u8) -> NewContents {
    NewContents {
        name: name(id),
        size: (SECTORS * SECTOR) as u64,
        sparse: id.is_multiple_of(2),
        checksums: id.is_multiple_of(3),
    }
}

fn name(id: u8) -> String {
    format!("c{id}")
}

fn change((id, value): &(u8, Option<(u8, usize)>)) -> Change {
    (format!("record {id}"), value.map(|(value, length)| vec![value; length]))
}

/// The records, with empty records of contents.
fn normalised(records: Records) -> Records {
    let clear = |(name, bytes): (String, Vec<u8>)| match name.starts_with(CONTENTS) {
        true => (name, Vec::new()),
        false => (name, bytes),
    };
    records.into_iter().map(clear).collect()
}
