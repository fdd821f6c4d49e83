//! Captures of TLPs, each after a pseudo header.

use super::Blocks;
use crate::commands::Direction;
use std::io::{self, Write};
use wire::Instant;
use wire::pcapng::{self, Interface, Packet, link_type};
use wire::tlp::Tlp;

/// Length of the pseudo header in front of the TLP, in bytes.
pub const PSEUDO_HEADER: usize = 4;

const VERSION: u8 = 1;

wire::named! {
    /// The point at which TLPs are captured.
    #[repr(u8)]
    pub enum Tap {
        /// Between the root complex and the switch.
        RootPort = 1 "root-port",
        /// Between the host's node and the network.
        HostTunnel = 2 "host-tunnel",
        /// Between the device's node and the network.
        DeviceTunnel = 3 "device-tunnel",
        /// Between the switch and the endpoint.
        Endpoint = 4 "endpoint",
    }
}

impl Tap {
    const fn description(self) -> &'static str {
        match self {
            Self::RootPort => "TLPs between root complex and switch",
            Self::HostTunnel => "TLPs at the network, host node",
            Self::DeviceTunnel => "TLPs at the network, device node",
            Self::Endpoint => "TLPs between switch and endpoint",
        }
    }

    /// Returns the direction in pcapng, which counts from the point of view of the tap's interface.
    const fn direction(self, direction: Direction) -> pcapng::Direction {
        let from_host = matches!(direction, Direction::Down);
        let on_host = matches!(self, Self::RootPort | Self::HostTunnel);
        if from_host == on_host { pcapng::Direction::Outbound } else { pcapng::Direction::Inbound }
    }
}

/// A capture of TLPs. Each TLP is written when it is added.
pub struct TlpFile<W> {
    blocks: Blocks<W>,
    bytes: Vec<u8>,
}

impl<W: Write> TlpFile<W> {
    /// Begins a file. Times count from `epoch_ns`, nanoseconds since 1970.
    ///
    /// # Errors
    /// Errors of `file`. All methods return them.
    pub fn begin(file: W, epoch_ns: u64) -> io::Result<Self> {
        let mut blocks = Blocks::begin(file, epoch_ns)?;
        for tap in Tap::ALL {
            let (name, description) = (tap.name(), tap.description());
            blocks.interface(Interface { link_type: link_type::USER0, name, description })?;
        }
        Ok(Self { blocks, bytes: Vec::new() })
    }

    /// Adds a TLP, with a packet comment unless `comment` is empty.
    pub fn tlp(
        &mut self,
        at: Instant,
        tap: Tap,
        direction: Direction,
        tlp: &Tlp,
        comment: &str,
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        tlp.encode(&mut bytes);
        self.cut_tlp(at, tap, direction, (&bytes, bytes.len()), comment)
    }

    /// Adds a TLP of which only the first bytes were recorded; `length` is its length on the wire.
    pub fn cut_tlp(
        &mut self,
        at: Instant,
        tap: Tap,
        direction: Direction,
        (bytes, length): (&[u8], usize),
        comment: &str,
    ) -> io::Result<()> {
        self.bytes.clear();
        self.bytes.extend([VERSION, tap as u8, u8::from(direction == Direction::Up), 0]);
        self.bytes.extend_from_slice(bytes);
        let packet = Packet {
            interface: u32::from(tap as u8) - 1,
            at_ns: 0,
            direction: Some(tap.direction(direction)),
            data: &self.bytes,
            cut: length.saturating_sub(bytes.len()) as u32,
            comment,
        };
        self.blocks.packet(at, packet)
    }

    /// Ends the file.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}
