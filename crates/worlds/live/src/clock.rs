//! The clock of the live nodes.

use std::sync::{Mutex, PoisonError};
use wire::Instant;

/// Monotonic time since the clock was made, or the time that a test sets.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    /// Its start, and what it showed then, in nanoseconds.
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

    /// A clock for tests, which stands still until it is [`set`](Self::set). Copies show the
    /// same time. It leaks a few bytes.
    pub fn scripted() -> Self {
        Self(Source::Script(Box::leak(Box::default())))
    }

    /// Sets a scripted clock, with all its copies.
    ///
    /// # Panics
    /// If it is none.
    pub fn set(&self, now: Instant) {
        let Source::Script(time) = self.0 else { panic!("no scripted clock") };
        *time.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// Whether a test sets the time: then all nodes share one clock.
    pub fn is_scripted(&self) -> bool {
        matches!(self.0, Source::Script(_))
    }

    /// The time.
    pub fn now(&self) -> Instant {
        match self.0 {
            Source::Monotonic(start, first) => {
                Instant::from_ns(first + start.elapsed().as_nanos() as u64)
            }
            Source::Script(time) => *time.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}
