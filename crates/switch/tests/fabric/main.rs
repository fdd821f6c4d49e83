//! The whole fabric in memory and in virtual time: see `world`.

mod dma;
mod enumeration;
mod errors;
mod fuzzed;
mod p2p;
mod tap;
mod world;
