//! Limits how often an event that peers can cause is reported: a few events one by one, further
//! events only as a count.

use wire::{Duration, Instant};

/// The first interval before the suppressed events are reported.
const SOON: Duration = Duration::from_ms(1_000);
/// The longest interval. Each interval is twice as long as the one before.
const LATE: Duration = Duration::from_ms(600_000);

/// Each interval without suppressed events admits one more event, up to the initial number. After
/// each report of suppressed events, one event passes.
#[derive(Clone, Copy, Debug)]
struct Limiter {
    first: u32,
    window: Option<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    length: Duration,
    /// Number of events that may still pass in this interval.
    left: u32,
    withheld: u64,
}

impl Limiter {
    /// Lets `first` events pass before it counts. With 0 it only counts.
    const fn new(first: u32) -> Self {
        Self { first, window: None }
    }

    /// Whether to report this event; if not, it is counted.
    fn admit(&mut self, now: Instant) -> bool {
        let fresh = Window { since: now, length: SOON, left: self.first, withheld: 0 };
        let window = self.window.get_or_insert(fresh);
        if window.left > 0 {
            window.left -= 1;
            return true;
        }
        window.withheld += 1;
        false
    }

    /// At the end of an interval: the number of suppressed events, and the time in which they
    /// occurred.
    fn rest(&mut self, now: Instant) -> Option<(u64, Duration)> {
        let window = self.window?;
        if now < window.since + window.length {
            return None;
        }
        let next = Window { since: now, length: SOON, left: window.left + 1, withheld: 0 };
        self.window = match window.withheld {
            0 => (next.left < self.first).then_some(next),
            _ => Some(Window {
                left: self.first.min(1),
                length: (window.length + window.length).min(LATE),
                ..next
            }),
        };
        (window.withheld > 0).then(|| (window.withheld, now - window.since))
    }

    /// As [`rest`](Self::rest), but before the interval ends, because no event follows.
    fn end(&mut self, now: Instant) -> Option<(u64, Duration)> {
        let window = self.window.take()?;
        (window.withheld > 0).then(|| (window.withheld, now - window.since))
    }

    /// When to call [`rest`](Self::rest).
    fn timer(&self) -> Option<Instant> {
        self.window.map(|window| window.since + window.length)
    }
}

/// Events that were counted but not reported.
#[derive(Clone, Debug)]
pub struct Suppressed<E> {
    /// The number of events.
    pub count: u64,
    /// The time in which they occurred.
    pub within: Duration,
    /// The last suppressed event.
    pub last: Box<E>,
}

/// Events of several kinds `K`, each with a limiter of its own, so that a flood of one kind
/// does not suppress other kinds. There is one limiter per kind that occurred.
#[derive(Debug)]
pub struct EventLimiter<K, E> {
    /// The kinds that occurred, each with its limiter and its last suppressed event.
    kinds: Vec<(K, Limiter, Option<E>)>,
    more: fn(Suppressed<E>) -> E,
}

impl<K: PartialEq, E> EventLimiter<K, E> {
    /// A limiter without events; `more` makes the event that reports suppressed ones.
    pub const fn new(more: fn(Suppressed<E>) -> E) -> Self {
        Self { kinds: Vec::new(), more }
    }

    /// Passes an event to `emit`, or counts it. `kind` holds the kind of the event and the number
    /// of events of this kind that pass before they are counted. An event without a kind always
    /// passes.
    pub fn pass(
        &mut self,
        now: Instant,
        kind: Option<(K, u32)>,
        event: E,
        emit: &mut impl FnMut(E),
    ) {
        let Some((kind, first)) = kind else { return emit(event) };
        let index = self.kinds.iter().position(|known| known.0 == kind).unwrap_or_else(|| {
            self.kinds.push((kind, Limiter::new(first), None));
            self.kinds.len() - 1
        });
        let (_, limiter, last) = &mut self.kinds[index];
        if limiter.admit(now) { emit(event) } else { *last = Some(event) }
    }

    /// Reports suppressed events whose interval has ended.
    pub fn report_suppressed(&mut self, now: Instant, emit: &mut impl FnMut(E)) {
        self.emit_withheld(|limiter| limiter.rest(now), emit);
    }

    /// Reports all suppressed events now, because no event follows.
    pub fn flush(&mut self, now: Instant, emit: &mut impl FnMut(E)) {
        self.emit_withheld(|limiter| limiter.end(now), emit);
    }

    fn emit_withheld(
        &mut self,
        withheld: impl Fn(&mut Limiter) -> Option<(u64, Duration)>,
        emit: &mut impl FnMut(E),
    ) {
        for (_, limiter, last) in &mut self.kinds {
            if let Some((count, within)) = withheld(limiter)
                && let Some(last) = last.take()
            {
                emit((self.more)(Suppressed { count, within, last: Box::new(last) }));
            }
        }
    }

    /// When to call [`report_suppressed`](Self::report_suppressed).
    pub fn timer(&self) -> Option<Instant> {
        self.kinds.iter().filter_map(|(_, limiter, _)| limiter.timer()).min()
    }
}

impl<E> Suppressed<E> {
    /// One line with the number of further `events`, and the `last` one.
    pub fn line(&self, events: &str, last: &str) -> String {
        let seconds = (self.within.as_ns() as f64 / 1e9).max(1.0);
        format!("{} more {events} in the last {seconds:.0} s, the last: {last}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn rare_events_are_always_reported() {
        let mut limiter = Limiter::new(2);
        for second in 0..100 {
            assert_eq!(limiter.rest(at(second * 1000)), None);
            assert!(limiter.admit(at(second * 1000)), "second {second}");
        }
    }

    #[test]
    fn a_flood_is_reported_now_and_then_and_every_event_counts() {
        let mut limiter = Limiter::new(5);
        let (mut passed, mut counted, mut emitted) = (0, 0, Vec::new());
        // A thousand per second for an hour.
        for ms in 0..3_600_000 {
            if let Some((count, within)) = limiter.rest(at(ms)) {
                counted += count;
                emitted.push((ms, within));
            }
            passed += u64::from(limiter.admit(at(ms)));
        }
        assert_eq!(passed, 5 + 14, "at first, and one after each telling");
        let seconds: Vec<u64> = emitted.iter().map(|(ms, _)| ms / 1000).collect();
        assert_eq!(
            seconds,
            [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1623, 2223, 2823, 3423],
            "ever later, ten minutes at most"
        );
        assert_eq!(emitted[1].1, Duration::from_ms(2_000));
        let late = at(10_000_000);
        let (count, _) = limiter.rest(late).expect("what is left");
        assert_eq!(passed + counted + count, 3_600_000, "none is forgotten");
        // A quiet time.
        assert!(limiter.admit(late) && !limiter.admit(late));
        let later = at(20_000_000);
        assert_eq!(limiter.rest(later).map(|(count, _)| count), Some(1));
        let peace = at(30_000_000);
        assert_eq!(limiter.rest(peace), None);
        let left = (0..5).filter(|_| limiter.admit(peace)).count();
        assert_eq!(left, 2, "one more for the time so far");
    }

    #[test]
    fn a_steady_trickle_is_no_more_than_one_a_second() {
        let mut limiter = Limiter::new(5);
        let passed = (0..100_000).step_by(250).filter(|ms| {
            limiter.rest(at(*ms));
            limiter.admit(at(*ms))
        });
        assert!(passed.count() <= 105);
    }

    #[test]
    fn limiter_is_full_again_after_quiet_seconds() {
        let mut limiter = Limiter::new(3);
        assert!((0..3).all(|_| limiter.admit(at(0))));
        for second in 1..3 {
            assert_eq!(limiter.timer(), Some(at(second * 1000)));
            assert_eq!(limiter.rest(at(second * 1000)), None);
        }
        assert_eq!(limiter.rest(at(3000)), None);
        assert_eq!(limiter.timer(), None);
        assert!((0..3).all(|_| limiter.admit(at(3000))));
    }

    #[test]
    fn a_limit_of_zero_only_counts() {
        let mut limiter = Limiter::new(0);
        for (ms, within) in [(1000, 1000), (3000, 2000)] {
            assert!(!(0..10).any(|_| limiter.admit(at(ms - within))));
            assert_eq!(limiter.timer(), Some(at(ms)));
            assert_eq!(limiter.rest(at(ms - 1)), None);
            assert_eq!(limiter.rest(at(ms)), Some((10, Duration::from_ms(within))));
        }
        assert!(!limiter.admit(at(3000)));
    }

    #[test]
    fn a_flood_of_one_kind_takes_nothing_from_another() {
        #[derive(Debug, PartialEq)]
        enum Event {
            One(u64),
            More(u64, u64, Duration),
        }
        use Event::{More, One};
        let mut kinds = EventLimiter::new(|rest| match *rest.last {
            One(last) => More(rest.count, last, rest.within),
            more => panic!("{more:?}"),
        });
        let mut emitted = Vec::new();
        let mut pass = |kinds: &mut EventLimiter<_, _>, kind, n| {
            kinds.pass(at(n), Some((kind, 3)), One(n), &mut |event| emitted.push(event));
            std::mem::take(&mut emitted)
        };
        let flood: Vec<_> = (0..100).flat_map(|n| pass(&mut kinds, "flood", n)).collect();
        assert_eq!(flood, [One(0), One(1), One(2)]);
        assert_eq!(pass(&mut kinds, "other", 100), [One(100)]);
        assert_eq!(kinds.timer(), Some(at(1000)));
        let mut rest = Vec::new();
        kinds.report_suppressed(at(1000), &mut |event| rest.push(event));
        assert_eq!(rest, [More(97, 99, Duration::from_ms(1_000))]);
        assert_eq!(pass(&mut kinds, "flood", 1001), [One(1001)]);
        assert_eq!(pass(&mut kinds, "flood", 1002), []);
        kinds.flush(at(1500), &mut |event| rest.push(event));
        assert_eq!(rest[1..], [More(1, 1002, Duration::from_ms(500))], "before its time");
    }
}
