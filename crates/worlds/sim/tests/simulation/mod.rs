//! Whole simulations, and requirements that every simulation meets.

mod aggregation;
mod bulk;
mod cascade;
mod faults;
mod hop;
mod host;
mod laws;
mod limits;
mod moves;
mod outages;
mod paths;
mod plans;
mod preemption;
mod processor;
mod push;
mod random;
mod raw;
mod replay;
mod shared;
mod timelines;
mod tlps;
mod workloads;
mod worlds;
