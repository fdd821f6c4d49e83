//! Merging of waiting frames: aggregation in the bridge in front of the bottleneck (J. Suzuki et
//! al., Hot Interconnects 2014, related work, method 2).

use bytes::BytesMut;
use wire::Instant;

use super::super::frame::{Frame, HEADER};
use super::queues::Queues;

/// Merges waiting frames of raw Ethernet with the same addresses and tag into `frame`, up to a
/// payload of `most` bytes. Returns the number of merged frames. The bridge concatenates the
/// payloads without interpreting them; each payload begins with a raw header that has its length.
pub(super) fn merge(
    queues: &mut Queues,
    class: usize,
    now: Instant,
    frame: &mut Frame,
    most: usize,
) -> u64 {
    if !is_raw(frame) {
        return 0;
    }
    let mut bytes = BytesMut::new();
    let mut merged = 0;
    let fits = |next: &Frame, length: usize| {
        is_raw(next)
            && next.bytes[..HEADER] == frame.bytes[..HEADER]
            && (next.tag, next.sequence, next.corrupt) == (frame.tag, None, frame.corrupt)
            && frame.sequence.is_none()
            && length + next.bytes.len() <= 2 * HEADER + most
    };
    while queues
        .head(class)
        .is_some_and(|next| fits(&next.frame, bytes.len().max(frame.bytes.len())))
        && let Some(next) = queues.take(class, now)
    {
        if bytes.is_empty() {
            bytes.extend_from_slice(&frame.bytes);
        }
        bytes.extend_from_slice(&next.frame.bytes[HEADER..]);
        merged += 1;
    }
    if merged > 0 {
        frame.bytes = bytes.freeze();
    }
    merged
}

/// Whether a frame carries farlane's raw transport.
fn is_raw(frame: &Frame) -> bool {
    frame.bytes[HEADER - 2..HEADER] == wire::raw::ETHERTYPE.to_be_bytes()
}
