//! The event that reports to a driver that its controller was reset: an outstanding Asynchronous
//! Event Request that the host node completes in place of the controller (`docs/vfio-user.md`).

use super::controller::Controller;
use follow::Ring;
use std::ops::Range;
use wire::nvme::opcode::admin::ASYNC_EVENT_REQUEST;
use wire::nvme::{AsyncEvent, COMPLETION_ENTRY, Completion};

/// A completion entry for the admin completion queue of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetEvent {
    /// The bus address of the slot.
    pub address: u64,
    /// The entry: type Error, Persistent Internal Error.
    pub entry: [u8; COMPLETION_ENTRY],
}

impl ResetEvent {
    /// Whether a part of the slot is in `range`.
    pub fn is_in(&self, range: &Range<u64>) -> bool {
        let end = self.address + COMPLETION_ENTRY as u64;
        self.address < range.end && range.start < end
    }
}

/// The place of the next entry in the admin completion queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct AdminTail {
    pub slot: u16,
    pub phase: bool,
    /// The first slot that the driver has not freed, from the doorbell.
    pub head: u16,
}

impl AdminTail {
    /// The tail of a queue without entries. Phase tags of the first pass are 1 (section 4.6).
    pub(super) const START: Self = Self { slot: 0, phase: true, head: 0 };

    /// The tail behind an entry at `address`; `None` if the entry is in another slot than the next
    /// one, or has the wrong phase tag.
    pub(super) fn behind(self, address: u64, phase: bool, ring: &Ring) -> Option<Self> {
        let expected = address == ring.address(self.slot) && phase == self.phase;
        let slot = ring.after(self.slot, 1);
        expected.then_some(Self { slot, phase: phase != (slot == 0), ..self })
    }
}

impl Controller {
    /// The completion of an outstanding Asynchronous Event Request; `None` if there is none, or if
    /// the state of the admin queues is not certain.
    pub(super) fn reset_event(&self) -> Option<ResetEvent> {
        let request = self.admin.values().find(|c| c.opcode == ASYNC_EVENT_REQUEST)?;
        let (queue, ring) = (self.queues.submission.get(&0)?, self.queues.completion.get(&0)?);
        // Without it, doorbells of the completion queue may have been missed.
        self.registers.stride?;
        let AdminTail { slot, phase, head } = self.admin_tail?;
        let completion = Completion {
            result: AsyncEvent::PERSISTENT_INTERNAL_ERROR.bits(),
            sq_head: queue.head,
            cid: request.cid,
            phase,
            ..Completion::default()
        };
        // A full queue has one slot free (section 4.1.3).
        (ring.after(slot, 1) != head)
            .then(|| ResetEvent { address: ring.address(slot), entry: completion.encode() })
    }
}
