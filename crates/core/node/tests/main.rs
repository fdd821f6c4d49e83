//! Nodes, from outside.

extern crate farlane_node as node;

mod drive;
mod fabric;
mod push;
