//! How long TCP waits for acknowledgements: from the hand-over of bytes to the
//! socket to the arrival of the frame that acknowledges them. Gates of the
//! sender are in it, as they are in TCP's own measure.

use crate::simulate::places;
use sim::Config;
use sim::ethernet::Rate;
use sim::ethernet::frame::{FCS, PREAMBLE};
use sim::measure::Point;
use sim::network::Place;
use sim::transport::TransportConfig;
use sim::world::FIRST_PORT;
use std::collections::VecDeque;
use wire::Instant;
use wire::raw::{Body, ETHERTYPE, Frame, Sequence};

/// One direction of a connection.
#[derive(Debug, Default)]
struct Flow {
    /// Bytes handed to the socket, and where each hand-over ended, when.
    offset: u64,
    waiting: VecDeque<(u64, Instant)>,
    acknowledged: u64,
    /// Sequence number of the first byte.
    first: Option<u32>,
    /// Sequence number behind the last byte seen leaving.
    next: Option<u32>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Acks {
    /// Stations of each link, if it is over TCP: host, device node.
    stations: Vec<Option<[usize; 2]>>,
    /// By link: down, up.
    flows: Vec<[Flow; 2]>,
    wires: Vec<(Place, Place, Rate)>,
    /// Stations of each link over raw Ethernet, and the number behind the last
    /// data frame seen leaving, by direction.
    raw: Vec<Option<([usize; 2], [Sequence; 2])>>,
    /// Segments and data frames that left their station again.
    pub again: u64,
}

/// What matters of a segment.
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
        let stations = places::ports(config).map(|(_, _, port)| match &port.transport {
            TransportConfig::Tcp(tcp) => Some(tcp.stations),
            TransportConfig::Raw(_) | TransportConfig::Pipe(_) => None,
        });
        let stations: Vec<_> = stations.collect();
        let raw = places::ports(config).map(|(_, _, port)| match &port.transport {
            TransportConfig::Raw(raw) => Some((raw.stations, Default::default())),
            _ => None,
        });
        let raw = raw.collect();
        let network = &config.network;
        let rates = places::wires(network).into_iter().map(|(_, rate)| rate);
        let wires = rates.enumerate().filter_map(|(number, rate)| {
            let (from, to) = places::wire(network, number)?;
            Some((from, to, rate))
        });
        let flows = stations.iter().map(|_| Default::default()).collect();
        Self { wires: wires.collect(), flows, stations, raw, again: 0 }
    }

    /// Bytes were handed to a socket.
    pub fn sent(&mut self, at: Instant, point: Point, bytes: usize) {
        let (link, way) = match point {
            Point::TunnelHost(link) => (usize::from(link), 0),
            Point::TunnelDevice(link) => (usize::from(link), 1),
            _ => return,
        };
        if self.stations[link].is_some() {
            let flow = &mut self.flows[link][way];
            flow.offset += bytes as u64;
            flow.waiting.push_back((flow.offset, at));
        }
    }

    /// A frame starts on a wire. `waited` hears from when to when, on which
    /// link, and whether the bytes went down.
    pub fn frame(
        &mut self,
        at: Instant,
        wire: usize,
        bytes: &[u8],
        mut waited: impl FnMut(Instant, Instant, usize, bool),
    ) {
        let Some((from, to, rate)) = self.wires.get(wire).copied() else { return };
        let Some(segment) = segment(bytes) else { return self.raw(from, bytes) };
        let links = FIRST_PORT..FIRST_PORT.saturating_add(self.stations.len() as u16);
        let (link, way) = if links.contains(&segment.destination) {
            (usize::from(segment.destination - FIRST_PORT), 0)
        } else if links.contains(&segment.source) {
            (usize::from(segment.source - FIRST_PORT), 1)
        } else {
            return;
        };
        let Some(stations) = self.stations[link] else { return };
        if from == Place::Station(stations[way]) {
            self.leaves(link, way, &segment);
        }
        if to == Place::Station(stations[1 - way]) && segment.flags & ACK != 0 {
            let arrived = at + rate.duration(PREAMBLE + bytes.len() + FCS);
            let flow = &mut self.flows[link][1 - way];
            flow.acknowledge(segment.acknowledgement, |since| {
                waited(since, arrived, link, way == 1);
            });
        }
    }

    /// Whether the tunnel of any link is over TCP.
    pub fn any_tcp(&self) -> bool {
        self.stations.iter().any(Option::is_some)
    }

    /// Data frames of raw Ethernet that leave their station again. The world
    /// gives link n the connections whose low 16 bits are n + 1.
    fn raw(&mut self, from: Place, bytes: &[u8]) {
        let at = if bytes.get(12..14) == Some(&[0x81, 0]) { 16 } else { 12 };
        if bytes.get(at..at + 2) != Some(&ETHERTYPE.to_be_bytes()[..]) {
            return;
        }
        let Ok(frame) = Frame::decode(&bytes[at + 2..]) else { return };
        let link = usize::from(frame.connection as u16)
            .checked_sub(1)
            .and_then(|link| self.raw.get_mut(link));
        let Some(Some((stations, next))) = link else { return };
        let Some(way) = stations.iter().position(|at| from == Place::Station(*at)) else { return };
        match frame.body {
            Body::Open(_) => *next = Default::default(),
            Body::Data { sequence, .. } => match sequence.ahead_of(next[way]) {
                Some(_) => next[way] = sequence.plus(1),
                None => self.again += 1,
            },
            _ => {}
        }
    }

    fn leaves(&mut self, link: usize, way: usize, segment: &Segment) {
        let flow = &mut self.flows[link][way];
        if segment.flags & SYN != 0 {
            flow.first = Some(segment.sequence.wrapping_add(1));
        } else if segment.payload > 0 {
            let end = segment.sequence.wrapping_add(segment.payload as u32);
            match flow.next {
                Some(next) if end.wrapping_sub(next) as i32 <= 0 => self.again += 1,
                _ => flow.next = Some(end),
            }
        }
    }
}

impl Flow {
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
const ACK: u8 = 0x10;

/// The TCP segment of an Ethernet frame (RFC 791, 3.1; RFC 9293, 3.1).
fn segment(frame: &[u8]) -> Option<Segment> {
    let number = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let mut at = 12;
    if number(at)? == 0x8100 {
        at += 4;
    }
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
