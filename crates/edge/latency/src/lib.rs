//! Latency of time-sensitive frames, without I/O: the contents of [`frame`]s, their due times
//! ([`schedule`]), the stamps of each frame ([`Sample`]), and the results of a run ([`Analysis`]).
//!
//! All times are nanoseconds of TAI since 1970-01-01 (CLOCK_TAI of clock_gettime(2)), as 64-bit
//! numbers. The picoseconds of `wire::Instant` would overflow after 213 days. A [`Stamp`] may be
//! missing. Differences are signed, because two clocks may differ.
//!
//! # Modules
//!
//! - [`frame`]: the payload of a frame, byte by byte
//! - [`schedule`]: due times of frames, and their windows
//! - `sample`: the stamps of one frame, and the segments between them
//! - `sequence`: losses, duplicates and order
//! - `slots`: how many frames were within their windows
//! - `clock`: the offset between the clocks of the two ends
//! - [`phc`]: comparison of the system clock with a hardware clock
//! - [`ptp`]: ptp4l's management message TIME_STATUS_NP
//! - `statistics`: figures of signed latencies
//! - `stable`: the stable range of a run
//! - [`findings`]: stalls, periodic spikes, slips by whole cycles, swings of the clock
//! - `analysis`: all results of a run

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
