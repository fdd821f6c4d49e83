//! When preemptable frames are held back.

use wire::{Duration, Instant};

use super::Gates;
use super::track::{END, Row, Track};
use crate::LocalTime;

/// How long before an entry the MAC receives the hold or release request, on the node's clock (IEEE
/// 802.1Q-2022, 12.30.1.2 and 12.30.1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoldAdvance {
    /// Before an entry that holds (holdAdvance): the time in which the MAC ends or preempts a
    /// preemptable frame.
    pub hold: Duration,
    /// Before an entry that releases (releaseAdvance). A hold that would end before it begins does
    /// not take place.
    pub release: Duration,
}

/// Whether preemptable frames are held back, and until when (`None`: for ever).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Preemptable frames may be sent.
    Released {
        /// Start of the next hold.
        until: Option<Instant>,
    },
    /// Preemptable frames may not be sent, and one in transmission is preempted.
    Held {
        /// Time of the next release.
        until: Option<Instant>,
    },
}

impl Hold {
    /// When the state changes next. `None`: never.
    pub const fn until(self) -> Option<Instant> {
        let (Self::Released { until } | Self::Held { until }) = self;
        until
    }
}

impl Gates {
    /// Whether preemptable frames are held back at `now`: MM_CTL.request of IEEE 802.3br-2016,
    /// 99.2.3. A hold begins `advance.hold` before an entry with
    /// [`SetAndHoldMac`](super::Operation::SetAndHoldMac) and ends `advance.release` before the
    /// next entry with [`SetAndReleaseMac`](super::Operation::SetAndReleaseMac), even in a later
    /// cycle. The first cycle of a new list begins in the same state as its later cycles. A list
    /// without these operations never holds.
    pub fn hold_until(&self, now: Instant, advance: &HoldAdvance) -> Hold {
        let row = Row::Hold;
        let track = Track { first: self.list.hold(), later: &self.later, row, detour: None };
        let track = self.with_detour(track);
        let now = self.clock.local(now);
        let instant =
            |at: i64| (at < END.as_ps()).then(|| self.clock.global(LocalTime::from_ps(at)));
        match Spans::new(track, now, advance).next() {
            Some((start, end)) if start <= now.as_ps() => Hold::Held { until: instant(end) },
            Some((start, _)) => Hold::Released { until: instant(start) },
            None => Hold::Released { until: None },
        }
    }
}

/// Searches for the first span of a hold that ends after `from`, in local picoseconds.
struct Spans<'a> {
    track: Track<'a>,
    from: LocalTime,
    hold: i64,
    release: i64,
    found: Option<(i64, i64)>,
}

impl<'a> Spans<'a> {
    fn new(track: Track<'a>, from: LocalTime, advance: &HoldAdvance) -> Self {
        let ps = |time: Duration| i64::try_from(time.as_ps()).unwrap_or(i64::MAX);
        let (hold, release) = (ps(advance.hold), ps(advance.release));
        Self { track, from, hold, release, found: None }
    }

    /// The span, including spans that follow without a pause.
    fn next(mut self) -> Option<(i64, i64)> {
        // The holds of all entries that end before `first` are over.
        let first = self.from.as_ps().saturating_add(self.hold.min(self.release));
        let first = LocalTime::from_ps(first);
        let mut at = first;
        // The windows of two cycles: in one cycle holds may end, and the next one represents all
        // later cycles.
        let mut left = 2 * self.track.last_windows() + 2;
        while let Some((opens, closes)) = self.track.next(at) {
            if !self.add(opens, closes) || closes == END {
                return self.found;
            }
            at = closes;
            if self.track.is_last(at) {
                left -= 1;
                if left == 0 {
                    return self.found.map(|(start, _)| (start, i64::MAX));
                }
            } else if let Some((cycle, passed)) = self.track.repeated(at, first) {
                if let Some((_, end)) = &mut self.found
                    && end.saturating_add(self.release) > at.as_ps() - cycle
                {
                    *end += passed;
                }
                at = LocalTime::from_ps(at.as_ps() + passed);
            }
        }
        self.found
    }

    /// Adds the hold of entries from `opens` to `closes`. Returns whether a later hold may extend
    /// the result.
    fn add(&mut self, opens: LocalTime, closes: LocalTime) -> bool {
        let start = opens.as_ps().saturating_sub(self.hold);
        let end =
            if closes == END { i64::MAX } else { closes.as_ps().saturating_sub(self.release) };
        if self.found.is_some_and(|(_, last)| start > last) {
            return false;
        }
        if end <= start.max(self.from.as_ps()) {
            return true;
        }
        match &mut self.found {
            Some((_, last)) => *last = end.max(*last),
            None => self.found = Some((start, end)),
        }
        true
    }
}
