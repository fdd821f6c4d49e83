//! Tests of checksums: on a real folder with many requests at once, and on the model of a disk.

use super::super::*;
use super::every_step;
use crate::files::crash::Disk;
use crate::files::{Access, File, Folder};
use crate::media::{Layout, Media, run};
use nvme::block::{Completion, Error, Operation, Request};
use stats::random::Random;
use std::slice;

/// Number of bytes with one checksum.
const UNIT: u64 = 512;
/// Number of bytes with one mark.
const REGION: u64 = 16 << 20;
const SIZE: u64 = 64 * UNIT;

fn new(size: u64) -> NewContents {
    NewContents { name: "c".into(), size, sparse: true, checksums: true }
}

/// A disk with a drive whose contents `c` have checksums, durably created.
fn disk(size: u64) -> Disk {
    let disk = Disk::new();
    let path = Path::new("drive");
    DriveFolder::create_in(&disk.root(), "drive", path, Records::new(), &[new(size)]).unwrap();
    disk.after_kill()
}

fn open(disk: &Disk, boot: &str) -> io::Result<FileMedia> {
    let folder = disk.root().folder("drive")?;
    let (drive, _) = DriveFolder::open_in(folder, Path::new("drive"), &Formats::KNOWN, boot)?;
    let mut media = drive.open_contents("c")?;
    media.begin();
    Ok(media)
}

/// The file of the contents.
fn file(disk: &Disk) -> Box<dyn File> {
    let folder = disk.root().folder("drive").unwrap().folder("contents").unwrap();
    folder.open("c", Access::Write).unwrap()
}

/// Flips a bit in the unit at `offset`, durably.
fn flip(disk: &Disk, offset: u64) {
    let (file, mut byte) = (file(disk), [0]);
    file.read_at(&mut byte, offset + 100).unwrap();
    file.write_durably_at(&[byte[0] ^ 8], offset + 100).unwrap();
}

fn read(media: &mut FileMedia, offset: u64, length: u64) -> Completion {
    run(media, Operation::Read { offset, length: length as usize })
}

fn write(media: &mut FileMedia, offset: u64, length: u64, value: u8) -> Completion {
    run(media, Operation::Write { offset, data: vec![value; length as usize].into() })
}

#[test]
fn flipped_bit_is_an_error_of_the_medium_and_a_write_repairs_it() {
    let disk = disk(SIZE);
    let mut media = open(&disk, "A").unwrap();
    write(&mut media, 0, SIZE, 5).unwrap();
    flip(&disk, 3 * UNIT);
    // Also where nothing was ever written, or zeroes were.
    run(&mut media, Operation::Discard { offset: 8 * UNIT, length: UNIT }).unwrap();
    flip(&disk, 8 * UNIT);
    assert_eq!(read(&mut media, 0, 4096), Err(Error::Media));
    assert!(media.take_notice().unwrap().contains("the 512 bytes at 1536 do not have their"));
    assert_eq!(read(&mut media, 4 * UNIT, 4 * UNIT).unwrap(), [5; 2048][..]);
    let bad = [3 * UNIT..4 * UNIT, 8 * UNIT..9 * UNIT];
    assert_eq!(media.verify(), Some(bad.to_vec()));
    // A part of a unit cannot be written without the rest of the unit.
    assert_eq!(write(&mut media, 3 * UNIT, 8, 6), Err(Error::Media));
    write(&mut media, 3 * UNIT, UNIT, 6).unwrap();
    run(&mut media, Operation::WriteZeroes { offset: 8 * UNIT, length: UNIT }).unwrap();
    assert_eq!(media.verify(), Some(Vec::new()));
}

#[test]
fn flipped_bit_of_a_checksum_is_found_too() {
    let disk = disk(SIZE);
    let mut media = open(&disk, "A").unwrap();
    let sum = Layout { size: SIZE }.sum(UNIT);
    file(&disk).write_at(&[1], sum).unwrap();
    assert_eq!(read(&mut media, UNIT, UNIT), Err(Error::Media));
    assert_eq!(read(&mut media, 2 * UNIT, UNIT).unwrap(), [0; 512][..]);
}

/// The changes of one process, from `boot` on, up to the first error.
fn change(disk: &Disk, boot: &str) -> Result<(), String> {
    let mut media = open(disk, boot).map_err(|error| error.to_string())?;
    let text = |error: Error| error.to_string();
    write(&mut media, 0, 12 * UNIT, 1).map_err(text)?;
    run(&mut media, Operation::Flush).map_err(text)?;
    write(&mut media, 4 * UNIT, 4 * UNIT, 2).map_err(text)?;
    write(&mut media, 6 * UNIT + 8, 16, 3).map_err(text)?;
    run(&mut media, Operation::WriteZeroes { offset: UNIT, length: 2 * UNIT }).map_err(text)?;
    run(&mut media, Operation::Discard { offset: 9 * UNIT, length: UNIT }).map_err(text)?;
    media.close().map_err(|error| error.to_string())
}

/// Kills the process before each step. Every unit is readable then, and a bit that flips while no
/// process runs is found in every unit.
#[test]
fn kill_at_every_step_neither_invents_nor_hides_a_fault() {
    let step = every_step(|step| {
        let disk = disk(SIZE).stopping_at(step);
        let ended = change(&disk, "A");
        let units = |killed: &Disk| -> Vec<Completion> {
            let mut media = open(killed, "A").unwrap();
            (0..16).map(|unit| read(&mut media, unit * UNIT, UNIT)).collect()
        };
        assert!(units(&disk.after_kill()).iter().all(Result::is_ok), "killed at step {step}");
        let flipped = step as u64 % 16;
        let killed = disk.after_kill();
        flip(&killed, flipped * UNIT);
        for (number, unit) in units(&killed).iter().enumerate() {
            assert_eq!(unit.is_err(), number as u64 == flipped, "killed at step {step}");
        }
        ended.is_ok()
    });
    println!("{step} failpoints");
    assert!(step > 30);
}

/// Crashes the machine before each step, and once more while the checksums are repaired. Every unit
/// is readable then; a flipped bit is found wherever nothing was written.
#[test]
fn crash_at_every_step_invents_no_fault() {
    const TWO: u64 = REGION + SIZE;
    let step = every_step(|step| {
        let disk = disk(TWO).stopping_at(step);
        let ended = change(&disk, "A");
        for seed in 0..2 {
            let crashed = disk.after_crash(seed + 2 * step as u64);
            let again = crashed.after_kill().stopping_at(step / 2);
            let _ = open(&again, "B");
            let twice = again.after_crash(seed);
            flip(&twice, REGION + 8 * UNIT);
            let mut media = open(&twice, "C").unwrap();
            let bad = REGION + 8 * UNIT..REGION + 9 * UNIT;
            assert_eq!(media.verify().unwrap(), slice::from_ref(&bad), "{step}");
            assert_eq!(read(&mut media, REGION + 8 * UNIT, UNIT), Err(Error::Media));
        }
        ended.is_ok()
    });
    println!("{step} failpoints");
    assert!(step > 30);
}

/// Marks of regions whose data are durable are removed, so that a crash hides no fault there.
#[test]
fn flushes_remove_marks() {
    let disk = disk(SIZE);
    let mut media = open(&disk, "A").unwrap();
    write(&mut media, 0, SIZE, 1).unwrap();
    let crash = |disk: &Disk| {
        let crashed = disk.after_crash(1);
        flip(&crashed, 0);
        open(&crashed, "B").unwrap().verify().unwrap()
    };
    run(&mut media, Operation::Flush).unwrap();
    assert_eq!(crash(&disk), []);
    (0..32).for_each(|_| drop(run(&mut media, Operation::Flush).unwrap()));
    file(&disk).sync_data().unwrap();
    assert_eq!(crash(&disk), slice::from_ref(&(0..UNIT)));
}

#[test]
fn failed_write_is_no_fault_of_the_units_it_has_changed() {
    let mut failures = 0;
    for step in 0..60 {
        let disk = disk(SIZE).failing_at(&[step], io::ErrorKind::StorageFull);
        let Ok(mut media) = open(&disk, "A") else { continue };
        failures += usize::from(write(&mut media, 0, 8 * UNIT, 1).is_err());
        let zeroes = Operation::WriteZeroes { offset: UNIT, length: UNIT };
        failures += usize::from(run(&mut media, zeroes).is_err());
        assert_eq!(media.verify(), Some(Vec::new()), "step {step}");
    }
    assert!(failures >= 4, "{failures}");
}

/// Many requests at once, also of parts of units. Requests for the same units take effect in their
/// order, so reads return what a model has at their start.
#[test]
fn requests_at_once_read_what_was_written_before() {
    let folder = testkit::Folder::new();
    let path = folder.join("drive");
    let drive = DriveFolder::create(&path, Default::default(), &[new(SIZE + 8)]).unwrap();
    let mut media = drive.open_contents("c").unwrap();
    media.begin();
    read_what_was_written(&mut media);
    // The disk of the model has no io_uring.
    read_what_was_written(&mut open(&disk(SIZE), "A").unwrap());
}

fn read_what_was_written(media: &mut FileMedia) {
    let size = media.size();
    let (mut random, mut model) = (Random::new(7), vec![0; size as usize]);
    for round in 0..200_u64 {
        let mut expected = BTreeMap::new();
        for id in 0..24 {
            let offset = random.below(size / 8) * 8;
            let length = ((random.below(1024) + 1) * 8).min(size - offset);
            let unit = if random.below(2) == 0 { UNIT } else { 8 };
            let (offset, length) = (offset / unit * unit, length.next_multiple_of(unit));
            let range = offset as usize..(offset + length).min(size) as usize;
            let length = range.len() as u64;
            let value = (round + id) as u8;
            let operation = match random.below(8) {
                0 => Operation::WriteZeroes { offset, length },
                // A file system without holes keeps the data, which then have to be zeroes.
                1 if model[range.clone()].iter().all(|byte| *byte == 0) => {
                    Operation::Discard { offset, length }
                }
                2 => Operation::Flush,
                3 | 4 => Operation::Write { offset, data: vec![value; range.len()].into() },
                _ => Operation::Read { offset, length: range.len() },
            };
            match &operation {
                Operation::WriteZeroes { .. } => model[range].fill(0),
                Operation::Write { .. } => model[range].fill(value),
                Operation::Read { .. } => drop(expected.insert(id, model[range].to_vec())),
                Operation::Discard { .. } | Operation::Flush => {}
            }
            assert_eq!(media.start(Request { id, command: None, nsid: 1, operation }), None);
        }
        media.submit();
        let mut left = 24;
        while left > 0 {
            let Some((id, outcome)) = media.poll_completion() else {
                std::thread::yield_now();
                continue;
            };
            let data = outcome.unwrap();
            if let Some(expected) = expected.remove(&id) {
                assert!(data == expected, "round {round}, request {id}");
            }
            left -= 1;
        }
        assert!(expected.is_empty());
    }
    assert_eq!((media.verify(), read(media, 0, size).unwrap()), (Some(vec![]), model.into()));
}

/// The same by io_uring: a thread may not serve what the ring has read wrong.
#[test]
fn flipped_bit_of_a_real_file_is_an_error() {
    let folder = testkit::Folder::new();
    let path = folder.join("drive");
    let drive = DriveFolder::create(&path, Default::default(), &[new(SIZE)]).unwrap();
    let mut media = drive.open_contents("c").unwrap();
    media.begin();
    write(&mut media, 0, SIZE, 5).unwrap();
    write(&mut media, 0, SIZE, 6).unwrap();
    let contents = std::fs::OpenOptions::new().write(true).open(path.join("contents/c")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&contents, &[7], 4 * UNIT).unwrap();
    assert_eq!(read(&mut media, 0, 8 * UNIT), Err(Error::Media));
    assert_eq!(read(&mut media, 5 * UNIT, UNIT).unwrap(), [6; 512][..]);
}
