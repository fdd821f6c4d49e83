//! Inputs and outputs of a session.

use super::connection::Incoming;
use super::dma::{DmaError, DmaId};
use bytes::Bytes;

/// Identifies an action that must be answered with [`Session::reply`](super::Session::reply).
pub type Token = u64;

/// An action for the host node. The host node executes the actions in order. A `token` identifies
/// the action in the reply. Offsets and sizes are in bytes; `bar` is 0 to 5.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the line above describes the fields")]
pub enum Action {
    /// The client has disconnected; the memory and the interrupts of the client no longer exist.
    /// Reset the function to the state after power-on, but keep the stored data, then reply with no
    /// data. Commands of the next client wait for the reply. MSI-X is off. Earlier DMA ends without
    /// a `DmaDone`.
    ClientGone { token: Token },
    /// Read 1 to 4 bytes of configuration space, within a double word, and reply with the bytes.
    ConfigRead { token: Token, offset: u16, size: u8 },
    /// Write 1 to 4 bytes of configuration space, within a double word, little endian, and reply
    /// with no data.
    ConfigWrite { token: Token, offset: u16, size: u8, value: u32 },
    /// Read 1 to 4096 bytes of a BAR, not across a 4 KiB boundary, and reply with the bytes.
    BarRead { token: Token, bar: u8, offset: u64, length: usize },
    /// Write 1 to 4096 bytes of a BAR, not across a 4 KiB boundary. The write is posted: there is
    /// no reply.
    BarWrite { bar: u8, offset: u64, data: Bytes },
    /// Reset the function, because the client set the FLR bit or sent a VFIO_USER_DEVICE_RESET
    /// (also sent on to an absent function). Restore the BARs and the memory-space enable bit of
    /// the far function, then reply with no data. MSI-X is off after the reset; an `MsixEnable`
    /// follows if the client still uses MSI-X.
    Reset { token: Token },
    /// Enable MSI-X of the far function with all vectors unmasked, or disable
    /// it so that INTx is signalled.
    MsixEnable(bool),
    /// A DMA access that `dma_read` or `dma_write` left pending has ended. The result of a read is
    /// the bytes read; the result of a write is no bytes.
    DmaDone { id: DmaId, result: Result<Bytes, DmaError> },
}

/// An input of a session.
#[derive(Debug)]
pub enum Input {
    /// A client has connected. Before, no client was connected.
    Connected,
    /// A message from the client.
    Message(Incoming),
    /// The client has disconnected.
    Disconnected,
}

/// Counters of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Number of commands that were refused.
    pub refused: u64,
    /// Number of region accesses and resets that were ended at the deadline: reads return all ones,
    /// and the remaining writes are dropped.
    pub timeouts: u64,
    /// Number of writes that were dropped because the function was absent or did not answer.
    pub dropped_writes: u64,
    /// Number of DMA accesses that failed.
    pub dma_faults: u64,
    /// Number of replies that match no request.
    pub stray_replies: u64,
    /// Number of interrupts that were dropped: MSI-X was off, or the client had to be disconnected.
    pub lost_interrupts: u64,
    /// Number of clients that were rejected because another client was connected or no worker was
    /// free.
    pub turned_away: u64,
}
