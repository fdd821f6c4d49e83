//! Measures how long TCP waits for acknowledgements: from the write of bytes to the socket to the
//! arrival of the frame that acknowledges them. The waits include closed gates of the sender, as
//! TCP's own measurement does.
//!
//! A connection ends with a RST, with its link, or when a new connection of the link replaces it
//! (RFC 9293, 3.10.7). Bytes that wait at the end are counted separately, because they are never
//! acknowledged.

use crate::simulate::places;
use sim::Config;
use sim::ethernet::Rate;
use sim::ethernet::frame::{FCS, PREAMBLE};
use sim::measure::Point;
use sim::network::CableEnd;
use sim::transport::TransportConfig;
use sim::world::FIRST_PORT;
use std::collections::VecDeque;
use tsn::frer::rtag;
use wire::raw::{Body, ETHERTYPE, Frame, Sequence};
use wire::{Duration, Instant};

/// One direction of a connection.
#[derive(Debug, Default)]
struct Flow {
    /// Number of bytes written to the socket. `waiting`: the end and the time of each write.
    offset: u64,
    waiting: VecDeque<(u64, Instant)>,
    acknowledged: u64,
    /// Sequence number of the first byte; `None` without a connection.
    first: Option<u32>,
    /// Sequence number after the last byte that left the station.
    next: Option<u32>,
}

/// A link over TCP.
#[derive(Debug)]
struct Link {
    /// Stations of host and device node.
    stations: [usize; 2],
    /// The host's port in the current connection. The device node's port is fixed.
    port: Option<u16>,
    /// Flows down and up.
    flows: [Flow; 2],
}

/// A wire: sender, receiver, rate, and propagation time.
type Wire = (CableEnd, CableEnd, Rate, Duration);

/// Bytes that waited for their acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Time at which the wait began. `until`: time at which it ended.
    pub since: Instant,
    pub until: Instant,
    /// Link of the bytes. `down`: whether the bytes went down.
    pub link: usize,
    pub down: bool,
    /// Whether the acknowledgement arrived; otherwise the connection ended.
    pub acknowledged: bool,
}

/// The unacknowledged bytes of all links.
#[derive(Debug)]
pub(super) struct Acks {
    /// The links over TCP, by number of the link.
    links: Vec<Option<Link>>,
    wires: Vec<Wire>,
    /// For each link over raw Ethernet: its stations, and by direction the number after the last
    /// data frame that left.
    raw: Vec<Option<([usize; 2], [Sequence; 2])>>,
    /// Number of retransmitted TCP segments and data frames.
    pub retransmitted: u64,
}

struct Segment {
    source: u16,
    destination: u16,
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    payload: usize,
}

impl Acks {
    pub fn new(config: &Config) -> Self {
        // With two paths, the ports of connections are not numbered by link.
        let single = places::links(config).all(|(_, link)| link.second.is_none());
        let links = places::links(config).map(|(_, link)| match link.transport {
            TransportConfig::Tcp(tcp) if single => {
                Some(Link { stations: tcp.stations, port: None, flows: Default::default() })
            }
            _ => None,
        });
        let links = links.collect();
        let raw = places::links(config).map(|(_, link)| match link.transport {
            TransportConfig::Raw(raw) => Some((raw.stations, Default::default())),
            _ => None,
        });
        let raw = raw.collect();
        let network = &config.network;
        let rates = places::wires(network).into_iter().map(|(_, rate)| rate);
        let wires = rates.enumerate().filter_map(|(number, rate)| {
            let (from, to) = places::wire(network, number)?;
            Some((from, to, rate, network.cables[number / 2].propagation))
        });
        Self { wires: wires.collect(), links, raw, retransmitted: 0 }
    }

    /// Records that bytes were written to a socket. Bytes for a connection that has ended without
    /// the sender's knowledge are ignored.
    pub fn sent(&mut self, at: Instant, point: Point, bytes: usize) {
        let Some((link, direction)) = end_of(point) else { return };
        let Some(link) = &mut self.links[link] else { return };
        let flow = &mut link.flows[direction];
        if flow.first.is_some() {
            flow.offset += bytes as u64;
            flow.waiting.push_back((flow.offset, at));
        }
    }

    /// Records that the link went down at one end. The bytes that this end sent no longer wait.
    pub fn lost(&mut self, at: Instant, point: Point, mut waited: impl FnMut(Wait)) {
        let Some((number, direction)) = end_of(point) else { return };
        if let Some(link) = &mut self.links[number] {
            link.end(number, direction, at, &mut waited);
        }
    }

    /// Ends the simulation. Bytes that still wait are reported as waiting until now.
    pub fn finish(&mut self, now: Instant, mut waited: impl FnMut(Wait)) {
        for (number, link) in self.links.iter_mut().enumerate() {
            let Some(link) = link else { continue };
            (0..2).for_each(|direction| link.end(number, direction, now, &mut waited));
        }
    }

    /// Records that a frame starts on a wire. Calls `waited` for each wait that the frame ends.
    pub fn frame(&mut self, at: Instant, wire: usize, bytes: &[u8], mut waited: impl FnMut(Wait)) {
        let Some((from, to, rate, propagation)) = self.wires.get(wire).copied() else { return };
        let Some(segment) = segment(bytes) else { return self.raw(from, bytes) };
        let links = FIRST_PORT..FIRST_PORT.saturating_add(self.links.len() as u16);
        let (number, direction, port) = if links.contains(&segment.destination) {
            (usize::from(segment.destination - FIRST_PORT), 0, segment.source)
        } else if links.contains(&segment.source) {
            (usize::from(segment.source - FIRST_PORT), 1, segment.destination)
        } else {
            return;
        };
        let Some(link) = &mut self.links[number] else { return };
        let has = |flag| segment.flags & flag != 0;
        if from == CableEnd::station(link.stations[direction]) {
            if direction == 0 && has(SYN) && !link.is_of(port, &segment) {
                (0..2).for_each(|direction| link.end(number, direction, at, &mut waited));
                link.port = Some(port);
            }
            if link.port == Some(port) {
                self.retransmitted += u64::from(link.flows[direction].leaves(&segment));
                if has(RST) {
                    link.end(number, direction, at, &mut waited);
                }
            }
        }
        if to == CableEnd::station(link.stations[1 - direction]) && link.port == Some(port) {
            let arrived = at + rate.duration(PREAMBLE + bytes.len() + FCS) + propagation;
            if has(ACK) {
                link.flows[1 - direction].acknowledge(segment.acknowledgement, |since| {
                    let (until, down) = (arrived, direction == 1);
                    waited(Wait { since, until, link: number, down, acknowledged: true });
                });
            }
            if has(RST) {
                link.end(number, 1 - direction, arrived, &mut waited);
            }
        }
    }

    /// Returns whether any link uses TCP.
    pub fn any_tcp(&self) -> bool {
        self.links.iter().any(Option::is_some)
    }

    /// Counts retransmissions of raw Ethernet data frames. The low 16 bits of link n's connections
    /// are n + 1.
    fn raw(&mut self, from: CableEnd, bytes: &[u8]) {
        let at = behind_tags(bytes);
        if bytes.get(at..at + 2) != Some(&ETHERTYPE.to_be_bytes()[..]) {
            return;
        }
        let Ok(frame) = Frame::decode(&bytes[at + 2..]) else { return };
        let link = usize::from(frame.connection as u16)
            .checked_sub(1)
            .and_then(|link| self.raw.get_mut(link));
        let Some(Some((stations, next))) = link else { return };
        let Some(direction) = stations.iter().position(|at| from == CableEnd::station(*at)) else {
            return;
        };
        match frame.body {
            Body::Open(_) => *next = Default::default(),
            Body::Data { sequence, .. } => match sequence.ahead_of(next[direction]) {
                Some(_) => next[direction] = sequence.plus(1),
                None => self.retransmitted += 1,
            },
            _ => {}
        }
    }
}

/// Returns the link of a link's end, and the direction of bytes that leave there.
fn end_of(point: Point) -> Option<(usize, usize)> {
    match point {
        Point::TunnelHost(link) => Some((usize::from(link), 0)),
        Point::TunnelDevice(link) => Some((usize::from(link), 1)),
        _ => None,
    }
}

impl Link {
    /// Returns whether a SYN of the host belongs to the current connection.
    fn is_of(&self, port: u16, syn: &Segment) -> bool {
        self.port == Some(port) && self.flows[0].first == Some(syn.sequence.wrapping_add(1))
    }

    /// Ends the connection in one direction.
    fn end(&mut self, link: usize, direction: usize, at: Instant, waited: &mut impl FnMut(Wait)) {
        let flow = std::mem::take(&mut self.flows[direction]);
        if let Some((_, since)) = flow.waiting.front().copied() {
            let down = direction == 0;
            waited(Wait { since, until: at.max(since), link, down, acknowledged: false });
        }
    }
}

impl Flow {
    /// Records that a segment leaves its station. Returns whether the whole segment had left
    /// before.
    fn leaves(&mut self, segment: &Segment) -> bool {
        if segment.flags & SYN != 0 {
            self.first = Some(segment.sequence.wrapping_add(1));
            return false;
        }
        if segment.payload == 0 {
            return false;
        }
        let end = segment.sequence.wrapping_add(segment.payload as u32);
        let retransmitted = self.next.is_some_and(|next| end.wrapping_sub(next) as i32 <= 0);
        if !retransmitted {
            self.next = Some(end);
        }
        retransmitted
    }

    fn acknowledge(&mut self, number: u32, mut waited: impl FnMut(Instant)) {
        let Some(first) = self.first else { return };
        let known = first.wrapping_add(self.acknowledged as u32);
        let more = number.wrapping_sub(known) as i32;
        if more <= 0 {
            return;
        }
        self.acknowledged += more as u64;
        while let Some((end, since)) = self.waiting.front().copied()
            && end <= self.acknowledged
        {
            waited(since);
            self.waiting.pop_front();
        }
    }
}

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Returns the offset of a frame's EtherType after VLAN tag and R-TAG, if there are any.
fn behind_tags(frame: &[u8]) -> usize {
    let has =
        |at: usize, ethertype: u16| frame.get(at..at + 2) == Some(&ethertype.to_be_bytes()[..]);
    let at = if has(12, 0x8100) { 16 } else { 12 };
    if has(at, rtag::ETHER_TYPE) { at + rtag::LENGTH } else { at }
}

/// Parses the TCP segment of an Ethernet frame (RFC 791, 3.1; RFC 9293, 3.1).
fn segment(frame: &[u8]) -> Option<Segment> {
    let number = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let at = behind_tags(frame);
    if number(at)? != 0x0800 {
        return None;
    }
    let ip = frame.get(at + 2..)?;
    let (header, total) = (usize::from(*ip.first()? & 15) * 4, usize::from(number(at + 4)?));
    if *ip.get(9)? != 6 {
        return None;
    }
    let tcp = ip.get(header..total.min(ip.len()))?;
    let word = |at: usize| Some(u32::from_be_bytes(*tcp.get(at..)?.first_chunk()?));
    let offset = usize::from(*tcp.get(12)? >> 4) * 4;
    Some(Segment {
        source: (word(0)? >> 16) as u16,
        destination: word(0)? as u16,
        sequence: word(4)?,
        acknowledgement: word(8)?,
        flags: *tcp.get(13)?,
        payload: tcp.len().checked_sub(offset)?,
    })
}
