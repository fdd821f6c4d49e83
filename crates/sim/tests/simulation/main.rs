//! Whole simulations: what every plan has to hold.

mod laws;
mod limits;
mod outages;
mod plans;
mod prediction;
mod random;
mod replay;
mod tlps;
mod worlds;
