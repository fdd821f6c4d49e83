//! Frames on their way into the room that a path has now.

use super::account::Account;
use crate::aggregate::Aggregate;
use std::collections::VecDeque;
use wire::frame::{self, Control, FrameReport, Header, Kind};

/// Bytes of TLPs in a frame of a path that takes `room` bytes, `most` at most.
pub(super) fn tlp_room(room: usize, most: usize) -> usize {
    room.saturating_sub(frame::HEADER).min(most).min(frame::MAX_PAYLOAD)
}

/// See the module.
pub(super) struct Frames<'a> {
    pub out: &'a mut Vec<u8>,
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

impl Frames<'_> {
    /// Bytes of TLPs that the next frame may have.
    pub fn tlp_room(&self, most: usize) -> usize {
        tlp_room(self.room.saturating_sub(self.out.len()), most)
    }

    /// Whether there is to be no other frame.
    pub fn is_complete(&self) -> bool {
        self.single && !self.out.is_empty()
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
            if self.out.len() > self.room {
                self.out.truncate(start);
                break;
            }
            let header = self.finish(start, control.kind(), 0);
            let payload = &self.out[start + frame::HEADER..];
            let reports = &mut self.account.reports;
            reports.add(reports.begin(true, header, self.begin + start as u64, payload));
            waiting.pop_front();
        }
        waiting.is_empty()
    }

    /// A frame of what `queue` lets go, with `room` bytes of TLPs at most.
    pub fn tlps(&mut self, sequence: u32, queue: &mut Aggregate, room: usize) {
        let start = self.out.len();
        self.out.reserve(frame::HEADER + room.min(queue.bytes()));
        self.out.extend_from_slice(&[0; frame::HEADER]);
        let (header, begin) = (self.header(0, Kind::Tlps, sequence), self.begin + start as u64);
        let mut report = self.account.reports.begin(true, header, begin, &[]);
        let tlps = queue.fill(self.out, room, |mark, bytes| {
            if let Some(report) = &mut report {
                report.carry(mark, bytes);
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
