//! Captures of frames and mPackets of simulated Ethernet.

use super::Blocks;
use std::io::{self, Write};
use wire::Instant;
use wire::pcapng::{Interface, Packet, link_type};

/// A wire of a [`WireFile`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireInterface {
    /// Name of the interface.
    pub name: String,
    /// Description of the wire in one line.
    pub description: String,
    /// Whether the packets are mPackets instead of frames.
    pub has_mpackets: bool,
}

/// A capture of one or several wires. Each wire is an interface.
pub struct WireFile<W> {
    blocks: Blocks<W>,
}

impl<W: Write> WireFile<W> {
    /// Begins a file of these wires. Times count from 1970.
    ///
    /// # Errors
    /// Errors of `file`. All methods return them.
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

    /// Adds a packet of a wire, whose first bit passed at `at`: a frame without its FCS, or an
    /// mPacket from its preamble to its FCS or mCRC.
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
