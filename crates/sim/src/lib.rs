//! The world of virtual time.

pub mod ethernet;
pub mod tcp;
