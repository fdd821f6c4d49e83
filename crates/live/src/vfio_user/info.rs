//! The description of an endpoint that the host node offers to a VMM.

use pcie::enumerate::Bar;

/// Bytes of configuration space.
pub const CONFIG_SIZE: usize = 4096;

/// An endpoint as the host node enumerated it.
#[derive(Clone, Debug)]
pub struct EndpointInfo {
    /// Configuration space, read after BARs, payload size and memory-space
    /// enable of the far hierarchy have been set. Capabilities are found here;
    /// values are read from the function again whenever the VMM asks.
    pub config: Box<[u8; CONFIG_SIZE]>,
    /// The BARs; a 64-bit one is at its lower index.
    pub bars: [Option<Bar>; 6],
    /// A client may map the page with the doorbells (`--mmap-doorbells`): stores
    /// into it reach the endpoint as writes of double words.
    pub doorbells: bool,
}
