//! Reports of a tunnel: its frames and dropped TLPs.

use std::collections::VecDeque;
use wire::frame::{FrameReport, Header};
use wire::tlp::TraceId;

/// The maximum number of queued reports. One input from the network causes fewer.
const MAX_REPORTS: usize = 1 << 16;

/// A report of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A frame was sent or received over this path. The bytes of a sent frame may leave later.
    Frame(usize, FrameReport),
    /// The TLP with this trace ID was dropped by link down or reset.
    Dropped(TraceId),
}

/// The queue of reports; collects nothing while off.
#[derive(Debug, Default)]
pub(super) struct Reports {
    on: bool,
    waiting: VecDeque<Report>,
}

impl Reports {
    pub(super) fn set(&mut self, on: bool) {
        self.on = on;
        self.waiting.clear();
    }

    /// A frame report, to be completed and passed to [`add`](Self::add); `None` if reports are off.
    pub(super) fn begin(
        &self,
        sent: bool,
        header: Header,
        begin: u64,
        payload: &[u8],
    ) -> Option<FrameReport> {
        self.on.then(|| FrameReport::new(sent, header, begin, payload))
    }

    pub(super) fn add(&mut self, path: usize, frame: Option<FrameReport>) {
        if let Some(frame) = frame {
            self.push(Report::Frame(path, frame));
        }
    }

    /// Reports dropped TLPs that have trace IDs.
    pub(super) fn dropped(&mut self, trace_ids: impl Iterator<Item = TraceId>) {
        if self.on {
            trace_ids
                .filter(|trace_id| *trace_id != TraceId::NONE)
                .for_each(|m| self.push(Report::Dropped(m)));
        }
    }

    fn push(&mut self, report: Report) {
        assert!(
            self.waiting.len() < MAX_REPORTS,
            "the owner does not poll the reports that it enabled"
        );
        self.waiting.push_back(report);
    }

    pub(super) fn pop(&mut self) -> Option<Report> {
        self.waiting.pop_front()
    }
}
