//! Finding and setting up a hierarchy, as an operating system does at boot:
//! bus numbers depth first, BARs sized, windows cut bottom up and assigned
//! top down, payload sizes agreed, memory space enabled.

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
use wire::Bdf;

/// What the host decides before it looks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where memory windows go, below 4 GiB and outside everything that a
    /// device may want to reach by DMA.
    pub window: Range<u64>,
    /// Upper limit of Max_Payload_Size in bytes; what the path supports and
    /// this, whichever is less.
    pub max_payload: usize,
    /// Max_Read_Request_Size in bytes.
    pub max_read_request: usize,
    /// Endpoints that can guard what they send with an ECRC.
    pub ecrc: bool,
    /// Endpoints are asked for the identity of their contents, as a host does
    /// that attaches them again when their link comes back.
    pub contents: bool,
    /// Room kept below each empty slot for what may be plugged in later.
    pub hotplug_window: u64,
    /// Bus numbers kept below each empty slot.
    pub hotplug_buses: u8,
}

impl Default for Settings {
    /// The PCI hole of a PC, MPS as large as the path allows, MRRS 4096.
    fn default() -> Self {
        Self {
            window: 0xe000_0000..0xf000_0000,
            max_payload: 4096,
            max_read_request: 4096,
            ecrc: false,
            contents: false,
            hotplug_window: 4 << 20,
            hotplug_buses: 4,
        }
    }
}

/// A function that was found, with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Where it is.
    pub bdf: Bdf,
    /// Vendor and device ID.
    pub id: (u16, u16),
    /// Base class, subclass, programming interface.
    pub class: [u8; 3],
    /// Offsets of capabilities that were found, with their IDs.
    pub capabilities: Vec<(u8, u16)>,
    /// Offset of the PCI Express capability.
    pub pcie: Option<u16>,
    /// Max_Payload_Size Supported in bytes.
    pub max_payload_supported: usize,
    /// Max_Payload_Size as set, in bytes.
    pub max_payload: usize,
    /// Bridge or endpoint.
    pub kind: Kind,
}

/// What kind of function a [`Node`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A port: type 1 header.
    Bridge(Port),
    /// Anything else: type 0 header.
    Endpoint(Device),
}

/// A bridge function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Device/Port Type of the PCI Express capability: 4 root port, 5 upstream, 6 downstream.
    pub port_type: u8,
    /// Physical slot number, if it implements one.
    pub slot: Option<u16>,
    /// Data Link Layer Link Active.
    pub link_up: bool,
    /// The bus right below.
    pub secondary: u8,
    /// The highest bus below.
    pub subordinate: u8,
    /// The memory window.
    pub window: Range<u64>,
    /// What is below.
    pub children: Vec<Node>,
}

/// An endpoint function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Memory BARs.
    pub bars: Vec<Bar>,
    /// MSI-X, if it has it.
    pub msix: Option<Msix>,
    /// Device serial number, if it has one.
    pub serial: Option<u64>,
    /// What it says of its data, if it does and was asked ([`Settings::contents`]).
    pub contents: Option<Contents>,
}

/// A memory BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// 0 to 5.
    pub index: u8,
    /// Bytes, a power of two.
    pub size: u64,
    /// Takes two registers.
    pub is_64bit: bool,
    /// Reads have no side effects.
    pub prefetchable: bool,
    /// Where it was put.
    pub address: u64,
}

/// The MSI-X capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msix {
    /// Offset of the capability.
    pub capability: u16,
    /// Vectors, 1 to 2048.
    pub vectors: u16,
    /// BAR and byte offset of the table.
    pub table: (u8, u32),
    /// BAR and byte offset of the pending bits.
    pub pending: (u8, u32),
}

/// Everything below and with the root port.
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
    /// What is right below; nothing for endpoints.
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

    /// The bridge, if it is one.
    pub fn port(&self) -> Option<&Port> {
        match &self.kind {
            Kind::Bridge(port) => Some(port),
            Kind::Endpoint(_) => None,
        }
    }

    /// The endpoint, if it is one.
    pub fn device(&self) -> Option<&Device> {
        match &self.kind {
            Kind::Endpoint(device) => Some(device),
            Kind::Bridge(_) => None,
        }
    }

    /// The address of a BAR.
    pub fn bar(&self, index: u8) -> Option<Bar> {
        self.device()?.bars.iter().copied().find(|bar| bar.index == index)
    }
}

/// Enumerates everything below the root port and leaves it ready for drivers:
/// decoding enabled, endpoints not yet bus masters.
///
/// # Errors
/// If buses or the window run out.
pub async fn enumerate(bus: Bus, settings: Settings) -> Result<Hierarchy, Error> {
    let mut buses = scan::Buses::new(1, u8::MAX);
    let mut root = scan::function(&bus, ROOT_PORT, &settings, &mut buses).await?;
    assign::tree(&bus, &mut root, &settings).await?;
    Ok(Hierarchy { root })
}

/// Looks again below a port whose link came up, and sets up what is there
/// inside the buses and the window that the port already has.
///
/// # Errors
/// If it needs more than the port was given.
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
