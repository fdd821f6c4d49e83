//! What the host node tells about an endpoint before it is offered to a VMM.

use super::config::CONFIG_SIZE;

/// What a BAR decodes (PCI Express Base 4.0, section 7.5.1.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// Memory below 4 GiB.
    Memory32,
    /// Memory anywhere; takes the next BAR register as well.
    Memory64,
    /// I/O ports.
    Io,
}

/// One BAR of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Bytes, a power of two.
    pub size: u64,
    /// What it decodes.
    pub kind: BarKind,
    /// The prefetchable bit.
    pub prefetchable: bool,
}

/// Doorbells that a client may map (`--mmap-doorbells`): stores into this
/// range of a BAR reach the endpoint as writes of double words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedRange {
    /// Which BAR, 0 to 5.
    pub bar: u8,
    /// Byte offset of the range, a multiple of 4096.
    pub offset: u64,
    /// Bytes of the range, a multiple of 4096.
    pub length: u64,
    /// Bytes from the front of the range that are looked at; the rest is
    /// mapped but holds no doorbell. A multiple of 4.
    pub polled: usize,
}

/// An endpoint as the host node enumerated it.
#[derive(Clone, Debug)]
pub struct EndpointInfo {
    /// Configuration space, read after BARs, payload size and memory-space
    /// enable of the far hierarchy have been set. Capabilities are found here;
    /// values are read from the function again whenever the VMM asks.
    pub config: Box<[u8; CONFIG_SIZE]>,
    /// The BARs; a 64-bit one stands at its lower index.
    pub bars: [Option<Bar>; 6],
    /// Doorbells to share, if any.
    pub shared: Option<SharedRange>,
}
