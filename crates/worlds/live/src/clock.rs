//! The clock of the live nodes.

use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};
use std::sync::{Mutex, PoisonError};
use wire::Instant;

const SECOND: u64 = 1_000_000_000;

/// A clock of the kernel that machines may share (clock_gettime(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WallClock {
    /// CLOCK_TAI, as `taprio` has it.
    #[default]
    Tai,
    /// CLOCK_REALTIME, where nothing sets the offset of TAI from UTC.
    Realtime,
}

impl WallClock {
    /// Nanoseconds since 1970.
    pub fn now(self) -> u64 {
        let id = match self {
            Self::Tai => DynamicClockId::Tai,
            Self::Realtime => DynamicClockId::Known(ClockId::Realtime),
        };
        let time = clock_gettime_dynamic(id).expect("Linux has had both since 3.10");
        time.tv_sec as u64 * SECOND + time.tv_nsec as u64
    }
}

/// By how many seconds CLOCK_TAI is ahead of CLOCK_REALTIME: 37 since 2017 (IERS Bulletin C 52)
/// where something, such as ptp4l or chrony, has told the kernel, else 0.
pub fn tai_offset_s() -> u64 {
    let realtime = WallClock::Realtime.now();
    (WallClock::Tai.now().saturating_sub(realtime) + SECOND / 2) / SECOND
}

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
