//! The keeper on a model of a folder, stopped after every step: by the end of the process, which
//! loses nothing, or by a crash of the machine, which loses any part of what is not durable.

use super::folder::Folder;
use super::{Found, Identity, RecordKeeper};
use std::io;
use std::sync::{Arc, Mutex};

const SIZE: u64 = 4096;

/// A record's bytes, and whether they are durable.
type Entry = Option<(Vec<u8>, bool)>;

#[derive(Clone, Debug, Default)]
struct Disk {
    record: Entry,
    new: Entry,
    /// Earlier records that a crash may bring back.
    earlier: Vec<Entry>,
    steps: usize,
    /// The process ends before this step.
    stop: Option<usize>,
    /// These steps fail, as on a full disk.
    failures: [usize; 2],
}

impl Disk {
    fn with(record: Option<Vec<u8>>) -> Self {
        Self { record: record.map(|bytes| (bytes, true)), ..Self::default() }
    }

    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        let stopped = self.stop.is_some_and(|stop| self.steps > stop);
        if stopped || self.failures.contains(&self.steps) {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    /// The disk after the process was killed.
    fn after_kill(&self) -> Self {
        Self::with(self.record.clone().map(|(bytes, _)| bytes))
    }

    /// The possible disks after a crash: the name as before or after each change, and any
    /// beginning of bytes that were not synced.
    fn after_crash(&self) -> Vec<Self> {
        let entries = self.earlier.iter().chain([&self.record]);
        entries
            .flat_map(|entry| match entry {
                None => vec![None],
                Some((bytes, true)) => vec![Some(bytes.clone())],
                Some((bytes, false)) => {
                    (0..=bytes.len()).map(|n| Some(bytes[..n].into())).collect()
                }
            })
            .map(Self::with)
            .collect()
    }
}

#[derive(Clone, Debug)]
struct Model(Arc<Mutex<Disk>>);

impl Model {
    fn change(&self, change: impl FnOnce(&mut Disk)) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        disk.step()?;
        change(&mut disk);
        Ok(())
    }
}

impl Folder for Model {
    fn name(&self) -> String {
        "model".into()
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().record.clone().map(|(bytes, _)| bytes))
    }

    fn write_new(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.change(|disk| disk.new = Some((bytes.to_vec(), false)))
    }

    fn sync_new(&mut self) -> io::Result<()> {
        self.change(|disk| disk.new.as_mut().expect("it was written").1 = true)
    }

    fn rename_new(&mut self) -> io::Result<()> {
        self.change(|disk| {
            let new = disk.new.take();
            disk.earlier.push(std::mem::replace(&mut disk.record, new));
        })
    }

    fn remove(&mut self) -> io::Result<()> {
        self.change(|disk| disk.earlier.push(disk.record.take()))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.change(|disk| disk.earlier.clear())
    }
}

/// How far a node has come.
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

fn open(disk: Arc<Mutex<Disk>>, boot: &str) -> RecordKeeper<Model> {
    let file = Some(Identity { inode: 7, birth: "1.000000002".into() });
    let found = Found { file, length: SIZE, device: false };
    RecordKeeper::open(Model(disk), &found, boot, false).expect("a usable record").0
}

/// The incarnation that a node started now gives to the contents.
fn incarnation(disk: Disk, boot: &str) -> u64 {
    open(Arc::new(Mutex::new(disk)), boot).incarnation()
}

/// A node that starts in boot A, writes and ends, as far as it comes.
fn life(disk: Disk) -> (Disk, u64, Phase) {
    let disk = Arc::new(Mutex::new(disk));
    let mut keeper = open(disk.clone(), "A");
    let mut phase = Phase::Starting;
    let mut run = || -> io::Result<()> {
        keeper.begin(SIZE)?;
        phase = Phase::Serving;
        keeper.mark_dirty()?;
        phase = Phase::Writing;
        // Syncing the data is a step as well.
        disk.lock().unwrap().step()?;
        phase = Phase::Synced;
        keeper.mark_clean()?;
        phase = Phase::Ended;
        Ok(())
    };
    let _ = run();
    let incarnation = keeper.incarnation();
    let disk = disk.lock().unwrap().clone();
    (disk, incarnation, phase)
}

/// No record, a clean one, and that of a process killed while it wrote.
fn beginnings() -> [Disk; 3] {
    let (clean, _, phase) = life(Disk::default());
    assert_eq!(phase, Phase::Ended);
    let marked = |stop| life(Disk { stop: Some(stop), ..Disk::default() });
    let last = (0..).map(marked).take_while(|(_, _, phase)| *phase < Phase::Synced).count();
    [Disk::default(), clean.after_kill(), marked(last).0.after_kill()]
}

#[test]
fn a_kill_at_any_step_keeps_the_incarnation_and_a_crash_never_hides_a_loss() {
    for beginning in beginnings() {
        let before = beginning.record.clone().map(|_| incarnation(beginning.clone(), "A"));
        let was_dirty = before.is_some_and(|b| incarnation(beginning.clone(), "B") != b);
        let (mut stop, mut phases) = (0, Vec::new());
        while phases.last() != Some(&Phase::Ended) {
            let (disk, own, phase) = life(Disk { stop: Some(stop), ..beginning.clone() });
            assert!(before.is_none_or(|before| before == own), "the same process's contents");
            let killed = incarnation(disk.after_kill(), "A");
            assert!(killed == own || phase == Phase::Starting, "killed at step {stop}, {phase:?}");
            for left in disk.after_crash() {
                let after = incarnation(left, "B");
                match phase {
                    Phase::Starting | Phase::Serving if was_dirty => assert_ne!(after, own),
                    Phase::Writing => assert_ne!(after, own, "crashed at step {stop}"),
                    Phase::Ended => assert_eq!(after, own, "nothing was lost"),
                    // Just begun: the record is not being changed.
                    Phase::Serving if phases.last() != Some(&phase) => assert_eq!(after, own),
                    // Nothing was lost, but the record need not show that.
                    Phase::Starting | Phase::Serving | Phase::Synced => {}
                }
            }
            phases.push(phase);
            stop += 1;
        }
        assert!(phases.len() >= 5, "{phases:?}");
    }
}

#[test]
fn steps_that_fail_never_hide_a_loss() {
    // Steps count from 1: none, one or two of them fail.
    let pairs = (0..20).flat_map(|first| (first..20).map(move |second| [first, second]));
    for beginning in beginnings() {
        for failures in pairs.clone() {
            let mut stop = 0;
            loop {
                let plan = Disk { failures, stop: Some(stop), ..beginning.clone() };
                let (disk, own, phase) = life(plan);
                incarnation(disk.after_kill(), "A");
                for left in disk.after_crash() {
                    let after = incarnation(left, "B");
                    assert!(phase != Phase::Writing || after != own, "{failures:?}, {stop}");
                }
                stop += 1;
                if phase == Phase::Ended || stop > 32 {
                    break;
                }
            }
        }
    }
}
