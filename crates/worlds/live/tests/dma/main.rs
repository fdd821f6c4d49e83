//! The DMA test function over real networks: this crate, the switch and the PCIe layer do not
//! depend on NVMe.

extern crate farlane_live as live;

mod isolated;
mod nodes;
mod raw;
mod relay;
mod tcp;
