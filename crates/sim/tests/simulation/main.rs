//! Whole simulations: what every plan has to hold.

mod aggregation;
mod laws;
mod limits;
mod plans;
mod prediction;
mod random;
mod raw;
mod tlps;
mod worlds;
