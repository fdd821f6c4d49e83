//! Tests of the switch through its public interface.

extern crate farlane_switch as switch;

mod aggregation;
mod carrier;
