//! Series in bounded memory.

use serde::Serialize;

/// Points that are kept; with more of them, each stands for an interval.
pub(super) const MOST_POINTS: usize = 2048;

/// A queue pair at a time. Positions are indices of entries; null where records are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Nanoseconds on the timeline.
    pub at_ns: u64,
    /// Commands outstanding.
    pub outstanding: u64,
    /// The most of them in the interval of the point; the same if it has none.
    pub peak: u64,
    /// Tail of the submission queue: its doorbell.
    pub sq_tail: Option<u32>,
    /// Head of the submission queue: SQHD of the latest completion entry.
    pub sq_head: Option<u32>,
    /// Tail of the completion queue: behind the latest completion entry.
    pub cq_tail: Option<u32>,
    /// Head of the completion queue: its doorbell.
    pub cq_head: Option<u32>,
    /// Phase tag of the latest completion entry.
    pub cq_phase: bool,
}

/// Changes along time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Series {
    /// 0 if every change has a point. Else each point stands for an interval of so many nanoseconds:
    /// it has the time of the first change in it, and all the rest as at its end.
    pub interval_ns: u64,
    /// In the order of time.
    pub points: Vec<Point>,
}

impl Series {
    /// Adds a change. Of changes at one time the last one counts.
    pub(super) fn push(&mut self, point: Point) {
        let point = Point { peak: point.outstanding, ..point };
        match self.points.last_mut() {
            Some(last) if last.at_ns == point.at_ns && self.interval_ns == 0 => *last = point,
            Some(last) if in_one(self.interval_ns, last, &point) => *last = joined(last, &point),
            // What was outstanding before still is when the interval begins.
            Some(last) if self.interval_ns > 0 => {
                let peak = point.peak.max(last.outstanding);
                self.points.push(Point { peak, ..point });
            }
            _ => self.points.push(point),
        }
        if self.points.len() > MOST_POINTS {
            self.thin();
        }
    }

    fn thin(&mut self) {
        let (first, last) = (self.points[0].at_ns, self.points[self.points.len() - 1].at_ns);
        let least = (last - first) / (MOST_POINTS as u64 / 2) + 1;
        self.interval_ns = least.max(self.interval_ns * 2);
        let interval = self.interval_ns;
        self.points.dedup_by(|next, kept| {
            let one = in_one(interval, kept, next);
            if one {
                *kept = joined(kept, next);
            }
            one
        });
    }
}

fn in_one(interval_ns: u64, a: &Point, b: &Point) -> bool {
    interval_ns > 0 && a.at_ns / interval_ns == b.at_ns / interval_ns
}

fn joined(first: &Point, next: &Point) -> Point {
    Point { at_ns: first.at_ns, peak: first.peak.max(next.peak), ..*next }
}
