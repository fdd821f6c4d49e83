//! Guaranteed latencies of the streams and NVMe commands of a plan.
//!
//! - [`commands`]: the legs of commands through the network, and the times between them;
//! - [`bound`]: the worst case of every stream, hop by hop, by network calculus.
//!
//! - [`admit`]: whether one more stream fits;
//! - [`scenario`]: bounds, simulation and measurements on one page;
//! - [`schedule`]: gate control lists that meet deadlines.
//!
//! A bound holds for every start of hosts and streams and every offset of the clocks of gates, under
//! the premises that it lists.

pub mod admit;
pub mod bound;
pub mod commands;
pub mod scenario;
pub mod schedule;
