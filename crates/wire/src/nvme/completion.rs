//! Completion queue entries (section 4.6, figures 120 to 124).

use super::field::{put, u16_at, u32_at};
use super::{COMPLETION_ENTRY, Status};

/// A completion queue entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Dword 0: command specific.
    pub result: u32,
    /// SQ head pointer.
    pub sq_head: u16,
    /// SQ identifier.
    pub sq_id: u16,
    /// Command identifier.
    pub cid: u16,
    /// Phase tag.
    pub phase: bool,
    /// Status field.
    pub status: Status,
}

impl Completion {
    /// From the bytes of an entry.
    pub fn decode(entry: &[u8; COMPLETION_ENTRY]) -> Self {
        let status = u16_at(entry, 14);
        Self {
            result: u32_at(entry, 0),
            sq_head: u16_at(entry, 8),
            sq_id: u16_at(entry, 10),
            cid: u16_at(entry, 12),
            phase: status & 1 != 0,
            status: Status::from_bits(status >> 1),
        }
    }

    /// To the bytes of an entry.
    pub fn encode(&self) -> [u8; COMPLETION_ENTRY] {
        let mut entry = [0; COMPLETION_ENTRY];
        put(&mut entry, 0, self.result.to_le_bytes());
        put(&mut entry, 8, self.sq_head.to_le_bytes());
        put(&mut entry, 10, self.sq_id.to_le_bytes());
        put(&mut entry, 12, self.cid.to_le_bytes());
        let status = self.status.bits() << 1 | u16::from(self.phase);
        put(&mut entry, 14, status.to_le_bytes());
        entry
    }
}

/// Type of an asynchronous event (figure 146).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AsyncEventKind {
    /// 000b, error status.
    Error,
    /// 001b, SMART / health status.
    Health,
    /// 010b, notice.
    Notice,
    /// Any other type.
    Other(u8),
}

/// Dword 0 of an Asynchronous Event Request's completion (figure 146).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncEvent {
    /// Type.
    pub kind: AsyncEventKind,
    /// Information: meaning depends on the type.
    pub information: u8,
    /// The log page that tells more and, when read, rearms the event.
    pub log_page: u8,
}

impl AsyncEvent {
    /// A doorbell was written whose queue does not exist (figure 147).
    pub const INVALID_DOORBELL_REGISTER: Self = Self::error(0);
    /// A doorbell was written with a value its queue does not allow.
    pub const INVALID_DOORBELL_VALUE: Self = Self::error(1);
    /// A persistent failure inside the controller.
    pub const PERSISTENT_INTERNAL_ERROR: Self = Self::error(3);
    /// A temperature crossed its threshold (figure 148).
    pub const TEMPERATURE_THRESHOLD: Self =
        Self { kind: AsyncEventKind::Health, information: 1, log_page: 2 };
    /// The subsystem's reliability is degraded, or its media are read-only
    /// (figure 148).
    pub const RELIABILITY: Self =
        Self { kind: AsyncEventKind::Health, information: 0, log_page: 2 };

    const fn error(information: u8) -> Self {
        Self { kind: AsyncEventKind::Error, information, log_page: 1 }
    }

    /// From dword 0.
    pub const fn from_bits(bits: u32) -> Self {
        let kind = match bits as u8 & 7 {
            0 => AsyncEventKind::Error,
            1 => AsyncEventKind::Health,
            2 => AsyncEventKind::Notice,
            other => AsyncEventKind::Other(other),
        };
        Self { kind, information: (bits >> 8) as u8, log_page: (bits >> 16) as u8 }
    }

    /// As dword 0.
    pub const fn bits(self) -> u32 {
        let kind = match self.kind {
            AsyncEventKind::Error => 0,
            AsyncEventKind::Health => 1,
            AsyncEventKind::Notice => 2,
            AsyncEventKind::Other(other) => other & 7,
        };
        kind as u32 | (self.information as u32) << 8 | (self.log_page as u32) << 16
    }
}
