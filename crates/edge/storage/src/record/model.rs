//! Runs the keeper on a model of a disk, and stops it after every step. The process ends, which
//! loses no data, or the machine crashes, which loses any part of the unsynced data.

use super::{Found, Identity, ImageRecord, RecordKeeper};
use crate::files::crash::Disk;
use crate::files::{Access, Folder};
use std::io::{self, ErrorKind};

const SIZE: u64 = 4096;
/// Number of crashes at each step.
const CRASHES: u64 = 16;

/// The progress of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Starting,
    Serving,
    /// A write was acknowledged.
    Writing,
    /// All data are durable.
    Synced,
    Ended,
}

fn open(disk: &Disk, boot: &str) -> RecordKeeper {
    let file = Some(Identity { inode: 7, birth: "1.000000002".into() });
    let found = Found { file, length: SIZE, device: false };
    let record = ImageRecord::in_folder(Box::new(disk.root()), "record");
    RecordKeeper::open(Box::new(record), &found, boot, false).expect("a usable record").0
}

/// The incarnation that a newly started node gives to the contents.
fn incarnation(disk: &Disk, boot: &str) -> u64 {
    open(disk, boot).incarnation()
}

/// Runs a node that starts in boot A, writes and ends, until the disk stops it. Returns incarnation
/// and progress.
fn life(disk: &Disk) -> (u64, Phase) {
    let mut keeper = open(disk, "A");
    let mut phase = Phase::Starting;
    let mut run = || -> io::Result<()> {
        keeper.begin(SIZE)?;
        phase = Phase::Serving;
        keeper.mark_dirty()?;
        phase = Phase::Writing;
        // The sync of the data is a step too.
        disk.root().open("data", Access::Create)?.sync_data()?;
        phase = Phase::Synced;
        keeper.mark_clean()?;
        phase = Phase::Ended;
        Ok(())
    };
    let _ = run();
    (keeper.incarnation(), phase)
}

/// Initial disks: without a record, with a clean record, and with the record of a process that was
/// killed during writes.
fn beginnings() -> [Disk; 3] {
    let (clean, mut killed) = (Disk::new(), Disk::new());
    assert_eq!(life(&clean).1, Phase::Ended);
    for stop in 0.. {
        let disk = Disk::new().stopping_at(stop);
        if life(&disk).1 > Phase::Writing {
            break;
        }
        killed = disk.after_kill();
    }
    [Disk::new(), clean.after_kill(), killed]
}

/// Possible disks after a crash at this step.
fn crashes(disk: &Disk, step: usize) -> impl Iterator<Item = Disk> {
    let first = step as u64 * CRASHES;
    (first..first + CRASHES).map(|seed| disk.after_crash(seed))
}

#[test]
fn a_kill_at_any_step_keeps_the_incarnation_and_a_crash_never_hides_a_loss() {
    for beginning in beginnings() {
        let kept = beginning.root().open("record", Access::Read).is_ok();
        let before = kept.then(|| incarnation(&beginning, "A"));
        let was_dirty = before.is_some_and(|known| incarnation(&beginning, "B") != known);
        let mut phases = Vec::new();
        while phases.last() != Some(&Phase::Ended) {
            let stop = phases.len();
            let disk = beginning.after_kill().stopping_at(stop);
            let (own, phase) = life(&disk);
            assert!(before.is_none_or(|before| before == own), "the same process's contents");
            let killed = incarnation(&disk.after_kill(), "A");
            assert!(killed == own || phase == Phase::Starting, "killed at step {stop}, {phase:?}");
            for left in crashes(&disk, stop) {
                let after = incarnation(&left, "B");
                match phase {
                    Phase::Starting | Phase::Serving if was_dirty => assert_ne!(after, own),
                    Phase::Writing => assert_ne!(after, own, "crashed at step {stop}"),
                    Phase::Ended => assert_eq!(after, own, "nothing was lost"),
                    // The node has only begun to serve, so the record is unchanged.
                    Phase::Serving if phases.last() != Some(&phase) => assert_eq!(after, own),
                    // No data were lost, but the record may not show this.
                    Phase::Starting | Phase::Serving | Phase::Synced => {}
                }
            }
            phases.push(phase);
        }
        assert!(phases.len() >= 5, "{phases:?}");
    }
}

#[test]
fn steps_that_fail_never_hide_a_loss() {
    // One or two of the steps fail.
    let pairs = (0..20).flat_map(|first| (first..20).map(move |second| [first, second]));
    for beginning in beginnings() {
        for failures in pairs.clone() {
            for stop in 0..32 {
                let disk = beginning.after_kill().stopping_at(stop);
                let disk = disk.failing_at(&failures, ErrorKind::StorageFull);
                let (own, phase) = life(&disk);
                incarnation(&disk.after_kill(), "A");
                for left in crashes(&disk, stop).take(4) {
                    let after = incarnation(&left, "B");
                    assert!(phase != Phase::Writing || after != own, "{failures:?}, {stop}");
                }
                if phase == Phase::Ended {
                    break;
                }
            }
        }
    }
}
