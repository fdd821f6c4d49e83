//! Splits transfers into packets by MPS, MRRS, RCB and the 4 KiB rule, and
//! payloads by byte enables.

use bytes::Bytes;
use wire::Bdf;
use wire::Tag;
use wire::tlp::{MemoryRequest, Packet, Run, Status, Tlp, whole_double_words};

/// The longest run in bytes, about the payload of one frame. No run crosses a multiple of this
/// number.
const MOST_RUN: usize = 64 << 10;

/// The pieces of `length` bytes from `address`, as (address, length in bytes). A piece has at most
/// `max` bytes and ends at a multiple of `max`, except the last piece.
///
/// `max` is a power of two up to 4096, so no piece crosses a 4 KiB boundary (PCIe Base 4.0, section
/// 2.2.7), and pieces of completions end at multiples of the read completion boundary if `max` is a
/// multiple of it (section 2.3.1.1).
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

/// The writes of `data` from `address` on, whose packets are the [`pieces`] of at most `max` bytes.
/// Several pieces form runs.
///
/// # Panics
/// If the range ends above 2^64.
pub fn writes(
    requester: Bdf,
    mut address: u64,
    mut data: Bytes,
    max: usize,
) -> impl Iterator<Item = Tlp> {
    std::iter::from_fn(move || {
        let (_, bytes) = pieces(address, data.len(), max).next()?;
        let request = MemoryRequest::for_bytes(requester, Tag::default(), address, bytes);
        let request = request.expect("pieces obey the 4 KiB rule");
        let chunk = data.len().min(MOST_RUN - (address as usize & (MOST_RUN - 1)));
        let run = if chunk > bytes { Run::of_writes(&request, chunk, max) } else { None };
        let payload = data.split_to(if run.is_some() { chunk } else { bytes });
        let next = address.wrapping_add(payload.len() as u64);
        let payload = whole_double_words(std::mem::replace(&mut address, next), payload);
        Some(Tlp { run, ..Tlp::memory_write(request, payload) })
    })
}

/// The completions of the memory read `read` with its `data`: [`pieces`] of at most `size` bytes,
/// combined into a run if `runs`. They have the read's traffic class and attributes (PCIe Base 4.0,
/// section 2.2.9).
///
/// # Panics
/// If `read` is not a memory read, or requests another number of bytes.
pub fn completions(
    read: &Tlp,
    completer: Bdf,
    size: usize,
    runs: bool,
    mut data: Bytes,
) -> impl Iterator<Item = Tlp> {
    let Packet::MemoryRead(request) = read.packet else { panic!("no memory read") };
    assert_eq!(data.len(), request.byte_count(), "bytes against the request");
    let (tc, attributes) = (read.tc, read.attributes);
    let mut at = request.first_byte();
    std::iter::from_fn(move || {
        let (_, bytes) = pieces(at, data.len(), size).next()?;
        let completion = request.completion(completer, Status::Success, data.len());
        let run = if runs { Run::of_completions(at, data.len(), size) } else { None };
        let payload = data.split_to(if run.is_some() { data.len() } else { bytes });
        let next = at.wrapping_add(payload.len() as u64);
        let payload = whole_double_words(std::mem::replace(&mut at, next), payload);
        Some(Tlp { tc, attributes, data: payload, run, ..Tlp::completion(completion) })
    })
}

/// The contiguous enabled bytes of a write, as (byte offset from the first double word, bytes).
pub fn enabled_runs(request: &MemoryRequest, data: &Bytes) -> impl Iterator<Item = (usize, Bytes)> {
    let (first_be, last_be) = (request.first_be, request.last_be);
    let length = request.length().min(data.len());
    let last = length.saturating_sub(4);
    let enabled = move |i: usize| {
        if i < 4 {
            first_be >> i & 1 != 0
        } else if i >= last {
            last_be >> (i - last) & 1 != 0
        } else {
            true
        }
    };
    let solid = request.is_whole();
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = (next..length).find(|i| enabled(*i))?;
        let end = match solid {
            true => length,
            false => (start..length).find(|i| !enabled(*i)).unwrap_or(length),
        };
        next = end;
        Some((start, data.slice(start..end)))
    })
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
