//! What a tunnel did, for whoever wants to know.

use std::collections::VecDeque;
use wire::frame::{FrameReport, Header};
use wire::tlp::Mark;

/// Reports that wait at most: more than frames fit in what a network brings at
/// once.
const MAX_REPORTS: usize = 1 << 16;

/// Something that a tunnel did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A frame was made, or has come.
    Frame(FrameReport),
    /// The TLP with this mark is forgotten: the link went down, or a reset
    /// came between.
    Dropped(Mark),
}

/// Reports that were not taken yet; off, it costs nothing.
#[derive(Debug, Default)]
pub(super) struct Reports {
    on: bool,
    waiting: VecDeque<Report>,
}

impl Reports {
    pub fn set(&mut self, on: bool) {
        self.on = on;
        self.waiting.clear();
    }

    /// To be filled in and handed to [`add`](Self::add), if anybody wants it.
    pub fn begin(
        &self,
        sent: bool,
        header: Header,
        begin: u64,
        payload: &[u8],
    ) -> Option<FrameReport> {
        self.on.then(|| FrameReport::new(sent, header, begin, payload))
    }

    pub fn add(&mut self, frame: Option<FrameReport>) {
        if let Some(frame) = frame {
            self.push(Report::Frame(frame));
        }
    }

    /// TLPs are forgotten; those without a mark nobody misses.
    pub fn dropped(&mut self, marks: impl Iterator<Item = Mark>) {
        if self.on {
            marks.filter(|mark| *mark != Mark::NONE).for_each(|m| self.push(Report::Dropped(m)));
        }
    }

    fn push(&mut self, report: Report) {
        assert!(self.waiting.len() < MAX_REPORTS, "nobody takes the reports that were asked for");
        self.waiting.push_back(report);
    }

    pub fn pop(&mut self) -> Option<Report> {
        self.waiting.pop_front()
    }
}
