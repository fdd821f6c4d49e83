//! Sent frames that the far side has not acknowledged. A session that goes on over another
//! connection sends them again, and a session with two paths may send them on both.

use super::MAX_PATHS;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::frame::Control;
use wire::tlp::TraceId;

/// The maximum number of frames that are kept.
const MAX_FRAMES: usize = 1 << 14;

/// A part of the sent stream that must arrive in order and exactly once.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// A frame of TLPs.
    Frame {
        /// The sequence number.
        sequence: u32,
        /// The TLPs.
        payload: Bytes,
        /// The trace ID and the length in bytes of each TLP. Empty if frames are not reported.
        trace_ids: Vec<(TraceId, usize)>,
    },
    /// A Reset or ResetDone. The far side takes a repeated one as the same one.
    Control(Control),
}

/// The frames of a session that may have to be sent again.
#[derive(Debug, Default)]
pub(super) struct Replay {
    kept: VecDeque<Kept>,
    /// Number of entries that were forgotten.
    forgotten: u64,
    bytes: usize,
    /// Number of entries of `kept` that were sent on each path.
    sent: [usize; MAX_PATHS],
}

impl Replay {
    /// Whether no further frame of TLPs may be sent before an acknowledgement, if up to `most` bytes
    /// are kept.
    pub(super) fn is_full(&self, most: usize) -> bool {
        self.bytes >= most || self.kept.len() >= MAX_FRAMES
    }

    /// Bytes that are kept, frame headers included.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps what was sent now on `path`, after everything that was kept.
    pub(super) fn keep(&mut self, path: usize, kept: Kept) {
        debug_assert_eq!(self.sent[path], self.kept.len(), "new frames follow all older ones");
        if let (Some(Kept::Control(_)), Kept::Control(_)) = (self.kept.back(), &kept) {
            self.forget_last();
        }
        self.bytes += bytes(&kept);
        self.kept.push_back(kept);
        self.sent[path] = self.kept.len();
    }

    fn forget_last(&mut self) {
        if let Some(last) = self.kept.pop_back() {
            self.bytes -= bytes(&last);
        }
        for sent in &mut self.sent {
            *sent = (*sent).min(self.kept.len());
        }
    }

    /// Forgets the frames with numbers below `expected`, and what was sent before them.
    pub(super) fn acknowledge(&mut self, expected: u32) {
        let is_acknowledged =
            |sequence: u32| expected.wrapping_sub(sequence).wrapping_sub(1) < 1 << 31;
        // A Reset or ResetDone is known to have arrived when the frame behind it has.
        let mut count = 0;
        for (at, kept) in self.kept.iter().enumerate() {
            match kept {
                Kept::Frame { sequence, .. } if is_acknowledged(*sequence) => count = at + 1,
                Kept::Frame { .. } => break,
                Kept::Control(_) => {}
            }
        }
        for kept in self.kept.drain(..count) {
            self.bytes -= bytes(&kept);
        }
        self.forgotten += count as u64;
        for sent in &mut self.sent {
            *sent = sent.saturating_sub(count);
        }
    }

    /// The trace IDs of the TLPs that no path has sent, or that are to be sent again.
    pub(super) fn trace_ids(&self) -> impl Iterator<Item = TraceId> {
        let waits = self.kept.range(self.sent.into_iter().max().unwrap_or(0)..);
        waits
            .flat_map(|kept| match kept {
                Kept::Frame { trace_ids, .. } => &trace_ids[..],
                Kept::Control(_) => &[],
            })
            .map(|(trace_id, _)| *trace_id)
    }

    /// Sends everything again on `path`.
    pub(super) fn rewind(&mut self, path: usize) {
        self.sent[path] = 0;
    }

    /// The next entry to send on `path`.
    pub(super) fn next(&self, path: usize) -> Option<&Kept> {
        self.kept.get(self.sent[path])
    }

    /// Notes that the entry of [`next`](Self::next) was sent on `path`.
    pub(super) fn sent(&mut self, path: usize) {
        self.sent[path] += 1;
    }

    /// Whether nothing waits for an acknowledgement.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        let forgotten = self.forgotten + self.kept.len() as u64;
        *self = Self { forgotten, ..Self::default() };
    }

    /// The entries, each with its number. Numbers are never reused for frames.
    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &Kept)> {
        (self.forgotten..).zip(&self.kept)
    }

    /// Keeps what an earlier process has sent.
    pub(super) fn keep_again(&mut self, kept: Kept) {
        self.bytes += bytes(&kept);
        self.kept.push_back(kept);
    }
}

fn bytes(kept: &Kept) -> usize {
    wire::frame::HEADER + if let Kept::Frame { payload, .. } = kept { payload.len() } else { 4 }
}
