//! Gates, clocks, shapers and preemption.

mod clock;
mod credit;
mod gates;
mod preemption;
