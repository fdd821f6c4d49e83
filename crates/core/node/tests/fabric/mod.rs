//! A whole fabric in memory and in virtual time: see `world`.

mod dma;
mod enumeration;
mod errors;
mod fuzzed;
mod interrupts;
mod links;
mod neighbours;
mod ordering;
mod p2p;
mod random;
mod resets;
mod slots;
mod tap;
mod world;
