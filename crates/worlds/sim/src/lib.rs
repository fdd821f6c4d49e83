//! The deterministic simulator: the unchanged root complex, switch and NVMe
//! controller over modelled links, networks and drives, in virtual time.

pub mod drive;
pub mod ethernet;
pub mod flows;
pub mod kernel;
pub mod measure;
mod memory;
pub mod network;
pub mod node;
pub mod pcie;
pub mod tcp;
pub mod transport;
pub mod workload;
pub mod world;

pub use world::{Config, World};

/// An error unless a condition holds.
fn ensure<E>(holds: bool, error: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(error) }
}
