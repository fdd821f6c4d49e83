//! The live world's time.

use wire::Instant;

/// Monotonic time since the clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// The time.
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}
