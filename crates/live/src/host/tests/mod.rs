//! An endpoint between a client that speaks the protocol by hand and its bus.

mod doorbell;
mod order;
