//! Comparison of the commands in a driver's own record with the captured commands.

use crate::commands::Command;
use serde::Serialize;
use std::collections::BTreeMap;
use wire::nvme::opcode;

/// A command, with the fields that both records have.
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
    /// First block and number of blocks of Read, Write and Write Zeroes; `None` for other commands,
    /// whose blocks are not in Linux's trace.
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

/// The sorted differences between two records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Commands that were issued but not captured.
    pub missing: Vec<Issued>,
    /// Commands that were captured but not issued.
    pub extra: Vec<Issued>,
}

/// Compares the commands that a driver issued with the captured commands. The order is ignored, the
/// number of equal commands is not.
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
