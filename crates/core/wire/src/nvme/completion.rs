//! Completion queue entries (section 4.6, figures 120 to 124).

use super::{COMPLETION_ENTRY, Status};

layout! {
    decode encode
    /// A completion queue entry.
    #[derive(Default)]
    pub struct Completion: COMPLETION_ENTRY, {
        /// Dword 0: command specific.
        result: u32 = 0,
        /// SQ head pointer.
        sq_head: u16 = 8,
        /// SQ identifier.
        sq_id: u16 = 10,
        /// Command identifier.
        cid: u16 = 12,
        /// Phase tag.
        phase: bool = 14,
        /// Status field.
        status: Status = 14,
    }
}

numbers! {
    /// Type of an asynchronous event (figure 146).
    pub enum AsyncEventKind: 7 {
        /// 000b, error status.
        Error = 0,
        /// 001b, SMART / health status.
        Health = 1,
        /// 010b, notice.
        Notice = 2,
        /// 110b, NVM command set specific.
        Nvm = 6,
    } else {
        /// Any other type.
        Other
    }
}

register! {
    /// Dword 0 of an Asynchronous Event Request's completion (figure 146).
    pub struct AsyncEvent: u32, {
        /// Type.
        kind: AsyncEventKind = [0, 3],
        /// Information: meaning depends on the type.
        information: u8 = [8, 8],
        /// The log page with details; reading it rearms the event.
        log_page: u8 = [16, 8],
    }
}

impl AsyncEvent {
    /// A doorbell was written whose queue does not exist (figure 147).
    pub const INVALID_DOORBELL_REGISTER: Self = Self::error(0);
    /// A doorbell was written with a value that the queue does not allow (figure 147).
    pub const INVALID_DOORBELL_VALUE: Self = Self::error(1);
    /// The controller cannot continue without a reset (figure 147).
    pub const PERSISTENT_INTERNAL_ERROR: Self = Self::error(3);
    /// A temperature crossed its threshold (figure 148).
    pub const TEMPERATURE_THRESHOLD: Self =
        Self { kind: AsyncEventKind::Health, information: 1, log_page: 2 };
    /// The subsystem's reliability is degraded, or its media are read-only (figure 148).
    pub const RELIABILITY: Self =
        Self { kind: AsyncEventKind::Health, information: 0, log_page: 2 };
    /// Identify data of namespaces, or the list of namespaces, have changed (figure 149).
    pub const NAMESPACE_ATTRIBUTE_CHANGED: Self =
        Self { kind: AsyncEventKind::Notice, information: 0, log_page: 4 };

    /// A Reservation Notification log page is available (figure 150).
    pub const RESERVATION_NOTIFICATION: Self =
        Self { kind: AsyncEventKind::Nvm, information: 0, log_page: 0x80 };

    /// A sanitize operation has ended (figure 150).
    pub const SANITIZE_COMPLETED: Self =
        Self { kind: AsyncEventKind::Nvm, information: 1, log_page: 0x81 };

    /// A firmware activation without reset begins (figure 149).
    pub const FIRMWARE_ACTIVATION: Self =
        Self { kind: AsyncEventKind::Notice, information: 1, log_page: 3 };

    /// The access to namespaces through this controller has changed (figure 149).
    pub const NAMESPACE_ACCESS_CHANGED: Self =
        Self { kind: AsyncEventKind::Notice, information: 3, log_page: 0x0c };

    const fn error(information: u8) -> Self {
        Self { kind: AsyncEventKind::Error, information, log_page: 1 }
    }
}
