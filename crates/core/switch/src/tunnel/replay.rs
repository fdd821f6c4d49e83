//! Sent frames that the far side has not acknowledged. A session that goes on over another
//! connection sends them again.

use bytes::Bytes;
use std::collections::VecDeque;
use wire::frame::Control;
use wire::tlp::TraceId;

/// The maximum number of bytes that are kept, frame headers included. Beyond, no TLPs leave.
const MAX_BYTES: usize = 4 << 20;
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
    bytes: usize,
    /// Number of entries of `kept` that were sent on the present connection.
    sent: usize,
}

impl Replay {
    /// Whether no further frame of TLPs may be sent before an acknowledgement.
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES || self.kept.len() >= MAX_FRAMES
    }

    /// Keeps what was sent now.
    pub(super) fn keep(&mut self, kept: Kept) {
        debug_assert_eq!(self.sent, self.kept.len(), "new frames follow all older ones");
        if let (Some(last @ Kept::Control(_)), Kept::Control(_)) = (self.kept.back(), &kept) {
            self.bytes -= bytes(last);
            self.kept.pop_back();
        }
        self.bytes += bytes(&kept);
        self.kept.push_back(kept);
        self.sent = self.kept.len();
    }

    /// Forgets the frames with numbers below `expected`, and what was sent before them.
    pub(super) fn acknowledge(&mut self, expected: u32) {
        let is_acknowledged = |kept: &Kept| match kept {
            Kept::Frame { sequence, .. } => {
                expected.wrapping_sub(*sequence).wrapping_sub(1) < 1 << 31
            }
            Kept::Control(_) => false,
        };
        // A Reset or ResetDone is known to have arrived when the frame behind it has.
        let mut count = 0;
        for (at, kept) in self.kept.iter().enumerate() {
            match kept {
                Kept::Frame { .. } if is_acknowledged(kept) => count = at + 1,
                Kept::Frame { .. } => break,
                Kept::Control(_) => {}
            }
        }
        for kept in self.kept.drain(..count) {
            self.bytes -= bytes(&kept);
        }
        self.sent = self.sent.saturating_sub(count);
    }

    /// The trace IDs of the TLPs that wait to be sent again.
    pub(super) fn trace_ids(&self) -> impl Iterator<Item = TraceId> {
        let waits = self.kept.range(self.sent..);
        waits
            .flat_map(|kept| match kept {
                Kept::Frame { trace_ids, .. } => &trace_ids[..],
                Kept::Control(_) => &[],
            })
            .map(|(trace_id, _)| *trace_id)
    }

    /// Sends everything again, on a new connection.
    pub(super) fn rewind(&mut self) {
        self.sent = 0;
    }

    /// The next entry to send again.
    pub(super) fn next(&self) -> Option<&Kept> {
        self.kept.get(self.sent)
    }

    /// Notes that the entry of [`next`](Self::next) was sent.
    pub(super) fn sent(&mut self) {
        self.sent += 1;
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

fn bytes(kept: &Kept) -> usize {
    wire::frame::HEADER + if let Kept::Frame { payload, .. } = kept { payload.len() } else { 4 }
}
