//! Events of a drive: commands, media, controller state.

use super::varint::{self, Writer};
use crate::nvme::Status;

/// Identifies a command under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    /// Submission queue; 0 is the admin queue.
    pub queue: u16,
    /// Command identifier.
    pub cid: u16,
}

numbers! {
    /// An operation of the media.
    pub enum MediaOperation: u8 {
        /// Read bytes.
        Read = 1 "read",
        /// Write bytes.
        Write = 2 "write",
        /// Make completed writes durable.
        Flush = 3 "flush",
        /// Make a range read as zeroes.
        WriteZeroes = 4 "write zeroes",
        /// Deallocate a range.
        Discard = 5 "discard",
    }
}

impl MediaOperation {
    /// Whether the operation moves data between host memory and blocks.
    pub const fn moves_blocks(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

numbers! {
    /// A state change of a controller (NVMe 1.4, sections 3.1.5, 3.1.6, 7.3 and 7.6).
    pub enum ControllerState: u8 {
        /// CC.EN was set.
        Enabled = 1 "enabled",
        /// CSTS.RDY was set.
        Ready = 2 "ready",
        /// Controller reset: CC.EN was cleared.
        ControllerReset = 3 "controller reset",
        /// Function level reset.
        FunctionReset = 4 "function level reset",
        /// Hot reset, or the link went down.
        HotReset = 5 "hot reset or link down",
        /// CC.SHN requests a shutdown.
        ShutdownBegun = 6 "shutdown begun",
        /// CSTS.SHST reports that the shutdown is complete.
        ShutdownComplete = 7 "shutdown complete",
        /// CSTS.CFS was set.
        Fatal = 8 "fatal status (CSTS.CFS)",
    }
}

impl ControllerState {
    /// Whether the change is a reset.
    pub const fn is_reset(self) -> bool {
        matches!(self, Self::ControllerReset | Self::FunctionReset | Self::HotReset)
    }
}

/// An event of a drive.
///
/// A command has one media access at a time. A shutdown flushes each namespace once, without a
/// command. Thus command and namespace together identify the access that a begin or an end belongs
/// to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvmeEvent {
    /// A submission queue entry was fetched.
    Fetched {
        /// The command.
        id: CommandId,
        /// The opcode.
        opcode: u8,
        /// The namespace.
        nsid: u32,
    },
    /// A media request began.
    MediaBegun {
        /// The command; `None` if the request belongs to no command.
        id: Option<CommandId>,
        /// The operation.
        operation: MediaOperation,
        /// The namespace.
        nsid: u32,
        /// Offset of the first byte in the namespace, in bytes.
        offset: u64,
        /// Length in bytes.
        length: u64,
    },
    /// A media request ended.
    MediaEnded {
        /// The command; `None` if the request belongs to no command.
        id: Option<CommandId>,
        /// The namespace.
        nsid: u32,
        /// Whether the request succeeded.
        ok: bool,
    },
    /// The completion queue entry was sent to the host.
    Completed {
        /// The command.
        id: CommandId,
        /// The status.
        status: Status,
    },
    /// The controller changed its state.
    State(ControllerState),
}

const FETCHED: u8 = 1;
const MEDIA_BEGUN: u8 = 2;
const MEDIA_ENDED: u8 = 3;
const COMPLETED: u8 = 4;
const STATE: u8 = 5;

impl NvmeEvent {
    /// The maximum number of bytes of an event.
    pub(super) const MAX_LENGTH: usize = 1 + 3 + 3 + 1 + 5 + 2 * varint::MAX_LENGTH;

    pub(super) fn put(&self, out: &mut Writer<'_>) {
        match *self {
            Self::Fetched { id, opcode, nsid } => {
                out.byte(FETCHED);
                put_id(out, Some(id));
                out.byte(opcode);
                out.number(nsid.into());
            }
            Self::MediaBegun { id, operation, nsid, offset, length } => {
                out.byte(MEDIA_BEGUN);
                put_id(out, id);
                out.byte(operation as u8);
                out.number(nsid.into());
                out.number(offset);
                out.number(length);
            }
            Self::MediaEnded { id, nsid, ok } => {
                out.byte(MEDIA_ENDED);
                put_id(out, id);
                out.byte(u8::from(ok));
                out.number(nsid.into());
            }
            Self::Completed { id, status } => {
                out.byte(COMPLETED);
                put_id(out, Some(id));
                out.number(status.bits().into());
            }
            Self::State(state) => {
                out.byte(STATE);
                out.byte(state as u8);
            }
        }
    }

    /// Decodes an event; `None` if it is invalid or unknown.
    pub(super) fn take(mut bytes: &[u8]) -> Option<Self> {
        let from = &mut bytes;
        let event = match byte(from)? {
            FETCHED => {
                let id = id(from)??;
                Self::Fetched { id, opcode: byte(from)?, nsid: number(from)? }
            }
            MEDIA_BEGUN => {
                let (id, code) = (id(from)?, byte(from)?);
                let operation = MediaOperation::from_number(code)?;
                let (nsid, offset) = (number(from)?, varint::take(from)?);
                let length = varint::take(from)?;
                Self::MediaBegun { id, operation, nsid, offset, length }
            }
            MEDIA_ENDED => {
                let (id, ok) = (id(from)?, byte(from)? != 0);
                Self::MediaEnded { id, nsid: number(from)?, ok }
            }
            COMPLETED => {
                let id = id(from)??;
                let bits = number(from).filter(|bits| *bits < 1 << 15)?;
                Self::Completed { id, status: Status::from_bits(bits as u16) }
            }
            STATE => Self::State(ControllerState::from_number(byte(from)?)?),
            _ => return None,
        };
        from.is_empty().then_some(event)
    }
}

/// Appends the queue number plus one (0 means no command) and the command identifier.
fn put_id(out: &mut Writer<'_>, id: Option<CommandId>) {
    let (queue, cid) = id.map_or((0, 0), |id| (u64::from(id.queue) + 1, id.cid.into()));
    out.number(queue);
    out.number(cid);
}

fn id(from: &mut &[u8]) -> Option<Option<CommandId>> {
    let (queue, cid) = (number(from)?, u16::try_from(number(from)?).ok()?);
    let Some(queue) = queue.checked_sub(1) else { return Some(None) };
    Some(Some(CommandId { queue: u16::try_from(queue).ok()?, cid }))
}

fn byte(from: &mut &[u8]) -> Option<u8> {
    let (first, rest) = from.split_first()?;
    *from = rest;
    Some(*first)
}

fn number(from: &mut &[u8]) -> Option<u32> {
    u32::try_from(varint::take(from)?).ok()
}
