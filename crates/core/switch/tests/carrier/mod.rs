//! The raw-Ethernet carrier over networks that lose, repeat, reorder and corrupt frames.

mod connections;
mod delivery;
mod hostile;
mod network;
