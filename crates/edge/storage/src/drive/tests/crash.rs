//! Stops the process at every step, crashes the machine there, and checks the remaining data.

use super::super::*;
use super::world::request;
use super::{End, Op, World, every_step};
use crate::files::crash::Disk;
use crate::files::{Access, Folder};
use crate::media::Media;
use nvme::block::Operation;
use proptest::prelude::*;
use std::io::ErrorKind;

/// Number of crashes at each step.
const CRASHES: u64 = 4;

/// The seeds of the crashes, which differ at each step.
fn seeds(step: usize, crashes: u64) -> std::ops::Range<u64> {
    let first = step as u64 * crashes;
    first..first + crashes
}

/// Stops `ops` at every step, once because the process is killed, and several times because the
/// machine crashes.
fn at_every_step(name: &str, ops: &[Op]) {
    let step = every_step(|step| {
        let mut world = World::new();
        world.stop_at(step);
        let result = world.run(ops);
        world.check(End::Kill);
        seeds(step, CRASHES).for_each(|seed| world.check(End::Crash(seed)));
        result.is_ok()
    });
    println!("{name}: {step} failpoints, at each 1 kill and {CRASHES} crashes");
    assert!(step > ops.len(), "every operation has some");
}

fn set(id: u8, value: u8, length: usize) -> (u8, Option<(u8, usize)>) {
    (id, Some((value, length)))
}

#[test]
fn commit_is_atomic_at_every_step() {
    at_every_step(
        "commits",
        &[
            Op::Commit(vec![set(1, 1, 10)]),
            Op::Commit(vec![set(1, 2, 20), set(2, 2, 9000)]),
            Op::Commit(vec![set(2, 3, 100_000), set(3, 3, 1), (1, None)]),
            Op::Commit(vec![(2, None), set(1, 4, 5000)]),
            Op::Reopen,
            Op::Commit(vec![set(1, 5, 5000)]),
        ],
    );
}

#[test]
fn flushed_data_survive() {
    // Contents 3 have checksums.
    for id in [1, 3] {
        at_every_step(
            "data",
            &[
                Op::Create(id),
                Op::Write(id, 0, 8, 1),
                Op::Write(id, 2, 3, 2),
                Op::Flush(id),
                Op::Write(id, 3, 4, 3),
                Op::Zero(id, 0),
                Op::Flush(id),
                Op::Write(id, 1, 1, 4),
                Op::Close(id),
                Op::Write(id, 0, 8, 5),
                Op::Reopen,
                Op::Write(id, 7, 1, 6),
            ],
        );
    }
}

#[test]
fn contents_come_and_go_with_their_records() {
    at_every_step(
        "contents",
        &[
            Op::Create(1),
            Op::Create(2),
            Op::Write(2, 0, 8, 1),
            Op::Flush(2),
            Op::Forget(1),
            Op::Commit(vec![set(1, 1, 10)]),
            Op::Create(3),
            Op::Write(3, 0, 2, 2),
            Op::Forget(3),
            Op::Forget(2),
            Op::Create(1),
        ],
    );
}

#[test]
fn a_crash_while_a_crash_is_repaired_loses_nothing() {
    let ops = [
        Op::Create(1),
        Op::Write(1, 0, 8, 1),
        Op::Commit(vec![set(1, 1, 20_000)]),
        Op::Commit(vec![set(1, 2, 20_000)]),
    ];
    let mut world = World::new();
    world.run(&ops).unwrap();
    let (mut failpoints, most) = (0, world.disk.steps());
    for step in (0..most).step_by(3) {
        let mut world = World::new();
        world.stop_at(step);
        let _ = world.run(&ops);
        world.end(End::Crash(step as u64));
        let mut second = 0;
        loop {
            world.stop_at(second);
            let opened = world.open();
            world.check(End::Crash(second as u64));
            if opened.is_ok() {
                break;
            }
            second += 1;
        }
        failpoints += second;
    }
    println!("repairs: {failpoints} failpoints, at each 1 crash");
    assert!(failpoints > most / 3);
}

/// Creates a drive in the folder `drive` of a disk.
fn create(disk: &Disk) -> io::Result<DriveFolder> {
    let records = Records::from([("a".into(), vec![1; 9000]), ("b".into(), vec![2])]);
    let contents = [super::world::new(1), super::world::new(2)];
    DriveFolder::create_in(&disk.root(), "drive", Path::new("drive"), records, &contents)
}

fn open(disk: &Disk, formats: &Formats) -> io::Result<DriveFolder> {
    let folder = disk.root().folder("drive")?;
    Ok(DriveFolder::open_in(folder, Path::new("drive"), formats, "boot")?.0)
}

/// Asserts that the drive has the records and contents of [`create`].
fn check_created(drive: &DriveFolder) {
    let names: Vec<_> = drive.contents().unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["c1", "c2"]);
    names.iter().for_each(|name| drop(drive.open_contents(name).unwrap()));
    let records = drive.records();
    assert_eq!((&records["a"], &records["b"], records.len()), (&vec![1; 9000], &vec![2], 4));
}

/// Number of crashes at each step, for operations in which only few steps can lose data.
const MANY: u64 = 16;

#[test]
fn a_drive_is_created_or_not() {
    let step = every_step(|step| {
        let disk = Disk::new().stopping_at(step);
        let created = create(&disk).map(drop);
        let after = seeds(step, MANY).map(|seed| disk.after_crash(seed)).chain([disk.after_kill()]);
        for left in after {
            match open(&left, &Formats::KNOWN) {
                Ok(drive) => check_created(&drive),
                Err(error) => {
                    assert!(created.is_err(), "what was created is there: {error}");
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                    check_created(&create(&left).expect("it can be created again"));
                }
            }
        }
        created.is_ok()
    });
    println!("creation: {step} failpoints, at each 1 kill and {MANY} crashes");
    assert!(step > 10);
}

/// Version 1 has the records of version 0 with longer names.
const FROM_0: Formats = Formats {
    newest: 1,
    migrations: &[(0, |records| {
        let renamed = |(name, bytes): (String, Vec<u8>)| match name.starts_with(CONTENTS) {
            true => (name, bytes),
            false => (format!("{name} of version 1"), bytes),
        };
        Ok(records.into_iter().map(renamed).collect())
    })],
};

fn version_0() -> Disk {
    let disk = Disk::new();
    let records = Records::from([("a".into(), vec![1; 9000])]);
    drop(create::create(&disk.root(), "drive", records, &[super::world::new(1)], 0).unwrap());
    disk
}

#[test]
fn a_migration_happens_after_a_copy() {
    let step = every_step(|step| {
        let disk = version_0().after_kill().stopping_at(step);
        let opened = open(&disk, &FROM_0).map(drop);
        for seed in seeds(step, MANY) {
            let left = disk.after_crash(seed);
            let folder = left.root().folder("drive").unwrap();
            let shown = show::show(&*folder).unwrap();
            assert!(opened.is_err() || shown.version == 1);
            if shown.version == 1 {
                // The copy is complete.
                let copy = folder.open("drive.redb.v0", Access::Write).unwrap();
                let (_, version, records) =
                    metadata::Metadata::open(backend::Backend(copy)).unwrap();
                assert_eq!((version, &records["a"]), (0, &vec![1; 9000]));
            }
            let drive = open(&left, &FROM_0).unwrap();
            assert_eq!(drive.records()["a of version 1"], vec![1; 9000]);
            assert_eq!(drive.contents().unwrap().len(), 1);
        }
        opened.is_ok()
    });
    println!("migration: {step} failpoints, at each {MANY} crashes");
    assert!(step > 10);
}

#[test]
fn versions_that_cannot_be_read_are_refused_and_left_alone() {
    let refused = |disk: &Disk, formats: &Formats| open(disk, formats).unwrap_err().to_string();
    let newer = Disk::new();
    drop(create::create(&newer.root(), "drive", Records::new(), &[], 7).unwrap());
    let error = refused(&newer, &Formats::KNOWN);
    assert!(error.contains("version 7, but this program reads up to 2"), "{error}");
    let older = version_0();
    let error = refused(&older, &Formats::KNOWN);
    assert!(error.contains("version 0, but this program reads 2"), "{error}");
    let failing = Formats { newest: 1, migrations: &[(0, |_| Err("it is odd".into()))] };
    let error = refused(&older, &failing);
    assert!(error.contains("from version 0: it is odd"), "{error}");
    assert_eq!(open(&older, &FROM_0).unwrap().records().len(), 2);
}

#[test]
fn contents_of_version_1_have_no_checksums() {
    let disk = Disk::new();
    let contents = [super::world::new(1)];
    drop(create::create(&disk.root(), "drive", Records::new(), &contents, 1).unwrap());
    let drive = open(&disk, &Formats::KNOWN).unwrap();
    assert!(!drive.contents().unwrap()[0].checksums);
    assert_eq!(drive.open_contents("c1").unwrap().verify(), None);
    let folder = disk.root().folder("drive").unwrap();
    assert_eq!(show::show(&*folder).unwrap().version, 2);
}

#[test]
fn a_commit_that_fails_changes_nothing_and_the_next_one_works() {
    let commits: Vec<_> =
        (0..4).map(|value| Op::Commit(vec![set(1, value, 6000), set(value, 9, 10)])).collect();
    let mut clean = World::new();
    clean.disk = clean.disk.after_kill();
    clean.run(&commits).unwrap();
    let mut failures = 0;
    let last = clean.disk.steps();
    for (first, second) in (0..last).flat_map(|first| [(first, first), (first, first + 3)]) {
        let mut world = World::new();
        let kind = if first.is_multiple_of(2) { ErrorKind::StorageFull } else { ErrorKind::Other };
        world.disk = world.disk.after_kill().failing_at(&[first, second], kind);
        let Ok(()) = world.open() else { continue };
        let failed = commits.iter().filter(|op| world.apply(op).is_err()).count();
        assert!(failed <= 1 + usize::from(second > first), "the next one works");
        failures += failed;
        world.check(End::Kill);
        seeds(first, CRASHES).for_each(|seed| world.check(End::Crash(seed)));
    }
    println!("{failures} commits failed");
    assert!(failures > 20);
}

#[test]
fn contents_that_cannot_be_synced_after_a_kill_are_new() {
    let open = |disk: &Disk| {
        let mut media = open(disk, &Formats::KNOWN).unwrap().open_contents("c1").unwrap();
        media.begin();
        media
    };
    let disk = Disk::new();
    drop(create(&disk).unwrap());
    let mut media = open(&disk);
    let incarnation = media.incarnation();
    request(&mut media, Operation::WriteZeroes { offset: 0, length: 512 }).unwrap();
    let killed = disk.after_kill();
    let counted = killed.after_kill();
    let drive = self::open(&counted, &Formats::KNOWN).unwrap();
    let before = counted.steps();
    assert_eq!(drive.open_contents("c1").unwrap().incarnation(), incarnation);
    let failing = killed.failing_at(&[before], ErrorKind::Other);
    let mut media = open(&failing);
    assert_ne!(media.incarnation(), incarnation);
    assert!(media.take_notice().unwrap().contains("cannot be synced"));
}

fn ops() -> impl Strategy<Value = Op> {
    let id = 0..3_u8;
    let change = (0..4_u8, prop::option::of((any::<u8>(), 1..20_000_usize)));
    prop_oneof![
        3 => prop::collection::vec(change, 1..4).prop_map(Op::Commit),
        2 => id.clone().prop_map(Op::Create),
        1 => id.clone().prop_map(Op::Forget),
        6 => (id.clone(), any::<usize>(), 1..9_usize, any::<u8>())
            .prop_map(|(id, first, count, value)| Op::Write(id, first, count, value)),
        1 => (id.clone(), any::<usize>()).prop_map(|(id, first)| Op::Zero(id, first)),
        3 => id.clone().prop_map(Op::Flush),
        1 => id.prop_map(Op::Close),
        1 => Just(Op::Reopen),
    ]
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::Kill), any::<u64>().prop_map(End::Crash)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn nothing_acknowledged_is_ever_lost(
        lives in prop::collection::vec((prop::collection::vec(ops(), 0..12), 0..200_usize, ends()), 1..6),
    ) {
        let mut world = World::new();
        for (ops, step, end) in lives {
            world.stop_at(step);
            let _ = world.run(&ops);
            world.end(end);
        }
    }

    #[test]
    fn damaged_bytes_are_an_error_or_change_nothing(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let disk = Disk::new();
        let drive = create(&disk).unwrap();
        drive.commit(&[("c".into(), Some(vec![3; 100]))]).unwrap();
        drive.commit(&[("c".into(), Some(vec![4; 100]))]).unwrap();
        let records = drive.records();
        drop(drive);
        let folder = disk.root().folder("drive").unwrap();
        let file = folder.open(METADATA, Access::Write).unwrap();
        let length = file.len().unwrap() as usize;
        for (place, byte) in damage {
            // No checksum covers the byte that selects the later of two commits (redb's design
            // document, "Database header").
            let place = place.index(length) as u64;
            if place != 9 {
                file.write_at(&[byte], place).unwrap();
            }
        }
        if let Some(cut) = cut {
            file.set_len(cut.index(length) as u64).unwrap();
        }
        if let Ok(shown) = show::show(&*folder) {
            prop_assert_eq!(shown.records, records);
        }
    }
}
