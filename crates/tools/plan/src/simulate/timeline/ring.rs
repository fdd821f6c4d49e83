//! A ring of a port's latest changes, from which a window is copied.

use super::window::{Piece, Row, Timeline};
use sim::ethernet::port::{Algorithm, Config};
use sim::measure::{PortChange, PortSample};
use std::collections::VecDeque;
use tsn::QUEUES;
use wire::{Duration, Instant};

/// Maximum number of changes in a ring, and in a copy.
pub(super) const MOST: usize = 2000;

/// A change of a class: a sent piece, the length of the queue, the credit in picobits, or the
/// number of dropped frames.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Piece(Piece),
    Queue { frames: usize, bytes: usize },
    Credit(i128),
    Dropped(u64),
}

/// A change with its class and time.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub class: usize,
    pub at: Instant,
    pub change: Change,
}

/// A window to be copied.
#[derive(Clone, Debug)]
struct Wanted {
    from: Instant,
    to: Instant,
    /// Start and wait of the frame.
    frame: Option<(Instant, Duration)>,
}

/// The state before the first stored record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    pub queue: (usize, usize),
    pub credit: Option<(Instant, i128)>,
}

/// The last changes of a port.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// Length of a window around a frame.
    span: Duration,
    /// Bit n: class n has credit.
    shaped: u8,
    records: VecDeque<Record>,
    before: [Before; QUEUES],
    /// Time from which the records are complete.
    complete: Instant,
    /// Latest time at which the credit of each class was sampled.
    seen: [Instant; QUEUES],
    fixed: bool,
    wanted: Option<Wanted>,
    /// The longest wait so far.
    longest: Option<Duration>,
    copy: Option<Timeline>,
}

impl Ring {
    /// Creates a ring for a window of `span` around the longest wait, or from `from` on.
    pub fn new(span: Duration, port: &Config, from: Option<Instant>) -> Self {
        let shaped =
            |class: &usize| matches!(port.classes[*class].algorithm, Algorithm::CreditBased(_));
        Self {
            span,
            shaped: (0..QUEUES).filter(shaped).fold(0, |mask, class| mask | 1 << class),
            records: VecDeque::new(),
            before: [Before::default(); QUEUES],
            complete: Instant::ZERO,
            seen: [Instant::ZERO; QUEUES],
            fixed: from.is_some(),
            wanted: from.map(|from| Wanted { from, to: from + span, frame: None }),
            longest: None,
            copy: None,
        }
    }

    /// Adds the changes at `at`.
    pub fn add(&mut self, at: Instant, sample: &PortSample<'_>) {
        if self.wanted.as_ref().is_some_and(|wanted| self.is_over(wanted, at)) {
            self.take(at);
        }
        let class = sample.class;
        for (at, picobits) in sample.credit {
            self.push(class, *at, Change::Credit(*picobits));
            self.seen[class] = *at;
        }
        match sample.change {
            PortChange::Queue => {}
            PortChange::Dropped(frames) => self.push(class, at, Change::Dropped(frames)),
            PortChange::Started { sent, waited } => {
                let frame = &sent.frame;
                let piece = Piece {
                    class,
                    id: frame.id,
                    addresses: [frame.source(), frame.destination()],
                    length: frame.length(),
                    bytes: frame.length(),
                    start: at,
                    end: sent.end,
                    waited,
                    preemptable: sent.preemptable,
                    first: true,
                    last: true,
                };
                self.push(class, at, Change::Piece(piece));
                self.started(at, waited);
            }
            PortChange::Suspended(suspend) => {
                if let Some(piece) = self.last_piece(class) {
                    (piece.bytes, piece.end, piece.last) = (suspend.bytes, suspend.end, false);
                }
            }
            PortChange::Resumed(resume) => {
                let Some(rest) = self.rest(class) else { return };
                let piece = Piece { start: at, end: resume.end, ..rest };
                self.push(class, at, Change::Piece(piece));
            }
        }
        let (frames, bytes) = (sample.frames, sample.bytes);
        self.push(class, at, Change::Queue { frames, bytes });
        self.trim(at);
    }

    /// Returns the copied window at the end of virtual time; `None` if no window was copied.
    pub fn finish(&mut self, now: Instant) -> Option<Timeline> {
        self.take(now);
        self.copy.clone()
    }

    /// Returns the number of stored changes.
    #[cfg(test)]
    pub fn record_count(&self) -> usize {
        self.records.len()
    }

    fn push(&mut self, class: usize, at: Instant, change: Change) {
        self.records.push_back(Record { class, at, change });
    }

    fn pieces(&mut self, class: usize) -> impl Iterator<Item = &mut Piece> {
        let of_class = self.records.iter_mut().rev().filter(move |record| record.class == class);
        of_class.filter_map(|record| match &mut record.change {
            Change::Piece(piece) => Some(piece),
            _ => None,
        })
    }

    fn last_piece(&mut self, class: usize) -> Option<&mut Piece> {
        self.pieces(class).next()
    }

    /// Returns the remainder of the interrupted frame of `class`, if its pieces are still stored.
    fn rest(&mut self, class: usize) -> Option<Piece> {
        let piece = self.last_piece(class)?.clone();
        let own = self.pieces(class).take_while(|other| other.id == piece.id);
        let sent: usize = own.map(|piece| piece.bytes).sum();
        let bytes = piece.length - sent;
        Some(Piece { bytes, first: false, last: true, ..piece })
    }

    /// Records that a frame has started; selects it if its wait is the longest.
    fn started(&mut self, at: Instant, waited: Duration) {
        if self.fixed || self.longest.is_some_and(|longest| waited <= longest) {
            return;
        }
        self.longest = Some(waited);
        let quarter = Duration::from_ps(self.span.as_ps() / 4);
        let to = at + quarter;
        let from = Instant::from_ps(to.as_ps().saturating_sub(self.span.as_ps()));
        self.wanted = Some(Wanted { from, to, frame: Some((at, waited)) });
    }

    /// Returns whether the whole window was recorded, including the credit at its end. The credit
    /// of a class without frames is not needed.
    fn is_over(&self, wanted: &Wanted, at: Instant) -> bool {
        let mut shaped = (0..QUEUES).filter(|class| self.shaped >> class & 1 != 0);
        let seen = at >= wanted.to && shaped.all(|class| self.seen[class] >= wanted.to);
        // A full ring would soon drop the frame.
        let early = wanted.frame.is_some_and(|(start, _)| {
            self.records.len() >= MOST && self.records[MOST / 4].at > start
        });
        seen || early || at >= wanted.to + self.span
    }

    /// Drops records that no window needs any more.
    fn trim(&mut self, at: Instant) {
        let horizon = Instant::from_ps(at.as_ps().saturating_sub(self.span.as_ps()));
        let horizon = self.wanted.as_ref().map_or(horizon, |wanted| horizon.min(wanted.from));
        while let Some(first) = self.records.front() {
            let over = match &first.change {
                Change::Piece(piece) => piece.end < horizon,
                _ => first.at < horizon,
            };
            let full = self.records.len() > MOST;
            if !over && !full {
                break;
            }
            let Some(Record { class, at, change }) = self.records.pop_front() else { break };
            let mut known = at;
            match change {
                Change::Queue { frames, bytes } => self.before[class].queue = (frames, bytes),
                Change::Credit(picobits) => self.before[class].credit = Some((at, picobits)),
                Change::Piece(piece) => known = piece.end,
                Change::Dropped(_) => {}
            }
            if full {
                self.complete = self.complete.max(known);
            }
        }
    }

    /// Copies the selected window.
    fn take(&mut self, now: Instant) {
        let Some(Wanted { from, to, frame }) = self.wanted.take() else { return };
        let from = from.max(self.complete);
        if from >= now {
            return;
        }
        let to = to.min(now);
        let rows = std::array::from_fn(|class| {
            let records = self.records.iter().filter(|record| record.class == class);
            Row::within(records, self.before[class], from, to)
        });
        let frame = frame.and_then(|frame| {
            self.records.iter().rev().find_map(|record| match &record.change {
                Change::Piece(piece) => {
                    (piece.first && (piece.start, piece.waited) == frame).then(|| piece.clone())
                }
                _ => None,
            })
        });
        self.copy = Some(Timeline { from, to, frame, rows });
    }
}
