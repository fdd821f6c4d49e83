//! The model of a disk: files, folders, and the steps before which a process may end.

use super::content::{Content, Fate};
use super::handles::CrashFolder;
use stats::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

/// The entries of a folder: names with the numbers of files or folders.
type Entries = BTreeMap<String, usize>;
/// One change of a folder: the new target of each name.
type Change = Vec<(String, Option<usize>)>;

/// A file or folder.
#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Content),
    Folder { durable: Entries, changes: Vec<Change>, current: Entries },
}

impl Node {
    pub fn folder() -> Self {
        Self::Folder { durable: Entries::new(), changes: Vec::new(), current: Entries::new() }
    }

    fn crash(&self, random: &mut Random) -> Self {
        match self {
            Self::File(content) => Self::File(content.crash(random)),
            Self::Folder { durable, changes, .. } => {
                let (mut entries, fate) = (durable.clone(), Fate::draw(random));
                for change in changes {
                    if fate == Fate::Kept || (fate == Fate::Torn && random.below(2) == 0) {
                        apply(&mut entries, change);
                    }
                }
                Self::Folder { durable: entries.clone(), changes: Vec::new(), current: entries }
            }
        }
    }
}

pub(super) fn apply(entries: &mut Entries, change: &Change) {
    for (name, node) in change {
        match node {
            Some(node) => drop(entries.insert(name.clone(), *node)),
            None => drop(entries.remove(name)),
        }
    }
}

/// The state that all handles of a disk share.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// Files and folders by number; 0 is the root folder.
    pub nodes: Vec<Node>,
    /// Locks of files: `None` for an exclusive lock, otherwise the number of shared holders.
    pub locks: BTreeMap<usize, Option<usize>>,
    steps: usize,
    stop: Option<usize>,
    failures: BTreeSet<usize>,
    error: ErrorKind,
}

/// The outcome of a step.
pub(super) enum Step {
    Done,
    /// The step fails, after a part of it may have been done.
    Fails(io::Error),
}

impl State {
    /// Counts a step. Error: the process has ended.
    pub fn step(&mut self) -> io::Result<Step> {
        let step = self.steps;
        self.steps += 1;
        if self.stop.is_some_and(|stop| step >= stop) {
            return Err(io::Error::new(ErrorKind::Interrupted, "the process has ended"));
        }
        match self.failures.contains(&step) {
            true => Ok(Step::Fails(self.error.into())),
            false => Ok(Step::Done),
        }
    }

    /// Counts a step that is done completely or fails without effect.
    pub fn whole_step(&mut self) -> io::Result<()> {
        match self.step()? {
            Step::Done => Ok(()),
            Step::Fails(error) => Err(error),
        }
    }

    pub fn content(&mut self, file: usize) -> &mut Content {
        match &mut self.nodes[file] {
            Node::File(content) => content,
            Node::Folder { .. } => unreachable!("only files are opened as files"),
        }
    }

    pub fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

/// A disk. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    /// A disk with an empty root folder.
    pub fn new() -> Self {
        Self::from_nodes(vec![Node::folder()])
    }

    fn from_nodes(nodes: Vec<Node>) -> Self {
        let (locks, failures) = (BTreeMap::new(), BTreeSet::new());
        let error = ErrorKind::StorageFull;
        let state = State { nodes, locks, steps: 0, stop: None, failures, error };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no test panics with the lock")
    }

    /// The root folder of the disk.
    pub fn root(&self) -> CrashFolder {
        CrashFolder::new(self.clone(), 0)
    }

    /// Ends the process before step `step`, counted from 0: this step and all later steps fail.
    pub fn stopping_at(self, step: usize) -> Self {
        self.state().stop = Some(step);
        self
    }

    /// Makes these steps, counted from 0, fail with this error. A failed write writes half of its
    /// bytes. After a failed sync, a later sync succeeds, but does not make the same changes
    /// durable.
    pub fn failing_at(self, steps: &[usize], error: ErrorKind) -> Self {
        let mut state = self.state();
        (state.failures, state.error) = (steps.iter().copied().collect(), error);
        drop(state);
        self
    }

    /// Number of steps so far.
    pub fn steps(&self) -> usize {
        self.state().steps
    }

    /// The disk after the process was killed: no data are lost, but unsynced changes stay unsynced.
    pub fn after_kill(&self) -> Self {
        Self::from_nodes(self.state().nodes.clone())
    }

    /// The disk after the machine crashed.
    pub fn after_crash(&self, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let state = self.state();
        Self::from_nodes(state.nodes.iter().map(|node| node.crash(&mut random)).collect())
    }
}
