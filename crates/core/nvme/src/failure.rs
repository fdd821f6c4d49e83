//! Failures of commands: the status, and the place of the fault.

use wire::nvme::{Status, StatusCode};

/// A status other than success, with the further fields of the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub status: Status,
    /// Parameter Error Location (NVMe 1.4, figure 194).
    pub parameter: u16,
    /// Command Specific Information (figure 194).
    pub specific: u64,
    /// The first LBA with the fault; `None` for the first LBA of the command.
    pub lba: Option<u64>,
    /// Whether the command only tested for an optional function.
    probe: bool,
}

/// The parameter of a failure without a faulty field.
pub(crate) const NO_PARAMETER: u16 = 0xffff;

impl Failure {
    const fn new(status: Status, parameter: u16) -> Self {
        Self { status, parameter, specific: 0, lba: None, probe: false }
    }

    /// Adds Command Specific Information for the error log.
    pub(crate) const fn with(self, specific: u64) -> Self {
        Self { specific, ..self }
    }

    /// Sets the LBA of the fault.
    pub(crate) const fn at_lba(self, lba: u64) -> Self {
        Self { lba: Some(lba), ..self }
    }

    /// Marks the failure of a command that only tested for an optional function.
    pub(crate) const fn of_probe(self) -> Self {
        Self { probe: true, ..self }
    }

    /// A failure that a retry would repeat, without a faulty field.
    pub(crate) const fn permanent(code: StatusCode) -> Self {
        Self::new(Status::fail(code), NO_PARAMETER)
    }

    /// A failure that a retry may avoid.
    pub(crate) const fn transient(code: StatusCode) -> Self {
        Self::new(Status::retry(code), NO_PARAMETER)
    }

    /// A failure that a retry would repeat, because of the field at this byte and bit of the
    /// submission queue entry.
    pub(crate) const fn field(code: StatusCode, byte: u8, bit: u8) -> Self {
        Self::new(Status::fail(code), byte as u16 | (bit as u16 & 7) << 8)
    }

    /// Invalid Field in Command, at this bit of command dword `dword` (10 to 15).
    pub(crate) const fn cdw(dword: u8, bit: u8) -> Self {
        Self::at_cdw(StatusCode::INVALID_FIELD, dword, bit)
    }

    /// A failure with `code`, at this bit of command dword `dword` (10 to 15).
    pub(crate) const fn at_cdw(code: StatusCode, dword: u8, bit: u8) -> Self {
        Self::field(code, dword * 4 + bit / 8, bit % 8)
    }

    /// PRP Offset Invalid in PRP entry 1 or 2.
    pub(crate) const fn prp(entry: u8) -> Self {
        Self::field(StatusCode::INVALID_PRP_OFFSET, 16 + entry * 8, 0)
    }

    /// Invalid Field in Command: PRP entry 2, or an entry of a PRP list, is required but 0.
    pub(crate) const fn prp_missing() -> Self {
        Self::field(StatusCode::INVALID_FIELD, 32, 0)
    }

    /// Invalid Namespace or Format.
    pub(crate) const fn namespace() -> Self {
        Self::field(StatusCode::INVALID_NAMESPACE, 4, 0)
    }

    /// Whether the failure gets an entry in the error log, and the completion the More bit (NVMe
    /// 1.4, section 5.14.1.1). Aborts that a host requested, conflicts with reservations, errors of
    /// the path and tests for optional functions get none.
    pub(crate) fn is_logged(self) -> bool {
        let expected = [
            StatusCode::ABORT_REQUESTED,
            StatusCode::ABORTED_SQ_DELETION,
            StatusCode::ABORTED_PREEMPTED,
            StatusCode::RESERVATION_CONFLICT,
            StatusCode::ASYMMETRIC_ACCESS_INACCESSIBLE,
        ];
        !self.probe && !expected.contains(&self.status.code)
    }
}
