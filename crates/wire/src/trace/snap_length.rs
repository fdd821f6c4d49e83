//! The snap length: how many payload bytes of each TLP a trace keeps.

use crate::tlp::{Packet, Tlp};

/// A trace keeps this many bytes of TLPs at its start whole. They include the
/// enumeration and the initialisation of the drives.
const UNCUT: usize = 512 << 10;
/// Payload bytes kept of a device's memory write after that: enough for a completion queue entry
/// (NVMe 1.4, section 4.6) or an interrupt. Copying more would cost cache misses.
const MAX_WRITE_PAYLOAD: usize = 16;

/// Decides how many payload bytes to keep. All traces use it.
#[derive(Clone, Copy, Debug)]
pub struct SnapLength {
    snap: Option<usize>,
    /// Bytes left of [`UNCUT`].
    uncut: usize,
}

impl SnapLength {
    /// Keeps `snap` bytes of each payload, or the default if `None`.
    pub fn new(snap: Option<u16>) -> Self {
        Self { snap: snap.map(usize::from), uncut: UNCUT }
    }

    /// Bytes to keep of the payload of the next TLP.
    pub fn payload_of(&mut self, tlp: &Tlp, up: bool) -> usize {
        let keep = self.snap.unwrap_or(match tlp.packet {
            Packet::MemoryWrite(_) if up && self.uncut == 0 => MAX_WRITE_PAYLOAD,
            _ => usize::MAX,
        });
        self.uncut = self.uncut.saturating_sub(tlp.wire_length());
        keep
    }
}
