//! Frames and mPackets of simulated Ethernet.

use super::Blocks;
use std::io::{self, Write};
use wire::Instant;
use wire::pcapng::{Interface, Packet, link_type};

/// A wire of a [`WireFile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireInterface {
    /// Its name.
    pub name: String,
    /// A line about it.
    pub description: String,
    /// Whether its packets are mPackets; else they are frames.
    pub has_mpackets: bool,
}

/// A capture of one or several wires, each an interface.
pub struct WireFile<W> {
    blocks: Blocks<W>,
}

impl<W: Write> WireFile<W> {
    /// Begins a file of these wires. Times count from 1970.
    ///
    /// # Errors
    /// Those of `file`, as with all methods.
    pub fn begin(file: W, wires: &[WireInterface]) -> io::Result<Self> {
        let mut blocks = Blocks::begin(file, 0)?;
        for WireInterface { name, description, has_mpackets } in wires {
            let link_type = match has_mpackets {
                true => link_type::ETHERNET_MPACKET,
                false => link_type::ETHERNET,
            };
            blocks.interface(Interface { link_type, name, description })?;
        }
        Ok(Self { blocks })
    }

    /// A packet of a wire, whose first bit passed at `at`: a frame without its FCS, or an mPacket
    /// from its preamble to its FCS or mCRC.
    pub fn packet(&mut self, at: Instant, wire: u32, data: &[u8]) -> io::Result<()> {
        let packet =
            Packet { interface: wire, at_ns: 0, direction: None, data, cut: 0, comment: "" };
        self.blocks.packet(at, packet)
    }

    /// Closes the file.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}
