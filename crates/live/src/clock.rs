//! The clock of the live nodes.

use std::sync::atomic::{AtomicU64, Ordering};
use wire::Instant;

/// Monotonic time since the clock was made, or the time that a test sets.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    Monotonic(std::time::Instant),
    /// Picoseconds.
    Script(&'static AtomicU64),
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(Source::Monotonic(std::time::Instant::now()))
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
        time.store(now.as_ps(), Ordering::Relaxed);
    }

    /// Whether a test sets the time: then all nodes share one clock.
    pub fn is_scripted(&self) -> bool {
        matches!(self.0, Source::Script(_))
    }

    /// The time.
    pub fn now(&self) -> Instant {
        match self.0 {
            Source::Monotonic(start) => Instant::from_ns(start.elapsed().as_nanos() as u64),
            Source::Script(time) => Instant::from_ps(time.load(Ordering::Relaxed)),
        }
    }
}
