//! Fetches submission queue entries: up to one arbitration burst per turn of a queue (NVMe 1.4,
//! sections 4.13 and 7.2.1).

use super::{ADMIN_COMMANDS, Controller, Read};
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::Bytes;
use pcie::endpoint::DmaError;
use wire::nvme::register::Doorbell;
use wire::nvme::{Command, SUBMISSION_ENTRY};

/// The class of a queue's commands: 0 for admin commands, 1 for I/O commands.
pub(super) fn class(sq: u16) -> usize {
    usize::from(sq != 0)
}

impl Controller {
    /// Fetches entries while there are entries and resources for their commands.
    pub(super) fn fetch(&mut self, shared: &mut Shared) {
        if self.queues.arbiter.is_empty() || !self.accepts_commands() {
            return;
        }
        let (burst, weights) = (self.features.burst(), self.features.weights());
        self.queues.arbiter.begin();
        while let Some(turn) = self.queues.arbiter.next(burst, weights) {
            let count = self.fetch_turn(shared, turn.queue, turn.limit);
            self.queues.arbiter.end(turn, count, weights);
        }
    }

    /// Executes one turn of a queue. Returns the number of entries that are being fetched.
    fn fetch_turn(&mut self, shared: &mut Shared, id: u16, limit: u16) -> u16 {
        let mut left = limit;
        while left > 0 {
            let count = self.fetch_batch(shared, id, left);
            if count == 0 {
                break;
            }
            left -= count;
        }
        limit - left
    }

    /// Fetches up to `limit` entries in one read. Returns the number of entries.
    fn fetch_batch(&mut self, shared: &mut Shared, id: u16, limit: u16) -> u16 {
        let max = [ADMIN_COMMANDS, self.settings.commands][class(id)];
        // Commands that are carried out again may be more.
        let slots = max.saturating_sub(self.in_flight[class(id)]);
        let queue = self.queues.sq(id).expect("pending queues exist");
        if queue.fetches() >= self.settings.fetches {
            return 0;
        }
        // A parked first command of a fused operation needs a slot and a completion entry too,
        // because it begins with the next fetch.
        let (cq, parked) = (queue.cq, u16::from(queue.is_parked()));
        let room = self.queues.cq(cq).expect("outlives its submission queues").room();
        let room = room.min(u16::MAX.into()) as u16;
        if room <= parked {
            self.look_for_head(cq);
            return 0;
        }
        let queue = self.queues.sq(id).expect("looked at above");
        let slots = slots.min(usize::from(u16::MAX)) as u16;
        let free = room.min(slots).saturating_sub(parked);
        let limit = limit.min(self.settings.fetch_batch).min(free);
        let (address, count) = queue.next_batch(limit);
        if count == 0 {
            return 0;
        }
        let read = self.reads.insert(Read::Entries(id));
        let queue = self.queues.sq_mut(id).expect("looked at above");
        queue.fetching(read, count);
        if parked > 0 {
            queue.unpark();
        }
        if queue.pending() == 0 {
            self.queues.stop_sq(id);
            if id != 0 {
                self.check_shadow(Doorbell::SubmissionTail(id));
            }
        }
        self.queues.cq_mut(cq).expect("looked at above").reserve((count + parked).into());
        self.count_in_flight(shared, id, |in_flight| in_flight + usize::from(count + parked));
        self.endpoint.dma_read(read.as_u64(), address, usize::from(count) * SUBMISSION_ENTRY);
        count
    }

    /// Handles the end of a fetch. A failure sets CSTS.CFS, the only way to report it (section
    /// 9.5).
    pub(super) fn entries_arrived(
        &mut self,
        shared: &mut Shared,
        sq: u16,
        read: Key,
        result: Result<Bytes, DmaError>,
    ) {
        let Some(queue) = self.queues.sq_mut(sq) else { return };
        let Ok(data) = result else { return self.fatal() };
        queue.arrived(read, data);
        while let Some(data) = self.queues.sq_mut(sq).and_then(|queue| queue.take_arrived()) {
            for entry in data.as_chunks::<SUBMISSION_ENTRY>().0 {
                self.take_entry(shared, sq, Command::decode(entry));
            }
        }
        self.park(shared, sq);
    }

    /// Changes the count of commands under way, and the busy state of SMART.
    pub(super) fn count_in_flight(
        &mut self,
        shared: &mut Shared,
        sq: u16,
        change: impl FnOnce(usize) -> usize,
    ) {
        let class = class(sq);
        self.in_flight[class] = change(self.in_flight[class]);
        if class == 1 {
            self.set_busy(shared, self.in_flight[1] > 0);
        }
    }

    /// Whether I/O commands are under way, for SMART.
    pub(super) fn set_busy(&mut self, shared: &mut Shared, busy: bool) {
        if busy != self.busy {
            self.busy = busy;
            shared.health.set_busy(self.now, busy);
        }
    }
}
