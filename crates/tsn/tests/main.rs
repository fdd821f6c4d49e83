//! Gates, clocks, shapers and preemption.

mod ats;
mod clock;
mod credit;
mod ets;
mod gates;
mod preemption;
