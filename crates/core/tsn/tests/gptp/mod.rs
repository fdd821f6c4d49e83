//! Time on a network.

mod link;
mod message;
mod network;
mod servo;
mod world;
