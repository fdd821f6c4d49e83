//! Nodes, from outside.

mod fabric;
