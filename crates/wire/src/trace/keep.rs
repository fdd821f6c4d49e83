//! How much of each TLP a trace keeps.

use crate::tlp::{Packet, Tlp};

/// Bytes of TLPs at the front that are kept whole: what the host learns of its
/// drives is among them.
const WHOLE: usize = 512 << 10;
/// Payload kept after that of what a device writes: a completion entry, and
/// interrupts are smaller (NVMe 1.4, section 4.6). More would be more memory
/// that is cold when it is written.
const WRITES: usize = 16;

/// The one rule for all traces, by the TLPs recorded so far.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    snap: Option<usize>,
    /// What is left of [`WHOLE`].
    whole: usize,
}

impl Keep {
    /// `snap` bytes of each payload, if that was asked for.
    pub fn new(snap: Option<u16>) -> Self {
        Self { snap: snap.map(usize::from), whole: WHOLE }
    }

    /// Bytes to keep of the payload of the next TLP.
    pub fn payload_of(&mut self, tlp: &Tlp, up: bool) -> usize {
        let keep = self.snap.unwrap_or(match tlp.packet {
            Packet::MemoryWrite(_) if up && self.whole == 0 => WRITES,
            _ => usize::MAX,
        });
        self.whole = self.whole.saturating_sub(tlp.wire_length());
        keep
    }
}
