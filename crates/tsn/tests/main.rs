//! Gates, clocks, shapers and preemption.

mod clock;
mod gates;
mod preemption;
