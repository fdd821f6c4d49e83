//! The deterministic simulator. It runs the real root complex, switch and NVMe controller over
//! models of links, networks and drives, in virtual time.
//!
//! # Modules
//!
//! - [`kernel`]: the event kernel
//! - [`world`]: builds and runs all components
//! - [`node`]: nodes, and the models around them
//! - [`pcie`]: PCIe links
//! - [`drive`]: timing and contents of media
//! - [`network`]: stations, bridges, cables between nodes
//! - [`ethernet`]: ports, cables, bridges, interfaces, background traffic
//! - [`tcp`]: TCP hosts, by smoltcp
//! - [`transport`]: transports of a link's byte stream
//! - [`processor`]: the thread of a live node
//! - [`workload`]: host software and its workloads
//! - [`measure`]: latencies, their stages, observers
//! - [`flows`]: senders that always have data, for the study of congestion control
//! - `memory`: memory for frames and blocks
//!
//! # Example
//!
//! Ten reads of 4 KiB from a drive behind a tunnel over TCP and gigabit Ethernet. Equal
//! configurations and seeds give equal simulations.
//!
//! ```
//! use farlane_sim::ethernet::Rate;
//! use farlane_sim::workload::Workload;
//! use farlane_sim::{Config, World};
//!
//! let reads = Workload::Dd { write: false, bs: 4096, count: 10 };
//! let config = Config { seed: 7, ..Config::nvme_tsn_tcp(reads, Rate::G1) };
//! let report = World::new(&config)?.run()?;
//! let host = &report.hosts[0];
//! assert_eq!((host.commands, host.failures), (10, 0));
//! // 4 KiB alone take 33 us on the line.
//! assert!(host.latency.quantile_ns(0.5) > 33_000);
//! println!("{} events, digest {:x}", report.events, report.digest);
//!
//! let again = World::new(&config)?.run()?;
//! assert_eq!(again.digest, report.digest);
//! # Ok::<(), farlane_sim::world::Error>(())
//! ```

pub mod drive;
pub mod ethernet;
pub mod flows;
pub mod kernel;
pub mod measure;
mod memory;
pub mod network;
pub mod node;
pub mod pcie;
pub mod processor;
pub mod tcp;
pub mod transport;
pub mod workload;
pub mod world;

pub use world::{Config, World};

/// An error unless a condition holds.
fn ensure<E>(holds: bool, error: E) -> Result<(), E> {
    if holds { Ok(()) } else { Err(error) }
}
