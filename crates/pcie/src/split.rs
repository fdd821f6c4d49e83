//! Splits transfers into packets by MPS, MRRS, RCB and the 4 KiB rule, and
//! payloads by byte enables.

use bytes::Bytes;
use wire::tlp::MemoryRequest;

/// The pieces of `length` bytes from `address`, each at most `max` bytes and
/// ending at a multiple of `max`, as (address, length).
///
/// `max` is a power of two up to 4096, so no piece crosses a 4 KiB boundary
/// (PCIe Base 4.0, section 2.2.7), and pieces of completions end at multiples
/// of the read completion boundary if `max` is one (section 2.3.1.1).
pub fn pieces(address: u64, length: usize, max: usize) -> impl Iterator<Item = (u64, usize)> {
    debug_assert!(max.is_power_of_two() && max <= 4096);
    let mut at = address;
    let mut left = length;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let room = max - (at as usize & (max - 1));
        let piece = (at, room.min(left));
        at = at.wrapping_add(piece.1 as u64);
        left -= piece.1;
        Some(piece)
    })
}

/// The runs of enabled bytes of a write, as (offset from the first double word, bytes).
pub fn enabled_runs(request: &MemoryRequest, data: &Bytes) -> Vec<(usize, Bytes)> {
    let length = request.length().min(data.len());
    let last = length.saturating_sub(4);
    let enabled = |i: usize| {
        if i < 4 {
            request.first_be >> i & 1 != 0
        } else if i >= last {
            request.last_be >> (i - last) & 1 != 0
        } else {
            true
        }
    };
    let solid = |be: u8| be == 0xf;
    if solid(request.first_be) && (request.length_dw == 1 || solid(request.last_be)) {
        return vec![(0, data.slice(..length))];
    }
    let mut runs = Vec::new();
    let mut start = None;
    for i in 0..=length {
        match (start, i < length && enabled(i)) {
            (None, true) => start = Some(i),
            (Some(from), false) => {
                runs.push((from, data.slice(from..i)));
                start = None;
            }
            _ => {}
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_end_at_boundaries() {
        let cut: Vec<_> = pieces(0x10c0, 600, 256).collect();
        assert_eq!(cut, [(0x10c0, 64), (0x1100, 256), (0x1200, 256), (0x1300, 24)]);
    }

    proptest! {
        #[test]
        fn pieces_cover_everything_once(address in 0u64..1 << 48, length in 0usize..20_000, shift in 6u32..=12) {
            let max = 1usize << shift;
            let mut next = address;
            for (at, bytes) in pieces(address, length, max) {
                prop_assert_eq!(at, next);
                prop_assert!(bytes > 0 && bytes <= max);
                prop_assert_eq!(at >> 12, (at + bytes as u64 - 1) >> 12);
                next += bytes as u64;
            }
            prop_assert_eq!(next, address + length as u64);
        }
    }
}
