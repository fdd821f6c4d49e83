//! The DMA test function over real networks: nothing in this crate, in the switch or in the
//! PCIe layer knows NVMe.

extern crate farlane_live as live;

mod isolated;
mod nodes;
mod raw;
mod relay;
mod tcp;
