//! The driver's own record of its commands against what was captured.

use crate::commands::Command;
use serde::Serialize;
use std::collections::BTreeMap;
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
    /// `None` for all others, whose blocks Linux's trace does not have.
    pub blocks: Option<(u64, u32)>,
}

impl From<&Command> for Issued {
    fn from(command: &Command) -> Self {
        let entry = &command.entry;
        let recorded = [opcode::nvm::READ, opcode::nvm::WRITE, opcode::nvm::WRITE_ZEROES];
        let recorded = !command.is_admin() && recorded.contains(&entry.opcode);
        Self {
            queue: command.queue,
            cid: entry.cid,
            opcode: entry.opcode,
            nsid: entry.nsid,
            blocks: recorded.then(|| (entry.slba(), entry.blocks())),
        }
    }
}

/// The differences of two records, sorted.
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
    let mut counts: BTreeMap<Issued, i64> = BTreeMap::new();
    issued.into_iter().for_each(|one| *counts.entry(one).or_default() += 1);
    captured.into_iter().for_each(|one| *counts.entry(one).or_default() -= 1);
    let more = |sign: i64| {
        let times = |(one, count): (&Issued, &i64)| vec![*one; (count * sign).max(0) as usize];
        counts.iter().flat_map(times).collect()
    };
    Difference { missing: more(1), extra: more(-1) }
}
