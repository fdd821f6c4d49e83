//! An endpoint between a client that speaks the protocol by hand and its bus.

mod doorbell;
mod order;
mod reset_event;

use pcie::enumerate::{Device, Kind, Node};
use pcie::software::Request;
use vfio_user::EndpointInfo;
use wire::Bdf;

/// An endpoint with nothing.
pub const BARE: Device = Device { bars: Vec::new(), msix: None, serial: None, contents: None };

/// A function of this kind, with a PCI Express capability at 60h.
pub fn node(bdf: Bdf, kind: Kind) -> Node {
    Node {
        bdf,
        id: (0xfa12, 1),
        class: [1, 8, 2],
        capabilities: Vec::new(),
        pcie: Some(0x60),
        max_payload_supported: 256,
        max_payload: 256,
        kind,
    }
}

/// The function of the tests' vfio-user clients, its doorbells by message.
pub fn plain_endpoint() -> EndpointInfo {
    let (config, bars) = testkit::vfio_user::plain_function();
    EndpointInfo { config, bars, doorbells: false }
}

/// The answer to a request: at offset 0 the ID of [`node`], 0 for other configuration reads (so no
/// capability is found), all ones for other requests.
pub fn answer(request: Request) -> u64 {
    match request {
        Request::ConfigRead { offset: 0, .. } => 0x0001_fa12,
        Request::ConfigRead { .. } => 0,
        _ => u64::MAX,
    }
}
