//! Finds and sets up a hierarchy, as an operating system does at boot: assigns bus numbers depth
//! first, sizes BARs, calculates windows bottom up and assigns them top down, sets a common payload
//! size, and enables memory space.

mod assign;
mod identity;
mod scan;
#[cfg(test)]
mod tests;

pub use assign::{
    Error, enable, enable_bus_master, program, reset_function, set_msix, write_msix_entry,
};
pub use identity::{
    Comparison, Contents, ContentsChange, Identity, Layout, identify, layout, write_owner,
};

use crate::root::ROOT_PORT;
use crate::software::Bus;
use std::ops::Range;
use wire::{Bdf, Duration};

/// Settings of an enumeration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The range for memory windows: below 4 GiB and outside all addresses that devices may reach
    /// by DMA.
    pub window: Range<u64>,
    /// Upper limit of Max_Payload_Size in bytes. The functions on the path may support less.
    pub max_payload: usize,
    /// Max_Read_Request_Size in bytes.
    pub max_read_request: usize,
    /// Whether to enable ECRC for endpoints that support it.
    pub ecrc: bool,
    /// Whether to read the contents capability of endpoints, for a host that attaches endpoints
    /// again when their link comes back.
    pub contents: bool,
    /// How long a link on the way may be interrupted without being down. The completion timeouts of
    /// endpoints are longer.
    pub outage: Duration,
    /// Size in bytes of the memory window that is reserved below each empty slot for hot-plugged
    /// devices.
    pub hotplug_window: u64,
    /// Bus numbers reserved below each empty slot.
    pub hotplug_buses: u8,
}

impl Default for Settings {
    /// The PCI hole of a PC, the largest MPS that the path allows, MRRS 4096.
    fn default() -> Self {
        Self {
            window: 0xe000_0000..0xf000_0000,
            max_payload: 4096,
            max_read_request: 4096,
            ecrc: false,
            contents: false,
            outage: Duration::ZERO,
            hotplug_window: 4 << 20,
            hotplug_buses: 4,
        }
    }
}

/// A function that was found, with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Bus, device and function number.
    pub bdf: Bdf,
    /// Vendor and device ID.
    pub id: (u16, u16),
    /// Base class, subclass, programming interface.
    pub class: [u8; 3],
    /// Capabilities of the function: ID and byte offset.
    pub capabilities: Vec<(u8, u16)>,
    /// Byte offset of the PCI Express capability, if present.
    pub pcie: Option<u16>,
    /// Max_Payload_Size Supported in bytes.
    pub max_payload_supported: usize,
    /// Max_Payload_Size that was set, in bytes.
    pub max_payload: usize,
    /// Bridge or endpoint.
    pub kind: Kind,
}

/// The kind of a [`Node`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A port: type 1 header.
    Bridge(Port),
    /// An endpoint: type 0 header.
    Endpoint(Device),
}

/// A bridge function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Device/Port Type of the PCI Express capability: 4 root port, 5 upstream, 6 downstream.
    pub port_type: u8,
    /// Physical slot number, if the port implements a slot.
    pub slot: Option<u16>,
    /// Whether the link below is up (Data Link Layer Link Active).
    pub link_up: bool,
    /// Number of the bus directly below.
    pub secondary: u8,
    /// Number of the highest bus below.
    pub subordinate: u8,
    /// The memory window: bus addresses.
    pub window: Range<u64>,
    /// The functions directly below.
    pub children: Vec<Node>,
}

/// An endpoint function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Memory BARs.
    pub bars: Vec<Bar>,
    /// The MSI-X capability, if present.
    pub msix: Option<Msix>,
    /// Device serial number, if it has one.
    pub serial: Option<u64>,
    /// The contents capability, if present and [`Settings::contents`] is set.
    pub contents: Option<Contents>,
}

/// A memory BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Number of the BAR, 0 to 5.
    pub index: u8,
    /// Size in bytes, a power of two.
    pub size: u64,
    /// Whether the BAR takes two registers.
    pub is_64bit: bool,
    /// Whether reads have no side effects.
    pub prefetchable: bool,
    /// The assigned bus address.
    pub address: u64,
}

/// The MSI-X capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msix {
    /// Byte offset of the capability.
    pub capability: u16,
    /// Number of vectors, 1 to 2048.
    pub vectors: u16,
    /// BAR and byte offset of the table.
    pub table: (u8, u32),
    /// BAR and byte offset of the pending bits.
    pub pending: (u8, u32),
}

/// The root port and everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// The root port.
    pub root: Node,
}

impl Hierarchy {
    /// Every function, depth first.
    pub fn nodes(&self) -> Vec<&Node> {
        fn walk<'a>(node: &'a Node, out: &mut Vec<&'a Node>) {
            out.push(node);
            node.children().iter().for_each(|child| walk(child, out));
        }
        let mut out = Vec::new();
        walk(&self.root, &mut out);
        out
    }

    /// Every endpoint, depth first.
    pub fn endpoints(&self) -> Vec<&Node> {
        self.nodes().into_iter().filter(|node| node.device().is_some()).collect()
    }
}

impl Node {
    /// The functions directly below; none for endpoints.
    pub fn children(&self) -> &[Self] {
        self.port().map_or(&[], |port| &port.children)
    }

    /// The function at `bdf`, here or below.
    pub fn find(&self, bdf: Bdf) -> Option<&Self> {
        if self.bdf == bdf {
            return Some(self);
        }
        self.children().iter().find_map(|child| child.find(bdf))
    }

    /// The bridge; `None` for an endpoint.
    pub fn port(&self) -> Option<&Port> {
        match &self.kind {
            Kind::Bridge(port) => Some(port),
            Kind::Endpoint(_) => None,
        }
    }

    /// The endpoint; `None` for a bridge.
    pub fn device(&self) -> Option<&Device> {
        match &self.kind {
            Kind::Endpoint(device) => Some(device),
            Kind::Bridge(_) => None,
        }
    }

    /// The BAR with this number; `None` for a bridge or an absent BAR.
    pub fn bar(&self, index: u8) -> Option<Bar> {
        self.device()?.bars.iter().copied().find(|bar| bar.index == index)
    }
}

/// Enumerates everything below the root port and prepares it for drivers. Enables memory decoding,
/// but not the bus mastering of endpoints.
///
/// # Errors
/// If the bus numbers or the memory window are exhausted.
pub async fn enumerate(bus: Bus, settings: Settings) -> Result<Hierarchy, Error> {
    let mut buses = scan::Buses::new(1, u8::MAX);
    let mut root = scan::function(&bus, ROOT_PORT, &settings, &mut buses).await?;
    assign::tree(&bus, &mut root, &settings).await?;
    Ok(Hierarchy { root })
}

/// Enumerates again below a port whose link came up, within the buses and the window of the port.
///
/// # Errors
/// If the devices need more buses or more window than the port has.
pub async fn enumerate_below(
    bus: Bus,
    port: Node,
    settings: Settings,
    max_payload: usize,
) -> Result<Vec<Node>, Error> {
    let Kind::Bridge(bridge) = port.kind else { return Ok(Vec::new()) };
    let mut children = scan::below(&bus, bridge.secondary, bridge.subordinate, &settings).await?;
    assign::below(&bus, &mut children, bridge.window, max_payload, &settings).await?;
    Ok(children)
}
