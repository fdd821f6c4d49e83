//! What a time-sensitive talker and its listener need of the machine: sockets whose frames are
//! stamped, waking at a time, and threads that nothing gets in the way of. All times are
//! nanoseconds of CLOCK_TAI (clock_gettime(2)).

mod control;
mod hardware;
mod phc;
mod port;
mod realtime;
mod wake;

pub use control::{Control, Launch, Step, launch_at, parse};
pub use hardware::HardwareStamps;
pub use phc::HardwareClock;
pub use port::{Port, Received, Remote, Tag};
pub use realtime::{lock_memory, pin, prioritise};
pub use wake::{Overslept, now, oversleep, shortest_entry, sleep_until, spin_until};
