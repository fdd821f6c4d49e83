//! The DMA test function served over real networks: nothing in this crate, in
//! the switch or in the PCIe layer knows what an NVMe drive is.

mod isolated;
mod nodes;
mod raw;
mod relay;
mod tcp;
