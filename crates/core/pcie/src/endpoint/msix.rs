//! The MSI-X table and pending bits (PCIe Base 4.0, section 6.1.4).

/// Bytes per table entry.
pub(super) const ENTRY: usize = 16;

/// Table and pending bit array.
#[derive(Debug)]
pub(super) struct Msix {
    pub table: Vec<u8>,
    pub pending: Vec<u64>,
}

impl Msix {
    pub(super) fn new(vectors: u16) -> Self {
        let mut table = vec![0; usize::from(vectors) * ENTRY];
        for entry in table.chunks_exact_mut(ENTRY) {
            entry[12] = 1; // masked after reset
        }
        Self { table, pending: vec![0; usize::from(vectors).div_ceil(64)] }
    }

    pub(super) fn vectors(&self) -> u16 {
        (self.table.len() / ENTRY) as u16
    }

    /// Address and data of a vector; `None` if it is masked or does not exist.
    pub(super) fn target(&self, vector: u16) -> Option<(u64, [u8; 4])> {
        let entry = self.table.get(usize::from(vector) * ENTRY..)?.get(..ENTRY)?;
        let masked = entry[12] & 1 != 0;
        let address = u64::from_le_bytes(entry[..8].try_into().expect("8 bytes"));
        let data = entry[8..12].try_into().expect("4 bytes");
        (!masked).then_some((address & !3, data))
    }

    pub(super) fn set_pending(&mut self, vector: u16, pending: bool) {
        if let Some(word) = self.pending.get_mut(usize::from(vector / 64)) {
            let bit = 1 << (vector % 64);
            *word = if pending { *word | bit } else { *word & !bit };
        }
    }

    pub(super) fn is_pending(&self, vector: u16) -> bool {
        self.pending.get(usize::from(vector / 64)).is_some_and(|w| w >> (vector % 64) & 1 != 0)
    }

    pub(super) fn any_pending(&self) -> bool {
        self.pending.iter().any(|word| *word != 0)
    }

    /// Reads the table; bytes beyond the table are 0.
    pub(super) fn read_table(&self, offset: u64, out: &mut [u8]) {
        for (i, byte) in out.iter_mut().enumerate() {
            *byte = self.table.get(offset as usize + i).copied().unwrap_or(0);
        }
    }

    /// Reads the pending bits; bytes beyond the array are 0.
    pub(super) fn read_pending(&self, offset: u64, out: &mut [u8]) {
        for (i, byte) in out.iter_mut().enumerate() {
            let at = offset as usize + i;
            *byte = self.pending.get(at / 8).map_or(0, |word| word.to_le_bytes()[at % 8]);
        }
    }

    /// Writes the table; ignores bytes beyond the table.
    pub(super) fn write_table(&mut self, offset: u64, data: &[u8]) {
        for (i, byte) in data.iter().enumerate() {
            let at = offset as usize + i;
            if let Some(place) = self.table.get_mut(at) {
                // Vector Control: only the mask bit exists.
                *place = match at % ENTRY {
                    12 => byte & 1,
                    13..=15 => 0,
                    _ => *byte,
                };
            }
        }
    }
}
