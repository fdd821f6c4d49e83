//! Time series in bounded memory.

use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of stored points. With more changes, each point stands for an interval.
pub(super) const MOST_POINTS: usize = 2048;

/// A queue pair at one time. Positions are indices of entries; null where records are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "QueuePoint")]
pub struct Point {
    /// Time of the change, or of the first one in the interval.
    pub at_ns: u64,
    /// Commands outstanding, at the end of the interval.
    pub outstanding: u64,
    /// The most commands outstanding in the interval.
    pub peak: u64,
    /// The last value that the host wrote to the tail doorbell; null where records are missing.
    pub sq_tail: Option<u32>,
    /// SQHD of the latest completion entry; null where records are missing.
    pub sq_head: Option<u32>,
    /// The entry after the latest completion entry; null where records are missing.
    pub cq_tail: Option<u32>,
    /// The last value that the host wrote to the head doorbell; null where records are missing.
    pub cq_head: Option<u32>,
    /// Phase tag of the latest completion entry.
    pub cq_phase: bool,
}

/// Changes of a queue over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[schemars(rename = "QueueSeries")]
pub struct Series {
    /// 0 if every change has a point; otherwise the time for which each point stands.
    pub interval_ns: u64,
    /// The points over time, at most 2048.
    pub points: Vec<Point>,
}

impl Series {
    /// Adds a change. Of several changes at one time the last one is kept.
    pub(super) fn push(&mut self, point: Point) {
        let point = Point { peak: point.outstanding, ..point };
        match self.points.last_mut() {
            Some(last) if last.at_ns == point.at_ns && self.interval_ns == 0 => *last = point,
            Some(last) if in_one(self.interval_ns, last, &point) => *last = joined(last, &point),
            // The interval begins with the number that was outstanding before.
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
