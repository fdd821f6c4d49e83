//! Latency of time-sensitive frames, without I/O: what a talker writes into its [`frame`]s, when
//! they are due ([`schedule`]), what is known of each ([`Sample`]), and what follows from all of
//! them ([`Analysis`]).
//!
//! All times are nanoseconds of TAI since 1970-01-01 (CLOCK_TAI of clock_gettime(2)), as the
//! kernel stamps frames; [`Stamp`] is one that may be missing. They are no `wire::Instant`: its
//! picoseconds end after 213 days. Differences are signed, because two clocks may disagree.

mod analysis;
mod clock;
pub mod findings;
pub mod frame;
pub mod phc;
pub mod ptp;
mod sample;
pub mod schedule;
mod sequence;
mod slots;
mod stable;
mod statistics;

pub use analysis::{Analysis, Bar, Bin, Input, SegmentReport};
pub use clock::{ClockError, ClockPoint, Part, Source, exchange};
pub use findings::Finding;
pub use sample::{Departure, Sample, Segment, Stamp, stamp};
pub use sequence::{Counts, MOST as MOST_FRAMES, Sequence};
pub use slots::Slots;
pub use stable::Range;
pub use statistics::{Band, Figures};
