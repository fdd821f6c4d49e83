//! The recorded window of a port.

use super::ring::{Before, Change, Record};
use sim::ethernet::Mac;
use tsn::QUEUES;
use wire::{Duration, Instant};

/// A frame or a fragment on the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The frame's class.
    pub class: usize,
    /// The frame's id.
    pub id: u64,
    /// Sender and receiver of the frame.
    pub addresses: [Mac; 2],
    /// Bytes of the frame, destination address to FCS.
    pub length: usize,
    /// Bytes of the frame in this piece.
    pub bytes: usize,
    /// Time of the preamble's first bit.
    pub start: Instant,
    /// Time at which the last bit of FCS or mCRC has passed.
    pub end: Instant,
    /// Wait of the frame at this port until it started.
    pub waited: Duration,
    /// Whether express frames may interrupt the frame.
    pub preemptable: bool,
    /// Whether this is the first piece of the frame.
    pub first: bool,
    /// Whether this is the last piece of the frame.
    pub last: bool,
}

/// A class within a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Pieces on the line, in order of time.
    pub pieces: Vec<Piece>,
    /// Frames and bytes in the queue, each from a time on. The first entry is for the start of the
    /// window.
    pub queue: Vec<(Instant, usize, usize)>,
    /// Credit in picobits, linear between entries. The first entry is for the start of the window,
    /// if its credit is known.
    pub credit: Vec<(Instant, i128)>,
    /// Frames dropped because the queue was full: time and number.
    pub dropped: Vec<(Instant, u64)>,
}

/// A port within a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Start of the window.
    pub from: Instant,
    /// End of the window.
    pub to: Instant,
    /// First piece of the frame with the longest wait; `None` if the user selected the window.
    pub frame: Option<Piece>,
    /// Records by class.
    pub rows: [Row; QUEUES],
}

impl Row {
    /// Copies the records of one class between two times.
    pub(super) fn within<'a>(
        records: impl Iterator<Item = &'a Record>,
        before: Before,
        from: Instant,
        to: Instant,
    ) -> Self {
        let mut row = Self::default();
        let Before { mut queue, credit } = before;
        row.credit.extend(credit);
        for Record { at, change, .. } in records {
            match change {
                Change::Piece(piece) if piece.end > from && piece.start < to => {
                    row.pieces.push(piece.clone());
                }
                Change::Queue { frames, bytes } if *at <= from => queue = (*frames, *bytes),
                Change::Queue { frames, bytes } if *at < to => {
                    row.queue.push((*at, *frames, *bytes));
                }
                Change::Dropped(frames) if (from..to).contains(at) => {
                    row.dropped.push((*at, *frames));
                }
                Change::Credit(picobits) => row.credit.push((*at, *picobits)),
                _ => {}
            }
        }
        row.queue.insert(0, (from, queue.0, queue.1));
        row.credit = within(&row.credit, from, to);
        row
    }
}

/// Returns the part of a line between two times, with a point at both times if the line reaches
/// them.
fn within(line: &[(Instant, i128)], from: Instant, to: Instant) -> Vec<(Instant, i128)> {
    let cut = |at: Instant| {
        let behind = line.partition_point(|point| point.0 <= at);
        let (a, b) = (line.get(behind.checked_sub(1)?)?, line.get(behind)?);
        let (span, part) = ((b.0 - a.0).as_ps(), (at - a.0).as_ps());
        Some((at, a.1 + (b.1 - a.1) * i128::from(part) / i128::from(span.max(1))))
    };
    let inside = line.iter().filter(|point| (from..=to).contains(&point.0)).copied();
    let start = cut(from).filter(|start| line.iter().all(|point| point.0 != start.0));
    let end = cut(to).filter(|end| line.iter().all(|point| point.0 != end.0));
    start.into_iter().chain(inside).chain(end).collect()
}
