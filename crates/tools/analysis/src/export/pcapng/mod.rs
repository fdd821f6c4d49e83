//! Captures for Wireshark and tshark; `wireshark/farlane.lua` decodes both
//! kinds, see `docs/wireshark.md`.
//!
//! [`TlpFile`]: TLPs that passed one or several taps. Each packet has link type USER0, and a pseudo
//! header of 4 bytes in front of the TLP:
//!
//! | offset | bytes | field | meaning |
//! | --- | --- | --- | --- |
//! | 0 | 1 | version | 1 |
//! | 1 | 1 | tap | where the TLP was seen, see [`Tap`] |
//! | 2 | 1 | direction | 0 from the host, 1 from the device |
//! | 3 | 1 | flags | reserved, 0 |
//! | 4 | | TLP | in the bytes of PCIe Base 4.0, chapter 2: header, payload, ECRC |
//!
//! If only a part of a TLP was recorded, the captured length of the packet is less than its
//! original length.
//!
//! [`TcpFile`]: a connection of the tunnel as TCP segments on Ethernet, made from the bytes that a
//! relay recorded. The file looks like a capture on the wire. The headers of the segments are
//! invented; payload, order and times are real.
//!
//! [`WireFile`]: the frames of a simulated network as they were sent. If the sender of a wire
//! supports frame preemption, the wire has mPackets (LINKTYPE_ETHERNET_MPACKET).

mod ethernet;
mod segment;
mod tcp;
#[cfg(test)]
pub(crate) mod tests;
mod tlp;

pub use ethernet::{WireFile, WireInterface};
pub use tcp::{Connection, TcpFile};
pub use tlp::{PSEUDO_HEADER, Tap, TlpFile};

use std::io::{self, Write};
use wire::pcapng::{Interface, Packet, Section};

const APPLICATION: &str = concat!("farlane ", env!("CARGO_PKG_VERSION"));

/// Writes blocks into a file, one at a time.
struct Blocks<W> {
    file: W,
    block: Vec<u8>,
    /// Start of the simulated or recorded time, in nanoseconds since 1970.
    epoch_ns: u64,
}

impl<W: Write> Blocks<W> {
    fn begin(file: W, epoch_ns: u64) -> io::Result<Self> {
        let mut blocks = Self { file, block: Vec::new(), epoch_ns };
        let section = Section { application: APPLICATION, comment: "" };
        blocks.put(|block| section.encode(block))?;
        Ok(blocks)
    }

    fn interface(&mut self, interface: Interface<'_>) -> io::Result<()> {
        self.put(|block| interface.encode(block))
    }

    /// Writes a packet. `at` counts from `epoch_ns`.
    fn packet(&mut self, at: wire::Instant, packet: Packet<'_>) -> io::Result<()> {
        let at_ns = self.epoch_ns.saturating_add(at.as_ns());
        self.put(|block| Packet { at_ns, ..packet }.encode(block))
    }

    fn put(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.block.clear();
        encode(&mut self.block);
        self.file.write_all(&self.block)
    }

    fn finish(mut self) -> io::Result<W> {
        self.file.flush()?;
        Ok(self.file)
    }
}
