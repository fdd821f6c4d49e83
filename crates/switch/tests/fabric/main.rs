//! The whole fabric in memory and in virtual time: see `world`.

mod dma;
mod enumeration;
mod fuzzed;
mod tap;
mod world;
