//! The switch, from outside.

extern crate farlane_switch as switch;

mod aggregation;
mod carrier;
