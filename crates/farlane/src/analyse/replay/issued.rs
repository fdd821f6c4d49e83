//! The driver's own record of its commands against what was captured.

use crate::analyse::Command;
use serde::Serialize;
use std::cmp::Ordering;
use wire::nvme::opcode;

/// A command as far as both records know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Issued {
    /// Submission queue; 0 is the admin queue.
    pub queue: u16,
    /// Command identifier.
    pub cid: u16,
    /// Opcode.
    pub opcode: u8,
    /// Namespace identifier.
    pub nsid: u32,
    /// First block and number of blocks of Read, Write and Write Zeroes;
    /// `None` for all others, of which Linux's trace tells no blocks.
    pub blocks: Option<(u64, u32)>,
}

impl From<&Command> for Issued {
    fn from(command: &Command) -> Self {
        let entry = &command.entry;
        let told = [opcode::nvm::READ, opcode::nvm::WRITE, opcode::nvm::WRITE_ZEROES];
        let told = !command.is_admin() && told.contains(&entry.opcode);
        Self {
            queue: command.queue,
            cid: entry.cid,
            opcode: entry.opcode,
            nsid: entry.nsid,
            blocks: told.then(|| (entry.slba(), entry.blocks())),
        }
    }
}

/// What two records do not have in common, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Issued and not captured.
    pub missing: Vec<Issued>,
    /// Captured and not issued.
    pub extra: Vec<Issued>,
}

/// Compares what a driver issued with what was captured, as multisets: the
/// order does not count, how often does.
pub fn compare(
    issued: impl IntoIterator<Item = Issued>,
    captured: impl IntoIterator<Item = Issued>,
) -> Difference {
    let sorted = |mut list: Vec<Issued>| {
        list.sort_unstable();
        list.into_iter().peekable()
    };
    let mut issued = sorted(issued.into_iter().collect());
    let mut captured = sorted(captured.into_iter().collect());
    let mut difference = Difference::default();
    loop {
        let order = match (issued.peek(), captured.peek()) {
            (None, None) => return difference,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        match order {
            Ordering::Less => difference.missing.extend(issued.next()),
            Ordering::Greater => difference.extra.extend(captured.next()),
            Ordering::Equal => {
                issued.next();
                captured.next();
            }
        }
    }
}
