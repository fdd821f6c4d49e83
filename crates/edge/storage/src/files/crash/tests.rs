//! Tests of the data that the model loses and keeps.

use super::*;
use crate::files::{Access, File, Folder};
use std::collections::BTreeSet;
use std::io::ErrorKind;

const SEEDS: std::ops::Range<u64> = 0..200;

/// A disk with the durable file `a`: 1024 bytes with the value 1.
fn disk() -> (Disk, Box<dyn File>) {
    let disk = Disk::new();
    let file = disk.root().open("a", Access::CreateNew).unwrap();
    file.write_at(&[1; 1024], 0).unwrap();
    file.sync_data().unwrap();
    disk.root().sync().unwrap();
    (disk, file)
}

fn bytes(disk: &Disk, name: &str) -> Option<Vec<u8>> {
    let file = disk.root().open(name, Access::Read).ok()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

/// The possible contents of the file `name` after a crash.
fn outcomes(disk: &Disk, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    SEEDS.map(|seed| bytes(&disk.after_crash(seed), name)).collect()
}

/// Two sectors, each filled with one value.
fn sectors(first: u8, second: u8) -> Option<Vec<u8>> {
    Some([[first; 512], [second; 512]].concat())
}

#[test]
fn synced_data_survives_crash_and_all_data_survives_kill() {
    let (disk, file) = disk();
    assert_eq!(outcomes(&disk, "a"), [sectors(1, 1)].into());
    file.write_at(&[2; 512], 0).unwrap();
    assert_eq!(bytes(&disk.after_kill(), "a"), sectors(2, 1));
    let killed = disk.after_kill();
    assert!(outcomes(&killed, "a").contains(&sectors(1, 1)), "it is not durable either");
    killed.root().open("a", Access::Write).unwrap().sync_data().unwrap();
    assert_eq!(outcomes(&killed, "a"), [sectors(2, 1)].into());
}

#[test]
fn unsynced_writes_tear_at_sectors_in_any_order() {
    let (disk, file) = disk();
    file.write_at(&[2; 1024], 0).unwrap();
    file.write_at(&[3; 512], 0).unwrap();
    let mut expected = BTreeSet::new();
    for first in [1, 2, 3] {
        expected.extend([sectors(first, 1), sectors(first, 2)]);
    }
    assert_eq!(outcomes(&disk, "a"), expected);
    // A write of a part of a sector is atomic for the whole sector.
    file.sync_data().unwrap();
    file.write_at(&[4; 2], 511).unwrap();
    let torn = outcomes(&disk, "a");
    assert_eq!(torn.len(), 4);
    assert!(torn.iter().flatten().all(|bytes| bytes[510] == 3 && bytes[513] == 2));
}

#[test]
fn lengths_and_holes_are_unsynced_too() {
    let (disk, file) = disk();
    file.set_len(512).unwrap();
    file.punch_hole(0, 512).unwrap();
    let short = |byte| Some(vec![byte; 512]);
    let all = outcomes(&disk, "a");
    assert!(all.is_superset(&[short(0), short(1), sectors(1, 1), sectors(1, 0)].into()));
    file.allocate(512, 512).unwrap();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk, "a"), [sectors(0, 0)].into());
}

#[test]
fn entries_are_durable_with_their_folder_alone() {
    let (disk, _) = disk();
    let root = disk.root();
    let file = root.open("b", Access::CreateNew).unwrap();
    file.write_at(&[5; 512], 0).unwrap();
    file.sync_data().unwrap();
    let five = Some(vec![5; 512]);
    assert_eq!(outcomes(&disk, "b"), [None, five.clone()].into());
    root.sync().unwrap();
    // A rename is atomic.
    root.rename("b", "a").unwrap();
    for seed in SEEDS {
        let after = disk.after_crash(seed);
        let both = (bytes(&after, "a"), bytes(&after, "b"));
        assert!(both == (sectors(1, 1), five.clone()) || both == (five.clone(), None));
    }
    root.sync().unwrap();
    assert_eq!(outcomes(&disk, "a"), [five].into());
    // A file whose entry is durable may be empty.
    root.open("c", Access::CreateNew).unwrap().write_at(&[6; 512], 0).unwrap();
    root.sync().unwrap();
    assert!(outcomes(&disk, "c").is_superset(&[Some(vec![]), Some(vec![6; 512])].into()));
}

#[test]
fn a_process_stops_and_steps_fail() {
    let (disk, _) = disk();
    let root = |disk: &Disk| disk.root().open("a", Access::Write).unwrap();
    let stopped = disk.after_kill().stopping_at(1);
    let file = root(&stopped);
    file.write_at(&[2; 512], 0).unwrap();
    assert!(file.write_at(&[3; 512], 0).is_err() && file.sync_data().is_err());
    assert_eq!((stopped.steps(), bytes(&stopped, "a")), (3, sectors(2, 1)));
    let failing = disk.after_kill().failing_at(&[0, 2], ErrorKind::StorageFull);
    let file = root(&failing);
    assert_eq!(file.write_at(&[2; 1024], 0).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(bytes(&failing, "a"), sectors(2, 1), "half of it");
    file.write_at(&[3; 512], 512).unwrap();
    assert!(file.sync_data().is_err());
    // The next sync does not report the error again, and makes later writes durable.
    file.write_at(&[4; 512], 512).unwrap();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&failing, "a"), [sectors(1, 4), sectors(2, 4)].into());
}
