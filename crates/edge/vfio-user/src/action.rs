//! Inputs and outputs of a session.

use super::connection::Incoming;
use super::dma::{DmaError, DmaId};
use bytes::Bytes;

/// Identifies an action that needs a [`Session::reply`](super::Session::reply).
pub type Token = u64;

/// An action for the host node, to be executed in order. A `token` identifies it in the reply.
/// Offsets are in bytes; `bar` is 0 to 5.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the line above describes the fields")]
pub enum Action {
    /// The client has disconnected: its memory and interrupts are gone. Reset the function to
    /// its state after power-on, keep its media, and reply with no data; commands of the next
    /// client wait for that. MSI-X is off, and earlier DMA ends without a `DmaDone`.
    ClientGone { token: Token },
    /// Read 1 to 4 bytes of configuration space, within a double word, and reply with the bytes.
    ConfigRead { token: Token, offset: u16, size: u8 },
    /// Write 1 to 4 bytes of configuration space, within a double word, little endian, and reply
    /// with no data.
    ConfigWrite { token: Token, offset: u16, size: u8, value: u32 },
    /// Read 1 to 4096 bytes of a BAR, not across a 4 KiB boundary, and reply with the bytes.
    BarRead { token: Token, bar: u8, offset: u64, length: usize },
    /// Write 1 to 4096 bytes of a BAR, not across a 4 KiB boundary: posted, without a reply.
    BarWrite { bar: u8, offset: u64, data: Bytes },
    /// Reset the function: the client set the FLR bit, or sent a VFIO_USER_DEVICE_RESET, which an
    /// absent function gets too. Restore BARs and memory-space enable of the far function, then
    /// reply with no data. MSI-X is off afterwards; another `MsixEnable` follows if the client
    /// still uses it.
    Reset { token: Token },
    /// Enable MSI-X of the far function with all vectors unmasked, or disable
    /// it so that INTx is signalled.
    MsixEnable(bool),
    /// The DMA access that `dma_read` or `dma_write` left pending has ended: a read's bytes, or no
    /// bytes for a write.
    DmaDone { id: DmaId, result: Result<Bytes, DmaError> },
}

/// An input of a session.
#[derive(Debug)]
pub enum Input {
    /// A client has connected. There was none before.
    Connected,
    /// A message from the client.
    Message(Incoming),
    /// The client has disconnected.
    Disconnected,
}

/// Counters of errors and of their handling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Commands refused.
    pub refused: u64,
    /// Region accesses that were answered with all ones at their deadline.
    pub timeouts: u64,
    /// Writes dropped while the function was absent.
    pub dropped_writes: u64,
    /// DMA accesses that failed.
    pub dma_faults: u64,
    /// Replies without a request.
    pub stray_replies: u64,
    /// Interrupts for a client that has not enabled them.
    pub lost_interrupts: u64,
    /// Clients turned away because another one was connected.
    pub turned_away: u64,
}
