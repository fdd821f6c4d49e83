//! What goes in and out of a session.

use super::connection::Incoming;
use super::dma::{DmaError, DmaId};
use bytes::Bytes;
use pcie::Reset;

/// Names an action that wants [`Session::reply`](super::Session::reply).
pub type Token = u64;

/// What the host node has to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A client has agreed on a version and will now use the device.
    ClientReady,
    /// The client has gone, and with it its memory and interrupts. Reset the
    /// function to the state after power-on, keep its media, and reply with
    /// no data: nothing of the next client is carried out before that. MSI-X
    /// is off, and no DMA access of before ends with a `DmaDone`.
    ClientGone {
        /// For the reply.
        token: Token,
    },
    /// Read `size` bytes of configuration space, within a double word.
    ConfigRead {
        /// For the reply, with `size` bytes.
        token: Token,
        /// Byte offset.
        offset: u16,
        /// Bytes, 1 to 4.
        size: u8,
    },
    /// Write `size` bytes of configuration space, within a double word.
    ConfigWrite {
        /// For the reply, with no data.
        token: Token,
        /// Byte offset.
        offset: u16,
        /// Bytes, 1 to 4.
        size: u8,
        /// What, little endian.
        value: u32,
    },
    /// Read a BAR.
    BarRead {
        /// For the reply, with `length` bytes.
        token: Token,
        /// Which BAR, 0 to 5.
        bar: u8,
        /// Byte offset.
        offset: u64,
        /// Bytes, 1 to 4096, not across a 4 KiB boundary.
        length: usize,
    },
    /// Write a BAR: posted, nobody waits for it.
    BarWrite {
        /// Which BAR, 0 to 5.
        bar: u8,
        /// Byte offset.
        offset: u64,
        /// The bytes, 1 to 4096, not across a 4 KiB boundary.
        data: Bytes,
    },
    /// Reset the function: `FunctionLevel` if the client set the FLR bit,
    /// `Hot` for a VFIO_USER_DEVICE_RESET, which an absent function gets too.
    /// Restore BARs and memory-space
    /// enable of the far function, then reply with no data. MSI-X is off
    /// afterwards; another `MsixEnable` follows if it is still wanted.
    Reset {
        /// For the reply.
        token: Token,
        /// Which.
        reset: Reset,
    },
    /// Enable MSI-X of the far function with all vectors unmasked, or disable
    /// it so that INTx is signalled.
    MsixEnable(bool),
    /// A DMA access that went by message has ended; no bytes for a write.
    DmaDone {
        /// As returned by `dma_read` and `dma_write`.
        id: DmaId,
        /// A read's bytes.
        result: Result<Bytes, DmaError>,
    },
}

/// How much of the function answers the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// All of it.
    Present,
    /// Configuration space alone. BARs read all ones and writes to them are
    /// dropped and counted: the client sees that the function is there, cannot
    /// use it, and can reset it.
    ConfigOnly,
    /// Nothing: every region reads all ones, writes are dropped and counted.
    Absent,
}

/// What reaches a session.
#[derive(Debug)]
pub enum Input {
    /// A client has connected. There was none.
    Connected,
    /// A message from it.
    Message(Incoming),
    /// It has gone.
    Disconnected,
}

/// What a session has seen go wrong, or has done about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Commands refused.
    pub refused: u64,
    /// Region accesses that were answered with all ones at their deadline.
    pub timeouts: u64,
    /// Writes dropped while the function was absent.
    pub dropped_writes: u64,
    /// DMA accesses that failed.
    pub dma_faults: u64,
    /// Replies to nothing.
    pub stray_replies: u64,
    /// Interrupts for a client that has not enabled them.
    pub lost_interrupts: u64,
    /// Clients turned away because there was one.
    pub turned_away: u64,
}
