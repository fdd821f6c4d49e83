//! Nodes, from outside.

mod fabric;
mod push;
