//! The part of a port's timeline that is drawn, as lanes.

use super::named;
use super::words::{WORDS, arrived, span};
use crate::simulate::page::Subject;
use crate::simulate::timeline::{Piece, PortTimeline, Row, Timeline};
use report::lanes::{Band, Course, Kind, Lane, Lanes, Occupied};
use report::time;
use sim::ethernet::frame::PREAMBLE;
use sim::ethernet::port::Config;
use tsn::preemption::MCRC;
use tsn::{Hold, QUEUES};
use wire::{Duration, Instant};

/// Maximum number of drawn changes of a gate or of hold.
const CHANGES: usize = 2000;

/// The part of a timeline that is drawn.
pub(super) struct View<'a> {
    pub subject: &'a Subject<'a>,
    pub port: &'a PortTimeline,
    pub config: &'a Config,
    pub timeline: &'a Timeline,
    pub from: Instant,
    to: Instant,
    /// Whether hold can be in force: the link partner accepts fragments.
    preempts: bool,
}

impl<'a> View<'a> {
    pub fn new(subject: &'a Subject<'_>, port: &'a PortTimeline, timeline: &'a Timeline) -> Self {
        let config = subject.config.network.port(port.place);
        let (from, to) = match &timeline.frame {
            Some(frame) => around(timeline, frame),
            None => (timeline.from, timeline.to),
        };
        let express = config.preemption.map_or(0xff, |preemption| preemption.express);
        let mut pieces = timeline.rows.iter().flat_map(|row| &row.pieces);
        let preempts = express != 0xff
            && pieces.all(|piece| piece.preemptable || express >> piece.class & 1 != 0);
        Self { subject, port, config, timeline, from, to, preempts }
    }

    pub fn lanes(&self) -> Lanes {
        let lanes = (0..QUEUES).rev().filter_map(|class| {
            let row = &self.timeline.rows[class];
            self.uses(row).then(|| self.lane(class, row))
        });
        let mut words = WORDS;
        if self.config.preemption.is_some() {
            words.kinds[0] = "express frame";
        }
        Lanes {
            title: format!("{} along time", named(self.subject, self.port)),
            length: self.ns(self.to),
            lanes: lanes.collect(),
            words,
        }
    }

    /// Returns nanoseconds since the left end, exact to the picosecond.
    fn ns(&self, at: Instant) -> f64 {
        (at.as_ps() as f64 - self.from.as_ps() as f64) / 1e3
    }

    fn sees(&self, piece: &Piece) -> bool {
        piece.end > self.from && piece.start < self.to
    }

    /// Returns whether anything of a class is in the picture.
    fn uses(&self, row: &Row) -> bool {
        let seen = self.levels(row);
        row.pieces.iter().any(|piece| self.sees(piece)) || seen.iter().any(|level| level.1 > 0.0)
    }

    fn lane(&self, class: usize, row: &Row) -> Lane {
        let mut bands = self.gates(class);
        if self.preempts && !self.express(class) {
            bands.extend(self.holds());
        }
        let levels = self.levels(row);
        let queued = levels.iter().any(|level| level.1 > 0.0);
        let bits = |(at, picobits): &(Instant, i128)| (self.ns(*at), *picobits as f64 / 1e12);
        let credit: Vec<_> = row.credit.iter().map(bits).collect();
        let dropped = row.dropped.iter().filter(|(at, _)| (self.from..self.to).contains(at));
        let cross = |(at, frames): &(Instant, u64)| (self.ns(*at), format!("{frames} dropped"));
        let crosses: Vec<_> = dropped.map(cross).collect();
        Lane {
            name: self.heading(class),
            bands,
            boxes: self.boxes(row),
            wait: self.wait(class),
            steps: (queued || !crosses.is_empty()).then_some(Course {
                name: "queue",
                unit: "queued",
                points: levels,
            }),
            crosses,
            line: (!credit.is_empty()).then(|| Course {
                name: "credit",
                unit: "bit",
                points: clip(&credit, self.ns(self.to)),
            }),
        }
    }

    pub fn express(&self, class: usize) -> bool {
        self.config.preemption.is_none_or(|preemption| preemption.express >> class & 1 != 0)
    }

    /// Returns the times at which the gate of a class is open and closed.
    fn gates(&self, class: usize) -> Vec<(f64, f64, Band)> {
        let Some(gates) = &self.config.gates else {
            return vec![(0.0, self.ns(self.to), Band::Open)];
        };
        let mut at = self.from;
        let mut bands = Vec::new();
        while at < self.to && bands.len() < CHANGES {
            let next = gates.next_change(class, at).unwrap_or(self.to).min(self.to);
            let band = if gates.is_open(class, at) { Band::Open } else { Band::Closed };
            bands.push((self.ns(at), self.ns(next), band));
            at = next;
        }
        bands
    }

    /// Returns the times at which preemptable frames are held.
    fn holds(&self) -> Vec<(f64, f64, Band)> {
        let (Some(gates), Some(preemption)) = (&self.config.gates, &self.config.preemption) else {
            return Vec::new();
        };
        let (mut at, mut bands) = (self.from, Vec::new());
        while at < self.to && bands.len() < CHANGES {
            let hold = gates.hold_until(at, &preemption.advance);
            let next = hold.until().unwrap_or(self.to).min(self.to);
            if matches!(hold, Hold::Held { .. }) {
                bands.push((self.ns(at), self.ns(next), Band::Held));
            }
            at = next;
        }
        bands
    }

    /// Returns times and lengths of a queue, from the left end on.
    fn levels(&self, row: &Row) -> Vec<(f64, f64)> {
        let before = row.queue.iter().rev().find(|level| level.0 <= self.from);
        let inside = row.queue.iter().filter(|level| level.0 > self.from && level.0 < self.to);
        let first = before.map(|level| (0.0, level.1 as f64));
        first.into_iter().chain(inside.map(|level| (self.ns(level.0), level.1 as f64))).collect()
    }

    fn wait(&self, class: usize) -> Option<(f64, f64, String)> {
        let frame = self.timeline.frame.as_ref().filter(|frame| frame.class == class)?;
        let start = self.ns(frame.start);
        let waited = frame.waited.as_ps() as f64 / 1e3;
        let words = format!("{} waited {}", self.short(frame), span(frame.waited));
        Some((start - waited, start, words))
    }

    fn boxes(&self, row: &Row) -> Vec<Occupied> {
        let pieces = row.pieces.iter().enumerate().filter(|(_, piece)| self.sees(piece));
        pieces
            .map(|(at, piece)| self.occupied(piece, at.checked_sub(1).map(|at| &row.pieces[at])))
            .collect()
    }

    fn occupied(&self, piece: &Piece, before: Option<&Piece>) -> Occupied {
        let chosen = self.timeline.frame.as_ref().is_some_and(|frame| frame.id == piece.id);
        let kind = match (chosen, piece.preemptable) {
            (true, _) => Kind::Chosen,
            (false, true) => Kind::Interruptible,
            (false, false) => Kind::Whole,
        };
        let overhead = |present: bool, bytes| match present {
            true => self.config.rate.duration(bytes).as_ps() as f64 / 1e3,
            false => 0.0,
        };
        let preamble = overhead(piece.start >= self.from, PREAMBLE);
        let mcrc = overhead(!piece.last && piece.end <= self.to, MCRC);
        let part = match piece.first && piece.last {
            true => format!("{} B", piece.length),
            false => format!("{} of {} B", piece.bytes, piece.length),
        };
        let at = |instant: Instant| time(self.ns(instant).max(0.0));
        Occupied {
            span: (self.ns(piece.start), self.ns(piece.end)),
            overhead: (preamble, mcrc),
            kind,
            name: self.short(piece),
            title: format!(
                "{}: {part}, {} to {}, waited {}",
                self.owner(piece),
                at(piece.start),
                at(piece.end),
                span(piece.waited)
            ),
            since: before.filter(|_| !piece.first).map(|before| self.ns(before.end)),
        }
    }
}

/// Returns a window around a frame, from before its arrival to after its end, with equal margins.
fn around(timeline: &Timeline, frame: &Piece) -> (Instant, Instant) {
    let pieces = timeline.rows[frame.class].pieces.iter();
    let end = pieces.filter(|piece| piece.id == frame.id).map(|piece| piece.end).max();
    let end = end.unwrap_or(frame.end);
    let arrived = arrived(frame);
    let own = frame.end.since(frame.start).as_ps();
    let margin = (end.since(arrived).as_ps() / 4).max(4 * own);
    let from = Instant::from_ps(arrived.as_ps().saturating_sub(margin));
    (from.max(timeline.from), (end + Duration::from_ps(margin)).min(timeline.to))
}

/// Returns the part of a line from 0 to `right`.
fn clip(line: &[(f64, f64)], right: f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for pair in line.windows(2) {
        let ((x, y), (next, end)) = (pair[0], pair[1]);
        if next < 0.0 || x > right {
            continue;
        }
        let at = |place: f64| y + (end - y) * (place - x) / (next - x).max(f64::MIN_POSITIVE);
        if points.is_empty() {
            let left = x.max(0.0);
            points.push((left, at(left)));
        }
        // Two points at one time are a step.
        points.push(if next > right { (right, at(right)) } else { (next, end) });
    }
    points
}

#[test]
fn a_line_is_clipped_and_keeps_its_jumps() {
    let line = [(-10.0, 0.0), (10.0, 20.0), (10.0, 0.0), (30.0, -40.0), (50.0, 0.0)];
    let clipped = [(0.0, 10.0), (10.0, 20.0), (10.0, 0.0), (30.0, -40.0), (40.0, -20.0)];
    assert_eq!(clip(&line, 40.0), clipped);
    assert_eq!(clip(&line, 5.0), [(0.0, 10.0), (5.0, 15.0)]);
    assert_eq!(clip(&[(-5.0, 1.0), (-1.0, 2.0)], 5.0), []);
}
