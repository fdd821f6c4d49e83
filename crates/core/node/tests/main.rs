//! Tests of nodes through their public interface.

extern crate farlane_node as node;

mod drive;
mod fabric;
mod lanes;
mod push;
mod restarts;
mod software;
