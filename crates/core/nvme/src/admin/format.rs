//! Format NVM (NVMe 1.4, section 5.23).
//!
//! The controller first stores the record of the namespace, then deallocates all blocks, so that
//! they read as zeroes. This is the same with and without a secure erase. A loss of power in
//! between leaves the old data.

use super::namespaces::failure;
use crate::block::{Operation, deallocated};
use crate::controller::Controller;
use crate::failure::Failure;
use crate::namespace::{FORMATS, Namespace, block_format};
use crate::plan::{Plan, Step, Steps};
use crate::slots::Key;
use crate::state::Format;
use crate::subsystem::{NamespaceChange, Shared};
use wire::nvme::{BROADCAST_NSID, Command, StatusCode};

/// The largest supported SES: 0, no secure erase, and 1, user data erase. Cryptographic erase (2)
/// is not supported.
const MOST_ERASE: u32 = 1;

impl Controller {
    pub(super) fn format(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let nsids = match command.nsid {
            BROADCAST_NSID => shared.attached(self.id).map(|(nsid, _)| nsid).collect(),
            nsid => shared.namespace(self.id, nsid).map(|_| vec![nsid])?,
        };
        let field = |from: u32, bits: u32| command.cdw10 >> from & ((1 << bits) - 1);
        // LBAF, with the upper bits (LBAFU) of NVMe 2.0.
        let format = (field(0, 4) | field(12, 2) << 4) as usize;
        let invalid = |bit| Failure::at_cdw(StatusCode::INVALID_FORMAT, 10, bit);
        let lba_format = FORMATS.get(format).ok_or(invalid(0))?;
        // PI, MSET and PIL. The fields are checked together with the metadata of the format.
        let (kind, extended, first) = (field(5, 3) as u8, field(4, 1) == 1, field(8, 1) == 1);
        let format = block_format(*lba_format, extended, kind, first).ok_or(invalid(5))?;
        if field(9, 3) > MOST_ERASE {
            return Err(Failure::cdw(10, 9));
        }
        for nsid in &nsids {
            let namespace = shared.namespace(self.id, *nsid)?;
            shared.writable(namespace)?;
            namespace.formatted()?;
            if format.blocks_in(namespace.record.bytes()) == 0 {
                return Err(invalid(0));
            }
        }
        // The check of a restored command was successful before.
        if shared.health.is_busy() && !self.repeats() {
            return Err(Failure::transient(StatusCode::COMMAND_SEQUENCE_ERROR));
        }
        shared.format((self.id, key), command, nsids, format)?;
        Ok(Plan::Wait)
    }

    /// Deallocates the blocks after the new format was stored. The deallocation is durable when the
    /// command ends.
    pub(super) fn format_stored(&mut self, shared: &mut Shared, key: Key, nsids: &[u32]) {
        let erase = |(nsid, namespace): (&u32, &Namespace)| {
            let [zero, discard] = deallocated(0, namespace.record.bytes());
            [zero, discard, Operation::Flush].map(|operation| Step::new(*nsid, operation))
        };
        let formatted = shared.namespaces.iter().filter(|(nsid, _)| nsids.contains(nsid));
        let steps: Steps = formatted.flat_map(erase).collect();
        self.resume_to(shared, key, steps);
    }
}

impl Shared {
    /// Queues the change of records for Format NVM, and marks the namespaces as being formatted.
    fn format(
        &mut self,
        by: (u16, Key),
        command: &Command,
        nsids: Vec<u32>,
        format: Format,
    ) -> Result<(), Failure> {
        let (nsid, command) = (command.nsid, command.cdw10);
        let change = NamespaceChange::Format { nsids: nsids.clone(), format, nsid, command };
        self.change_namespaces(by, change).map_err(failure)?;
        for nsid in nsids {
            self.namespaces.get_mut(&nsid).expect("it was checked").formatting = Some(by);
        }
        Ok(())
    }

    /// Ends the formatting by `command` of this controller, or by every command of this controller
    /// with `None`. Returns whether a namespace was being formatted.
    pub(crate) fn end_format(&mut self, controller: u16, command: Option<Key>) -> bool {
        let mut any = false;
        for namespace in self.namespaces.values_mut() {
            let ended = |(id, key): &mut (u16, Key)| {
                *id == controller && command.is_none_or(|command| command == *key)
            };
            any |= namespace.formatting.take_if(ended).is_some();
        }
        any
    }
}
