//! What admin commands do.

use crate::Ring;
use wire::nvme::{Command, cns, opcode::admin};

/// What a successful admin command changes (NVM Express 1.4, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// There is another submission queue.
    CreateSubmission {
        /// Its number.
        id: u16,
        /// Its memory; `None` if it is not contiguous, or if no controller can have it.
        ring: Option<Ring>,
        /// The number of its completion queue.
        completion: u16,
    },
    /// There is another completion queue.
    CreateCompletion {
        /// Its number.
        id: u16,
        /// Its memory; `None` if it is not contiguous, or if no controller can have it.
        ring: Option<Ring>,
        /// Its interrupt vector, if it has interrupts.
        vector: Option<u16>,
    },
    /// A submission queue is gone.
    DeleteSubmission(u16),
    /// A completion queue is gone.
    DeleteCompletion(u16),
    /// Blocks of namespaces may have other sizes.
    Formats,
    /// Namespaces may be attached that were not, or the other way round.
    Attachment,
    /// The data are those of a namespace: Identify, CNS 00h.
    Identify(u32),
    /// Something else.
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
