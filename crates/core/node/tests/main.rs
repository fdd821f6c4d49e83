//! Nodes, from outside.

mod drive;
mod fabric;
mod push;
