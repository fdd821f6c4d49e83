//! The distributed PCIe switch.
//!
//! The switch does not depend on the kind of endpoint, with one exception: [`push_store`] reads
//! completion entries of NVMe to invalidate pushed bytes.
//!
//! # Modules
//!
//! The modules are in the order of downstream traffic. Upstream traffic passes them in reverse
//! order.
//!
//! - [`upstream`]: the upstream port, mirrors of the downstream ports, routing
//! - [`aggregate`]: the aggregation queue, which decides when a TLP leaves
//! - [`egress`]: the link that sends next, and the rate limit
//! - [`tunnel`]: one end of a link: frames, sequence, credits, resets, keepalive
//! - [`raw`]: raw Ethernet, a reliable stream in Ethernet frames
//! - [`congestion`]: congestion control: a rate limit, or control by delay and loss
//! - [`downstream`]: the device node's end of a link, with the function below it
//! - [`push_store`]: pushed bytes that are kept in front of a function
//!
//! Not implemented: separate connections for traffic classes other than TC0, and replay after a
//! lost connection (frames already have sequence numbers).
//!
//! # Example
//!
//! Two ends of a link greet each other over a byte pipe, and a TLP crosses it:
//!
//! ```
//! # use {pcie as farlane_pcie, wire as farlane_wire};
//! use bytes::{Bytes, BytesMut};
//! use farlane_pcie::Ready;
//! use farlane_switch::tunnel::{Input, Output, Settings, Tunnel};
//! use farlane_wire::frame::Role;
//! use farlane_wire::tlp::Tlp;
//! use farlane_wire::{Bdf, Instant};
//!
//! let now = Instant::ZERO;
//! /// Carries the bytes of one end to the other one.
//! fn carry(now: Instant, from: &mut Tunnel, to: &mut Tunnel) {
//!     from.handle(now, Input::CanTransmit { bytes: 65_536 });
//!     loop {
//!         match from.poll(now) {
//!             Output::Transmit(_, bytes) => to.handle(now, Input::Received(bytes)),
//!             Output::Timeout(_) => return,
//!             _ => {}
//!         }
//!     }
//! }
//!
//! let mut host = Tunnel::new(Settings::new(Role::Host, 1));
//! let mut device = Tunnel::new(Settings::new(Role::Device, 2));
//! host.handle(now, Input::Connected);
//! device.handle(now, Input::Connected);
//! carry(now, &mut host, &mut device);
//! carry(now, &mut device, &mut host);
//! assert!(host.is_up());
//!
//! let data = Bytes::from_static(&[1, 2, 3, 4]);
//! let write = Tlp::write_bytes(Bdf::new(0, 1, 0), 0xe000_1000, &data).expect("within 4 KiB");
//! host.push(write.clone());
//! carry(now, &mut host, &mut device);
//! assert_eq!(device.pop(Ready::ALL), Some(write));
//! assert_eq!(host.counters().frames_sent, 1);
//! ```

pub mod aggregate;
pub mod congestion;
pub mod downstream;
pub mod egress;
pub mod push_store;
pub mod raw;
pub mod tunnel;
pub mod upstream;

pub use downstream::Downstream;
pub use tunnel::Tunnel;
pub use upstream::Upstream;
