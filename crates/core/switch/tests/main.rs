//! The switch, from outside.

mod aggregation;
mod carrier;
