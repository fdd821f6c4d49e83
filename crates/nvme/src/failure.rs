//! How a command fails: its status, and where the fault lies.

use wire::nvme::{Status, StatusCode};

/// A status other than success, with what the error log says beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub status: Status,
    /// Parameter Error Location (NVMe 1.4, figure 194).
    pub parameter: u16,
}

/// No particular field is at fault.
pub(crate) const NO_PARAMETER: u16 = 0xffff;

impl Failure {
    /// Would fail again; the fault lies in no field.
    pub const fn permanent(code: StatusCode) -> Self {
        Self { status: Status::fail(code), parameter: NO_PARAMETER }
    }

    /// May succeed when sent again.
    pub const fn transient(code: StatusCode) -> Self {
        Self { status: Status::retry(code), parameter: NO_PARAMETER }
    }

    /// Would fail again because of the field at this byte and bit of the
    /// submission queue entry.
    pub const fn field(code: StatusCode, byte: u8, bit: u8) -> Self {
        Self { status: Status::fail(code), parameter: byte as u16 | (bit as u16 & 7) << 8 }
    }

    /// Invalid Field in Command, the fault being in this bit of command dword
    /// `dword` (10 to 15).
    pub const fn cdw(dword: u8, bit: u8) -> Self {
        Self::at_cdw(StatusCode::INVALID_FIELD, dword, bit)
    }

    /// Another code for a fault in a command dword.
    pub const fn at_cdw(code: StatusCode, dword: u8, bit: u8) -> Self {
        Self::field(code, dword * 4 + bit / 8, bit % 8)
    }

    /// PRP Offset Invalid in PRP entry 1 or 2.
    pub const fn prp(entry: u8) -> Self {
        Self::field(StatusCode::INVALID_PRP_OFFSET, 16 + entry * 8, 0)
    }

    /// Invalid Namespace or Format.
    pub const fn namespace() -> Self {
        Self::field(StatusCode::INVALID_NAMESPACE, 4, 0)
    }

    /// Whether the error log keeps it: everything but what the host asked
    /// for itself.
    pub fn is_logged(self) -> bool {
        self.status.code != StatusCode::ABORT_REQUESTED
            && self.status.code != StatusCode::ABORTED_SQ_DELETION
    }
}
