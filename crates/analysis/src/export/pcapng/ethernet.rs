//! Frames of simulated Ethernet.

use super::Blocks;
use std::io::{self, Write};
use wire::Instant;
use wire::pcapng::{Interface, Packet, link_type};

/// A capture of one or several wires, each an interface.
pub struct WireFile<W> {
    blocks: Blocks<W>,
}

impl<W: Write> WireFile<W> {
    /// Begins a file: names of the wires, and a line about each. Times count from 1970.
    ///
    /// # Errors
    /// Those of `file`, as with all methods.
    pub fn begin(file: W, wires: &[(String, String)]) -> io::Result<Self> {
        let mut blocks = Blocks::begin(file, 0)?;
        for (name, description) in wires {
            blocks.interface(Interface { link_type: link_type::ETHERNET, name, description })?;
        }
        Ok(Self { blocks })
    }

    /// A frame without its FCS starts on a wire.
    pub fn frame(&mut self, at: Instant, wire: u32, data: &[u8]) -> io::Result<()> {
        let packet =
            Packet { interface: wire, at_ns: 0, direction: None, data, cut: 0, comment: "" };
        self.blocks.packet(at, packet)
    }

    /// Closes the file.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}
