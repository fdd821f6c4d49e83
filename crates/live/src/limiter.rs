//! How often something that others can cause is said: the first few times, and
//! from then on only how often it happened.

use wire::{Duration, Instant};

/// Until the rest is told for the first time.
const SOON: Duration = Duration::from_ms(1_000);
/// The longest between two tellings; each is twice as long as the one before.
const LATE: Duration = Duration::from_ms(600_000);

/// See the module. With every second in which nothing is withheld it lets one
/// more through, as many as at first in the end. However much it withholds, one
/// is said after each telling of the rest.
#[derive(Clone, Copy, Debug)]
pub struct Limiter {
    first: u32,
    window: Option<Window>,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    since: Instant,
    length: Duration,
    /// How many may still be said in it.
    left: u32,
    withheld: u64,
}

impl Limiter {
    /// Lets `first` through before it counts. With 0 it says nothing, and only
    /// counts.
    pub const fn new(first: u32) -> Self {
        Self { first, window: None }
    }

    /// Whether to say what happens now; if not, it is counted.
    pub fn admit(&mut self, now: Instant) -> bool {
        let fresh = Window { since: now, length: SOON, left: self.first, withheld: 0 };
        let window = self.window.get_or_insert(fresh);
        if window.left > 0 {
            window.left -= 1;
            return true;
        }
        window.withheld += 1;
        false
    }

    /// When it is time to tell of the rest: how often it was withheld, and in
    /// how long.
    pub fn rest(&mut self, now: Instant) -> Option<(u64, Duration)> {
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

    /// As [`rest`](Self::rest), before it is time, for nothing comes after it.
    pub fn end(&mut self, now: Instant) -> Option<(u64, Duration)> {
        let window = self.window.take()?;
        (window.withheld > 0).then(|| (window.withheld, now - window.since))
    }

    /// When to ask for the [`rest`](Self::rest).
    pub fn timer(&self) -> Option<Instant> {
        self.window.map(|window| window.since + window.length)
    }
}

/// Events of one kind, and what is kept of those that are not told.
#[derive(Debug)]
pub struct Lines<E> {
    limiter: Limiter,
    last: Option<E>,
}

/// What was not told.
#[derive(Clone, Debug)]
pub struct Rest<E> {
    /// How many.
    pub count: u64,
    /// In how long.
    pub within: Duration,
    /// The last of them.
    pub last: Box<E>,
}

impl<E> Lines<E> {
    /// As [`Limiter::new`].
    pub const fn new(first: u32) -> Self {
        Self { limiter: Limiter::new(first), last: None }
    }

    /// The event, if it is to be told.
    pub fn pass(&mut self, now: Instant, event: E) -> Option<E> {
        if self.limiter.admit(now) {
            return Some(event);
        }
        self.last = Some(event);
        None
    }

    /// As [`Limiter::rest`].
    pub fn rest(&mut self, now: Instant) -> Option<Rest<E>> {
        let rest = self.limiter.rest(now);
        self.told(rest)
    }

    /// As [`Limiter::end`].
    pub fn end(&mut self, now: Instant) -> Option<Rest<E>> {
        let rest = self.limiter.end(now);
        self.told(rest)
    }

    fn told(&mut self, rest: Option<(u64, Duration)>) -> Option<Rest<E>> {
        let (count, within) = rest?;
        let last = Box::new(self.last.take()?);
        Some(Rest { count, within, last })
    }

    /// As [`Limiter::timer`].
    pub fn timer(&self) -> Option<Instant> {
        self.limiter.timer()
    }
}

/// Events of several kinds `K`, each with a limiter of its own: a flood of one
/// takes nothing from another. There are as many as kinds that occurred.
#[derive(Debug)]
pub struct Kinds<K, E>(Vec<(K, Lines<E>)>);

impl<K, E> Default for Kinds<K, E> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: PartialEq, E> Kinds<K, E> {
    /// As [`Lines::pass`]; the first event of a kind sets how many of it are
    /// told before they are only counted.
    pub fn pass(&mut self, now: Instant, kind: K, first: u32, event: E) -> Option<E> {
        let index = self.0.iter().position(|(known, _)| *known == kind).unwrap_or_else(|| {
            self.0.push((kind, Lines::new(first)));
            self.0.len() - 1
        });
        self.0[index].1.pass(now, event)
    }

    /// As [`Limiter::rest`].
    pub fn rest(&mut self, now: Instant) -> impl Iterator<Item = Rest<E>> {
        self.0.iter_mut().filter_map(move |(_, lines)| lines.rest(now))
    }

    /// As [`Limiter::end`].
    pub fn end(&mut self, now: Instant) -> impl Iterator<Item = Rest<E>> {
        self.0.iter_mut().filter_map(move |(_, lines)| lines.end(now))
    }

    /// As [`Limiter::timer`].
    pub fn timer(&self) -> Option<Instant> {
        self.0.iter().filter_map(|(_, lines)| lines.timer()).min()
    }
}

impl<E> Rest<E> {
    /// One line: how many more of `what`, and the `last` one.
    pub fn line(&self, what: &str, last: &str) -> String {
        let seconds = (self.within.as_ns() as f64 / 1e9).max(1.0);
        format!("{} more {what} in the last {seconds:.0} s, the last: {last}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    #[test]
    fn what_happens_now_and_then_is_always_said() {
        let mut limiter = Limiter::new(2);
        for second in 0..100 {
            assert_eq!(limiter.rest(at(second * 1000)), None);
            assert!(limiter.admit(at(second * 1000)), "second {second}");
        }
    }

    #[test]
    fn a_flood_becomes_a_line_at_times_and_every_one_is_counted() {
        let mut limiter = Limiter::new(5);
        let (mut said, mut counted, mut told) = (0, 0, Vec::new());
        // A thousand a second for an hour.
        for ms in 0..3_600_000 {
            if let Some((count, within)) = limiter.rest(at(ms)) {
                counted += count;
                told.push((ms, within));
            }
            said += u64::from(limiter.admit(at(ms)));
        }
        assert_eq!(said, 5 + 14, "at first, and one after each telling");
        let seconds: Vec<u64> = told.iter().map(|(ms, _)| ms / 1000).collect();
        assert_eq!(
            seconds,
            [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 1623, 2223, 2823, 3423],
            "ever later, ten minutes at most"
        );
        assert_eq!(told[1].1, Duration::from_ms(2_000));
        let late = at(10_000_000);
        let (count, _) = limiter.rest(late).expect("what is left");
        assert_eq!(said + counted + count, 3_600_000, "none is forgotten");
        // Peace.
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
        let said = (0..100_000).step_by(250).filter(|ms| {
            limiter.rest(at(*ms));
            limiter.admit(at(*ms))
        });
        assert!(said.count() <= 105);
    }

    #[test]
    fn after_some_seconds_of_peace_it_is_as_new_and_asks_for_no_time() {
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
    fn one_that_says_nothing_counts() {
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
        let mut kinds = Kinds::default();
        let told = (0..100).filter_map(|n| kinds.pass(at(n), "flood", 3, n));
        assert_eq!(told.collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(kinds.pass(at(100), "other", 3, 100), Some(100));
        assert_eq!(kinds.timer(), Some(at(1000)));
        let rest: Vec<_> = kinds.rest(at(1000)).map(|rest| (rest.count, *rest.last)).collect();
        assert_eq!(rest, [(97, 99)]);
        assert_eq!(kinds.pass(at(1001), "flood", 3, 101), Some(101));
        assert_eq!(kinds.pass(at(1002), "flood", 3, 102), None);
        let end: Vec<_> = kinds.end(at(1500)).map(|rest| (rest.within, *rest.last)).collect();
        assert_eq!(end, [(Duration::from_ms(500), 102)], "before its time");
    }
}
