//! Tests of gates, clocks, shapers and preemption.

extern crate farlane_tsn as tsn;

mod ats;
mod clock;
mod cqf;
mod credit;
mod ets;
mod frer;
mod gates;
mod gptp;
mod preemption;
mod psfp;
