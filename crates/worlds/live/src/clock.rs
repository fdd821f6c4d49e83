//! The clock of the live nodes.

use std::sync::{Mutex, PoisonError};
use wire::Instant;

/// Monotonic time since the creation of the clock, or a time set by a test.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    /// The start of the clock, and the time that it shows at the start, in nanoseconds.
    Monotonic(std::time::Instant, u64),
    Script(&'static Mutex<Instant>),
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self::start_at(Instant::ZERO)
    }

    /// A clock that starts now and shows `first`, for tests of long uptimes.
    pub fn start_at(first: Instant) -> Self {
        Self(Source::Monotonic(std::time::Instant::now(), first.as_ns()))
    }

    /// A clock for tests, which stands still until it is [`set`](Self::set). Copies show the same
    /// time. Leaks a few bytes of memory.
    pub fn scripted() -> Self {
        Self(Source::Script(Box::leak(Box::default())))
    }

    /// Sets a scripted clock, with all its copies.
    ///
    /// # Panics
    /// If the clock is not scripted.
    pub fn set(&self, now: Instant) {
        let Source::Script(time) = self.0 else { panic!("no scripted clock") };
        *time.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Whether a test sets the time: then all nodes share one clock.
    pub fn is_scripted(&self) -> bool {
        matches!(self.0, Source::Script(_))
    }

    /// The present time.
    pub fn now(&self) -> Instant {
        match self.0 {
            Source::Monotonic(start, first) => {
                Instant::from_ns(first + start.elapsed().as_nanos() as u64)
            }
            Source::Script(time) => *time.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}
