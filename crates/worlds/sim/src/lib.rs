//! The deterministic simulator: the unchanged root complex, switch and NVMe
//! controller over modelled links, networks and drives, in virtual time.
//!
//! # Modules
//!
//! - [`kernel`]: the event kernel
//! - [`world`]: builds and runs all components
//! - [`node`]: the nodes with the models around them
//! - [`pcie`]: PCIe links
//! - [`drive`]: timing and contents of media
//! - [`network`]: stations, bridges, cables between nodes
//! - [`ethernet`]: ports, cables, bridges, interfaces, background traffic
//! - [`tcp`]: TCP hosts, by smoltcp
//! - [`transport`]: transports of a link's byte stream
//! - [`workload`]: host software and its workloads
//! - [`measure`]: latencies, their stages, observers
//! - [`flows`]: greedy senders for the study of congestion control
//! - `memory`: memory for frames and blocks

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
