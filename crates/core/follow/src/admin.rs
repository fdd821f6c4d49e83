//! The effects of NVMe admin commands.

use crate::Ring;
use wire::nvme::{Command, cns, opcode::admin};

/// What a successful admin command changes (NVM Express 1.4, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Creates a submission queue.
    CreateSubmission {
        /// Number of the queue.
        id: u16,
        /// Memory of the queue; `None` if it is not contiguous, or not valid for any controller.
        ring: Option<Ring>,
        /// Number of the completion queue.
        completion: u16,
    },
    /// Creates a completion queue.
    CreateCompletion {
        /// Number of the queue.
        id: u16,
        /// Memory of the queue; `None` if it is not contiguous, or not valid for any controller.
        ring: Option<Ring>,
        /// Interrupt vector of the queue, if interrupts are enabled.
        vector: Option<u16>,
    },
    /// Deletes a submission queue.
    DeleteSubmission(u16),
    /// Deletes a completion queue.
    DeleteCompletion(u16),
    /// May change the block size of namespaces.
    Formats,
    /// May attach or detach namespaces.
    Attachment,
    /// Returns the Identify data of this namespace (CNS 00h).
    Identify(u32),
    /// Any other command.
    Other,
}

impl Effect {
    /// The effect of `command`.
    pub fn from_command(command: &Command) -> Self {
        // QID and QSIZE, 0's based, in dword 10; PC in bit 0 of dword 11 (sections 5.3 and 5.4).
        let (id, last) = (command.cdw10 as u16, (command.cdw10 >> 16) as u16);
        let high = (command.cdw11 >> 16) as u16;
        let contiguous = |ring: Ring| ring.possible().filter(|_| id != 0 && command.cdw11 & 1 != 0);
        match command.opcode {
            admin::CREATE_SQ => {
                let ring = contiguous(Ring::submission(command.prp1, last));
                Self::CreateSubmission { id, ring, completion: high }
            }
            admin::CREATE_CQ => {
                let ring = contiguous(Ring::completion(command.prp1, last));
                let vector = (command.cdw11 & 2 != 0).then_some(high);
                Self::CreateCompletion { id, ring, vector }
            }
            admin::DELETE_SQ if id != 0 => Self::DeleteSubmission(id),
            admin::DELETE_CQ if id != 0 => Self::DeleteCompletion(id),
            admin::FORMAT | admin::NAMESPACE_MANAGEMENT => Self::Formats,
            admin::NAMESPACE_ATTACHMENT => Self::Attachment,
            admin::IDENTIFY if command.cdw10 as u8 == cns::NAMESPACE => {
                Self::Identify(command.nsid)
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_that_are_not_contiguous_or_impossible_have_no_ring() {
        let create = |opcode, prp1, cdw10, cdw11| {
            Effect::from_command(&Command { opcode, prp1, cdw10, cdw11, ..Command::default() })
        };
        let submission = |ring| Effect::CreateSubmission { id: 3, ring, completion: 2 };
        let ring = Some(Ring::submission(0x5000, 63));
        assert_eq!(create(admin::CREATE_SQ, 0x5000, 63 << 16 | 3, 2 << 16 | 1), submission(ring));
        assert_eq!(create(admin::CREATE_SQ, 0x5000, 63 << 16 | 3, 2 << 16), submission(None));
        assert_eq!(create(admin::CREATE_SQ, 0x5010, 63 << 16 | 3, 2 << 16 | 1), submission(None));
        assert_eq!(create(admin::CREATE_SQ, 0x5000, 3, 2 << 16 | 1), submission(None));
        let completion = |vector| {
            let ring = Some(Ring::completion(0x6000, 15));
            Effect::CreateCompletion { id: 1, ring, vector }
        };
        let vector = completion(Some(4));
        assert_eq!(create(admin::CREATE_CQ, 0x6000, 15 << 16 | 1, 4 << 16 | 3), vector);
        let none = completion(None);
        assert_eq!(create(admin::CREATE_CQ, 0x6000, 15 << 16 | 1, 4 << 16 | 1), none);
        assert_eq!(create(admin::DELETE_SQ, 0, 0, 0), Effect::Other, "the admin queue");
    }
}
