//! The MSI-X table and pending bits that a client sees in a BAR (PCI Express Base 4.0, section
//! 7.7.2).
//!
//! The far function's table belongs to the host node, and contains addresses of the host node's
//! hierarchy. A client's writes to the table are stored in this shadow; only the mask bits have an
//! effect. A vector is not masked at first, although the mask bit reads as 1, because QEMU keeps a
//! copy of the guest's table and never writes this table.

use super::config::MsixCapability;

/// Size of a table entry in bytes.
const ENTRY: usize = 16;

/// A structure of MSI-X in a BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MsixPart {
    /// The table.
    Table,
    /// The pending bits, which are read-only.
    Pending,
}

/// The shadow of the MSI-X table.
#[derive(Debug)]
pub(crate) struct Table {
    capability: Option<MsixCapability>,
    bytes: Vec<u8>,
}

impl Table {
    /// Creates the table after power-on. The table is empty if `capability` is `None`.
    pub(crate) fn new(capability: Option<MsixCapability>) -> Self {
        let mut table = Self { capability, bytes: Vec::new() };
        table.reset();
        table
    }

    /// Returns to the state after a reset: all mask bits are set, and all other bits are 0.
    pub(crate) fn reset(&mut self) {
        let vectors = self.capability.map_or(0, |capability| usize::from(capability.vectors));
        self.bytes = vec![0; vectors * ENTRY];
        for entry in self.bytes.chunks_exact_mut(ENTRY) {
            entry[12] = 1;
        }
    }

    /// The MSI-X structure at byte `offset` of `bar`, and the byte offset in the structure; `None`
    /// if there is no structure at this byte. The second value is the number of bytes from `offset`
    /// on with the same answer.
    pub(crate) fn msix_part(&self, bar: u8, offset: u64) -> (Option<(MsixPart, usize)>, u64) {
        let Some(capability) = self.capability else { return (None, u64::MAX) };
        let table = (capability.table, self.bytes.len() as u64, MsixPart::Table);
        let pending = (capability.pba, self.pending_length(), MsixPart::Pending);
        let mut alike = u64::MAX;
        for ((at_bar, start), length, msix_part) in [table, pending] {
            if at_bar != bar {
                continue;
            }
            if offset < start {
                alike = alike.min(start - offset);
            } else if offset - start < length {
                let at = offset - start;
                return (Some((msix_part, at as usize)), length - at);
            }
        }
        (None, alike)
    }

    /// Size of the pending bits in bytes, a multiple of 8.
    fn pending_length(&self) -> u64 {
        (self.bytes.len() / ENTRY).div_ceil(64) as u64 * 8
    }

    /// Reads bytes of the table from byte `at` on. All bytes must be inside the table.
    pub(crate) fn read(&self, at: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
    }

    /// Writes bytes of the table from byte `at` on. Returns the vectors whose mask byte was
    /// written, and whether each of them is now masked.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> Vec<(u16, bool)> {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        let mut masks = Vec::new();
        for (vector, entry) in self.bytes.chunks_exact_mut(ENTRY).enumerate() {
            // The low address bits, and all bits of Vector Control except the mask bit, are
            // reserved.
            entry[0] &= 0xfc;
            entry[12] &= 1;
            entry[13..16].fill(0);
            let mask_at = vector * ENTRY + 12;
            if at <= mask_at && mask_at < at + bytes.len() {
                masks.push((vector as u16, entry[12] != 0));
            }
        }
        masks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::tests::plain_endpoint;

    #[test]
    fn windows_and_masks() {
        let mut table = Table::new(Config::new(&plain_endpoint()).msix);
        assert_eq!(table.msix_part(0, 0), (None, 0x2000));
        assert_eq!(table.msix_part(0, 0x2010), (Some((MsixPart::Table, 16)), 48));
        assert_eq!(table.msix_part(0, 0x2040), (None, 0xfc0));
        assert_eq!(table.msix_part(0, 0x3000), (Some((MsixPart::Pending, 0)), 8));
        assert_eq!(table.msix_part(0, 0x3008), (None, u64::MAX));
        assert_eq!(table.msix_part(1, 0x2000), (None, u64::MAX));
        let mut entry = [0; 16];
        table.read(16, &mut entry);
        assert_eq!(entry[12], 1);
        assert_eq!(table.write(16, &[0xff; 12]), []);
        assert_eq!(table.write(28, &[0, 0, 0, 0]), [(1, false)]);
        assert_eq!(table.write(12, &[0xff; 20]), [(0, true), (1, true)]);
        table.read(0, &mut entry);
        assert_eq!(entry[12..], [1, 0, 0, 0]);
    }
}
