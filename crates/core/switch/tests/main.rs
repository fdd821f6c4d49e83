//! Tests of the switch through its public interface.

mod aggregation;
mod carrier;
