//! Tests of nodes through their public interface.

mod drive;
mod fabric;
mod push;
