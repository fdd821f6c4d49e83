//! The slot between a scripted client and a scripted bus.

mod software;

use pcie::enumerate::{Bar, Contents, Device, Kind, Msix, Node};
use wire::Bdf;

const SERIAL: u64 = 5;
const INCARNATION: u64 = 7;

/// A function with a BAR of 16 KiB, two vectors and contents.
fn node() -> Node {
    let bar = Bar { index: 0, size: 0x4000, is_64bit: true, prefetchable: false, address: 0x8000 };
    let (table, pending) = ((0, 0x2000), (0, 0x3000));
    let msix = Msix { capability: 0x48, vectors: 2, table, pending };
    let contents = Contents { capability: 0x10c, incarnation: INCARNATION, owner: 0 };
    let (serial, contents) = (Some(SERIAL), Some(contents));
    Node {
        bdf: Bdf::new(3, 0, 0),
        id: (0xfa12, 1),
        class: [1, 8, 2],
        capabilities: Vec::new(),
        pcie: Some(0x60),
        max_payload_supported: 256,
        max_payload: 256,
        kind: Kind::Endpoint(Device { bars: vec![bar], msix: Some(msix), serial, contents }),
    }
}

/// What configuration space of such a function returns, with this serial number and incarnation.
fn config(serial: u64, incarnation: u64) -> impl Fn(u16) -> u32 {
    move |offset| match offset {
        0x00 => 0x0001_fa12,
        0x100 => 0x10c1_0003,
        0x104 => serial as u32,
        0x10c => 0x0001_000b,
        0x110 => 0x0141_0001,
        0x114 => incarnation as u32,
        0x10 => 0xffff_c004,
        0x14 => u32::MAX,
        0x34 => 0x48,
        0x48 => 0x11,
        0x4a => 1,
        0x4c => 0x2000,
        0x50 => 0x3000,
        _ => 0,
    }
}
