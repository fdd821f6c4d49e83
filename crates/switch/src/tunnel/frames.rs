//! Frames on their way into the room that a path has now.

use super::account::Account;
use crate::aggregate::Aggregate;
use bytes::BytesMut;
use std::collections::VecDeque;
use wire::frame::{self, Control, FrameReport, Header, Kind};

/// Bytes of TLPs in a frame of a path that takes `room` bytes, `most` at most.
pub(super) fn tlp_room(room: usize, most: usize) -> usize {
    room.saturating_sub(frame::HEADER).min(most).min(frame::MAX_PAYLOAD)
}

/// See the module.
pub(super) struct Frames<'a> {
    pub out: &'a mut BytesMut,
    /// Bytes in `out` that are none of them.
    pub start: usize,
    /// Bytes that the path takes.
    pub room: usize,
    /// Bytes that the path was given before.
    pub begin: u64,
    /// The frame that is expected next from the far side.
    pub acknowledged: u32,
    /// A single frame, so that it can have segments of its own.
    pub single: bool,
    pub account: &'a mut Account,
}

impl<'a> Frames<'a> {
    /// None yet, behind what is in `out`.
    pub fn new(out: &'a mut BytesMut, room: usize, account: &'a mut Account) -> Self {
        let start = out.len();
        Self { out, start, room, begin: 0, acknowledged: 0, single: false, account }
    }

    /// Bytes of all frames.
    pub fn length(&self) -> usize {
        self.out.len() - self.start
    }

    /// Bytes of TLPs that the next frame may have.
    pub fn tlp_room(&self, most: usize) -> usize {
        tlp_room(self.room.saturating_sub(self.length()), most)
    }

    /// Whether there is to be no other frame.
    pub fn is_complete(&self) -> bool {
        self.single && self.length() > 0
    }

    /// A frame of each control that waits, while there is room; whether none
    /// is left.
    pub fn control(&mut self, waiting: &mut VecDeque<Control>) -> bool {
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
            reports.add(reports.begin(true, header, begin, payload));
            waiting.pop_front();
        }
        waiting.is_empty()
    }

    /// A frame of what `queue` lets go, with `room` bytes of TLPs at most.
    pub fn tlps(&mut self, sequence: u32, queue: &mut Aggregate, room: usize) {
        let start = self.out.len();
        let begin = self.begin + self.length() as u64;
        self.out.reserve(frame::HEADER + room.min(queue.bytes()));
        self.out.extend_from_slice(&[0; frame::HEADER]);
        let header = self.header(0, Kind::Tlps, sequence);
        let mut report = self.account.reports.begin(true, header, begin, &[]);
        let tlps = queue.fill(self.out, room, |mark, bytes| {
            if let Some(report) = &mut report {
                report.add_tlp(mark, bytes);
            }
        });
        let header = self.finish(start, Kind::Tlps, sequence);
        self.account.reports.add(report.map(|report| FrameReport { header, ..report }));
        self.account.counters.frames_sent += 1;
        self.account.counters.tlps_sent += tlps as u64;
    }

    /// Puts the header of the frame that begins at `start` in its place.
    fn finish(&mut self, start: usize, kind: Kind, sequence: u32) -> Header {
        let header = self.header(self.out.len() - start - frame::HEADER, kind, sequence);
        self.out[start..start + frame::HEADER].copy_from_slice(&header.encode());
        header
    }

    fn header(&self, length: usize, kind: Kind, sequence: u32) -> Header {
        Header { length: length as u16, kind, sequence, acknowledged: self.acknowledged }
    }
}
