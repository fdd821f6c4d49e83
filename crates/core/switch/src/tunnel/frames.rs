//! Builds frames within the room of a path.

use super::account::Account;
use crate::aggregate::Aggregate;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use wire::frame::{self, Control, FrameReport, Header, Kind};
use wire::tlp::TraceId;

/// The maximum number of bytes of TLPs in a frame if the path takes `room` bytes; at most `max`.
pub(super) fn tlp_room(room: usize, max: usize) -> usize {
    room.saturating_sub(frame::HEADER).min(max).min(frame::MAX_PAYLOAD)
}

/// The frames of one path that are appended to a buffer.
pub(super) struct Frames<'a> {
    pub out: &'a mut BytesMut,
    /// Length of `out` before the first frame.
    pub start: usize,
    /// Number of the path.
    pub path: usize,
    /// Bytes that the path takes now.
    pub room: usize,
    /// Offset of the first frame in the path's byte stream.
    pub begin: u64,
    /// Sequence number of the frame expected next from the far side.
    pub acknowledged: u32,
    /// Whether to build a single frame, so that the frame gets its own TCP segments.
    pub single: bool,
    pub account: &'a mut Account,
}

impl<'a> Frames<'a> {
    /// A builder that has no frames yet and appends frames to `out`.
    pub(super) fn new(
        out: &'a mut BytesMut,
        path: usize,
        room: usize,
        account: &'a mut Account,
    ) -> Self {
        let start = out.len();
        Self { out, start, path, room, begin: 0, acknowledged: 0, single: false, account }
    }

    /// Number of bytes of the frames built so far.
    pub(super) fn length(&self) -> usize {
        self.out.len() - self.start
    }

    /// The maximum number of bytes of TLPs in the next frame.
    pub(super) fn tlp_room(&self, max: usize) -> usize {
        tlp_room(self.room.saturating_sub(self.length()), max)
    }

    /// Whether no further frame may be built.
    pub(super) fn is_complete(&self) -> bool {
        self.single && self.length() > 0
    }

    /// Builds the queued control frames while there is room, and passes each to `built`. Returns
    /// whether the queue is empty.
    pub(super) fn control(
        &mut self,
        waiting: &mut VecDeque<Control>,
        mut built: impl FnMut(Control),
    ) -> bool {
        while let Some(control) = waiting.front() {
            let start = self.out.len();
            if self.is_complete() {
                break;
            }
            self.out.extend_from_slice(&[0; frame::HEADER]);
            control.encode(self.out);
            if self.length() > self.room {
                self.out.truncate(start);
                break;
            }
            let header = self.finish(start, control.kind(), 0);
            let payload = &self.out[start + frame::HEADER..];
            let reports = &mut self.account.reports;
            let begin = self.begin + (start - self.start) as u64;
            let report = reports.begin(true, header, begin, payload);
            reports.add(self.path, report);
            waiting.pop_front().into_iter().for_each(&mut built);
        }
        waiting.is_empty()
    }

    /// Builds a frame with at most `room` bytes of TLPs from `queue`. If reports are on, returns the
    /// trace ID and length of each TLP.
    pub(super) fn tlps(
        &mut self,
        sequence: u32,
        queue: &mut Aggregate,
        room: usize,
    ) -> Vec<(TraceId, usize)> {
        let start = self.out.len();
        let begin = self.begin + self.length() as u64;
        self.out.reserve(frame::HEADER + room.min(queue.bytes()));
        self.out.extend_from_slice(&[0; frame::HEADER]);
        let header = self.header(0, Kind::Tlps, sequence);
        let mut report = self.account.reports.begin(true, header, begin, &[]);
        let mut trace_ids = Vec::new();
        let tlps = queue.fill(self.out, room, |mark, bytes| {
            if let Some(report) = &mut report {
                report.add_tlp(mark, bytes);
                trace_ids.push((mark, bytes.len()));
            }
        });
        let header = self.finish(start, Kind::Tlps, sequence);
        let report = report.map(|report| FrameReport { header, ..report });
        self.account.reports.add(self.path, report);
        self.account.counters.frames_sent += 1;
        self.account.counters.tlps_sent += tlps as u64;
        trace_ids
    }

    /// A frame of TLPs to send again, with the present acknowledgement.
    pub(super) fn again(
        &mut self,
        sequence: u32,
        payload: &[u8],
        trace_ids: &[(TraceId, usize)],
    ) -> Bytes {
        let header = self.header(payload.len(), Kind::Tlps, sequence);
        let begin = self.begin + self.length() as u64;
        let report = self.account.reports.begin(true, header, begin, &[]);
        let mut rest = payload;
        let report = report.map(|mut report| {
            for (trace_id, length) in trace_ids {
                let (tlp, behind) = rest.split_at(*length);
                report.add_tlp(*trace_id, tlp);
                rest = behind;
            }
            report
        });
        self.account.reports.add(self.path, report);
        self.account.counters.frames_sent_again += 1;
        [&header.encode()[..], payload].concat().into()
    }

    /// Writes the header of the frame that begins at `start`.
    fn finish(&mut self, start: usize, kind: Kind, sequence: u32) -> Header {
        let header = self.header(self.out.len() - start - frame::HEADER, kind, sequence);
        self.out[start..start + frame::HEADER].copy_from_slice(&header.encode());
        header
    }

    fn header(&self, length: usize, kind: Kind, sequence: u32) -> Header {
        Header { length: length as u16, kind, sequence, acknowledged: self.acknowledged }
    }
}
