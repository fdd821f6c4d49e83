//! A client written for these tests, against a server over a real socket; and random messages
//! against a session.

pub(crate) mod client;
mod config;
mod dma;
mod files;
mod irqs;
mod lifecycle;
mod messages;
mod random;
mod regions;
mod shared;
