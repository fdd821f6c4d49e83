//! A recorded connection as TCP segments.

use super::Blocks;
use super::segment::{MSS, Segment};
use crate::commands::Direction;
use crate::commands::stream::StreamRange;
use smoltcp::wire::TcpControl::{self, Fin, None as Ack, Psh, Syn};
use std::io::{self, Write};
use std::net::SocketAddrV4;
use wire::Instant;
use wire::pcapng::Direction::{Inbound, Outbound};
use wire::pcapng::{Interface, Packet, link_type};

/// The endpoints of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The host's end, which connected.
    pub host: SocketAddrV4,
    /// The device's end, which listened.
    pub device: SocketAddrV4,
}

/// A capture of connections, one after the other.
pub struct TcpFile<W> {
    blocks: Blocks<W>,
}

struct End {
    address: SocketAddrV4,
    station: u8,
    /// Next sequence number.
    next: u32,
    /// The latest acknowledgement sent to the other end.
    acked: u32,
    started: bool,
}

impl<W: Write> TcpFile<W> {
    /// Begins a file. Times count from `epoch_ns`, nanoseconds since 1970.
    ///
    /// # Errors
    /// Errors of `file`. All methods return them.
    pub fn begin(file: W, epoch_ns: u64) -> io::Result<Self> {
        let mut blocks = Blocks::begin(file, epoch_ns)?;
        blocks.interface(Interface {
            link_type: link_type::ETHERNET,
            name: "tunnel",
            description: "recorded byte streams, as TCP segments",
        })?;
        Ok(Self { blocks })
    }

    /// Adds a whole connection: the streams of both directions and the order in which their bytes
    /// passed. Ranges beyond the end of a stream are ignored.
    pub fn connection(
        &mut self,
        connection: Connection,
        down: &[u8],
        up: &[u8],
        parts: &[StreamRange],
    ) -> io::Result<()> {
        let end = |address, station, next| End { address, station, next, acked: 0, started: false };
        // Any initial sequence numbers are valid. These wrap within a megabyte, which readers must
        // handle.
        let mut host = end(connection.host, 1, 0xfff0_0000);
        let mut device = end(connection.device, 2, 0x1000_0000);
        let begin = parts.first().map_or(Instant::ZERO, |part| part.at);
        self.segment(begin, &mut host, &mut device, Syn, &[])?;
        self.segment(begin, &mut device, &mut host, Syn, &[])?;
        self.segment(begin, &mut host, &mut device, Ack, &[])?;
        let mut last = begin;
        for part in parts {
            let (from, to, stream) = match part.direction {
                Direction::Down => (&mut host, &mut device, down),
                Direction::Up => (&mut device, &mut host, up),
            };
            last = part.at;
            let end = part.bytes.end.min(stream.len());
            let bytes = stream.get(part.bytes.start..end).unwrap_or_default();
            let segments = bytes.chunks(MSS).enumerate();
            for (index, payload) in segments {
                // A receiver acknowledges every second segment (RFC 9293, section 3.8.6.3). Here
                // the acknowledgement also covers segments of earlier ranges.
                if to.behind(from) >= 2 * MSS as u32 {
                    self.segment(last, to, from, Ack, &[])?;
                }
                let push = if (index + 1) * MSS >= bytes.len() { Psh } else { Ack };
                self.segment(last, from, to, push, payload)?;
            }
        }
        self.segment(last, &mut host, &mut device, Fin, &[])?;
        self.segment(last, &mut device, &mut host, Fin, &[])?;
        self.segment(last, &mut host, &mut device, Ack, &[])
    }

    fn segment(
        &mut self,
        at: Instant,
        from: &mut End,
        to: &mut End,
        control: TcpControl,
        payload: &[u8],
    ) -> io::Result<()> {
        // Only the very first segment has no acknowledgement.
        let acknowledged = (control != Syn || to.started).then_some(to.next);
        let segment = Segment {
            from: from.address,
            to: to.address,
            stations: [from.station, to.station],
            sequence: from.next,
            acknowledged,
            control,
            payload,
        };
        from.next = from.next.wrapping_add((payload.len() + control.len()) as u32);
        from.acked = acknowledged.unwrap_or(0);
        from.started = true;
        let frame = segment.encode();
        // The direction from the host's point of view.
        let direction = if from.station == 1 { Outbound } else { Inbound };
        let (direction, data) = (Some(direction), &frame[..]);
        let packet = Packet { interface: 0, at_ns: 0, direction, data, cut: 0, comment: "" };
        self.blocks.packet(at, packet)
    }

    /// Ends the file.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}

impl End {
    /// Returns the number of bytes of `other` that this end has not acknowledged.
    fn behind(&self, other: &Self) -> u32 {
        other.next.wrapping_sub(self.acked)
    }
}
