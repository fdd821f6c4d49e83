//! Time on a network.

mod message;
mod network;
mod servo;
mod world;
