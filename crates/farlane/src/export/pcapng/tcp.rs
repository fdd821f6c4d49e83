//! A recorded connection as TCP segments.

use super::Blocks;
use super::segment::{ACK, FIN, MSS, PSH, SYN, Segment};
use crate::analyse::Direction;
use crate::analyse::stream::Chunk;
use std::io::{self, Write};
use std::net::SocketAddrV4;
use wire::Instant;
use wire::pcapng::{self, Interface, Packet, link_type};

/// Who talks to whom.
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
    frame: Vec<u8>,
}

/// One end of a connection.
struct End {
    address: SocketAddrV4,
    station: u8,
    /// Next sequence number.
    next: u32,
    /// What the other end has been told to be received.
    told: u32,
    id: u16,
}

impl<W: Write> TcpFile<W> {
    /// Begins a file. Times are counted from `epoch_ns`, nanoseconds since
    /// 1970.
    ///
    /// # Errors
    /// Those of `file`, as with all methods.
    pub fn begin(file: W, epoch_ns: u64) -> io::Result<Self> {
        let mut blocks = Blocks::begin(file, epoch_ns)?;
        blocks.interface(Interface {
            link_type: link_type::ETHERNET,
            name: "tunnel",
            description: "recorded byte streams, as TCP segments",
        })?;
        Ok(Self { blocks, frame: Vec::new() })
    }

    /// Adds a whole connection: the streams of both directions and the order in
    /// which their bytes passed. Bytes that a chunk names and that are not
    /// there are left out.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    pub fn connection(
        &mut self,
        connection: Connection,
        down: &[u8],
        up: &[u8],
        chunks: &[Chunk],
    ) -> io::Result<()> {
        let end = |address, station, next| End { address, station, next, told: 0, id: 0 };
        // Any initial sequence numbers will do; these wrap within a megabyte,
        // which readers have to bear with.
        let mut host = end(connection.host, 1, 0xfff0_0000);
        let mut device = end(connection.device, 2, 0x1000_0000);
        let begin = chunks.first().map_or(Instant::ZERO, |chunk| chunk.at);
        self.segment(begin, &mut host, &mut device, SYN, &[])?;
        self.segment(begin, &mut device, &mut host, SYN | ACK, &[])?;
        self.segment(begin, &mut host, &mut device, ACK, &[])?;
        let mut last = begin;
        for chunk in chunks {
            let (from, to, stream) = match chunk.direction {
                Direction::Down => (&mut host, &mut device, down),
                Direction::Up => (&mut device, &mut host, up),
            };
            last = chunk.at;
            let end = chunk.bytes.end.min(stream.len());
            let bytes = stream.get(chunk.bytes.start..end).unwrap_or_default();
            let segments = bytes.chunks(MSS).enumerate();
            for (index, payload) in segments {
                // A receiver acknowledges every second segment (RFC 9293,
                // section 3.8.6.3), here together with those of earlier chunks.
                if to.behind(from) >= 2 * MSS as u32 {
                    self.segment(last, to, from, ACK, &[])?;
                }
                let push = if (index + 1) * MSS >= bytes.len() { PSH } else { 0 };
                self.segment(last, from, to, push | ACK, payload)?;
            }
        }
        self.segment(last, &mut host, &mut device, FIN | ACK, &[])?;
        self.segment(last, &mut device, &mut host, FIN | ACK, &[])?;
        self.segment(last, &mut host, &mut device, ACK, &[])
    }

    fn segment(
        &mut self,
        at: Instant,
        from: &mut End,
        to: &mut End,
        flags: u8,
        payload: &[u8],
    ) -> io::Result<()> {
        let acknowledged = if flags & ACK != 0 { to.next } else { 0 };
        let segment = Segment {
            from: from.address,
            to: to.address,
            stations: [from.station, to.station],
            id: from.id,
            sequence: from.next,
            acknowledged,
            flags,
            payload,
        };
        // SYN and FIN count as a byte (RFC 9293, section 3.4).
        let marks = u32::from(flags & (SYN | FIN) != 0);
        from.next = from.next.wrapping_add(payload.len() as u32 + marks);
        from.told = acknowledged;
        from.id = from.id.wrapping_add(1);
        self.frame.clear();
        segment.encode(&mut self.frame);
        // Seen from the host.
        let outbound = from.station == 1;
        let direction =
            if outbound { pcapng::Direction::Outbound } else { pcapng::Direction::Inbound };
        let packet = Packet {
            interface: 0,
            at_ns: 0,
            direction: Some(direction),
            data: &self.frame,
            cut: 0,
            comment: "",
        };
        self.blocks.packet(at, packet)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// See [`begin`](Self::begin).
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }
}

impl End {
    /// Bytes that it has not acknowledged.
    fn behind(&self, other: &Self) -> u32 {
        other.next.wrapping_sub(self.told)
    }
}
