//! Blocks that a fused operation holds: no other command of any controller reads or changes them
//! during the operation (NVMe 1.4, section 4.12).

use super::Subsystem;
use crate::block;
use crate::controller::{Controller, overlap};
use crate::slots::Key;
use std::ops::Range;

/// The blocks of a fused operation under way. Holds are in the order of creation.
#[derive(Debug)]
pub(crate) struct Hold {
    /// CNTLID of the controller.
    pub controller: u16,
    /// The first and the second command.
    pub pair: [Key; 2],
    pub nsid: u32,
    /// Byte ranges of the data and of the metadata, if any.
    pub ranges: [Range<u64>; 2],
}

impl Subsystem {
    /// The next media request that conflicts with no held blocks.
    pub(super) fn poll_free_block(&mut self, may: &dyn Fn(u16) -> bool) -> Option<block::Request> {
        let controllers = &self.controllers;
        let works =
            |hold: &Hold| controllers[usize::from(hold.controller) - 1].works_on(hold.pair[1]);
        self.shared.holds.retain(works);
        let free = (0..self.controllers.len()).find_map(|at| {
            let id = Some(self.controllers[at].id).filter(|id| may(*id))?;
            let free = |key, request: &_| self.is_free(id, key, request);
            self.controllers[at].find_block(free).map(|index| (at, index))
        });
        let (at, index) = free?;
        self.controllers[at].take_block(index)
    }

    /// Whether a media request may begin: no fused operation holds its blocks. A request of a fused
    /// operation waits only for earlier fused operations, and also for outstanding media requests
    /// on all blocks of its operation, data and metadata together, so that no reset separates data
    /// from metadata.
    fn is_free(&self, controller: u16, command: Option<Key>, request: &block::Request) -> bool {
        let (offset, length) = request.operation.range();
        let range = offset..offset + length;
        let holds = &self.shared.holds;
        let own = holds.iter().position(|hold| {
            hold.controller == controller && command.is_some_and(|key| hold.pair.contains(&key))
        });
        let held = |hold: &Hold| {
            hold.nsid == request.nsid && hold.ranges.iter().any(|held| overlap(held, &range))
        };
        let in_use = |range: &Range<u64>| {
            let except = |one: &Controller| command.filter(|_| one.id == controller);
            self.controllers.iter().any(|one| one.uses(request.nsid, range, except(one)))
        };
        // A flush has an empty range, so it does not wait.
        let waits = own.is_some_and(|at| length > 0 && holds[at].ranges.iter().any(in_use));
        !holds[..own.unwrap_or(holds.len())].iter().any(held) && !waits
    }
}
