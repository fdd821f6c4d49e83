//! PRP entries for a contiguous buffer (NVMe 1.4, section 4.3).

/// Size of a memory page in bytes: this driver sets CC.MPS to 0.
pub(super) const PAGE: u64 = 4096;

/// PRP entry 1, PRP entry 2, and the entries of the PRP list, which the caller writes to address
/// `list`.
pub(super) fn entries(buffer: u64, length: u64, list: u64) -> (u64, u64, Vec<u64>) {
    let first = PAGE - buffer % PAGE;
    if length <= first {
        return (buffer, 0, Vec::new());
    }
    let second = buffer + first;
    if length <= first + PAGE {
        return (buffer, second, Vec::new());
    }
    let pages = (length - first).div_ceil(PAGE);
    (buffer, list, (0..pages).map(|page| second + page * PAGE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_two_and_many_pages() {
        assert_eq!(entries(0x1200, 0xe00, 9), (0x1200, 0, vec![]));
        assert_eq!(entries(0x1200, 0xe01, 9), (0x1200, 0x2000, vec![]));
        assert_eq!(entries(0x1200, 0x1e00, 9), (0x1200, 0x2000, vec![]));
        assert_eq!(entries(0x1200, 0x1e01, 9), (0x1200, 9, vec![0x2000, 0x3000]));
    }
}
