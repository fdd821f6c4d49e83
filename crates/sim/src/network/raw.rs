//! Raw Ethernet at a station: the unchanged `switch::raw` endpoints between
//! their owners and the interface.

use super::{Network, Station, config};
use crate::ethernet::frame::HEADER;
use crate::ethernet::{Frame, Mac, Nic, Residence, nic};
use crate::kernel::Component;
use crate::node::{Context, earliest};
use crate::transport::{Arrived, RawConfig};
use std::collections::{BTreeMap, VecDeque};
use switch::raw::{Counters, Endpoint, Input, Output, Settings};
use wire::Instant;
use wire::raw::{Body, ETHERTYPE, Frame as Header, Sequence};

/// Bytes of wire beside the payload, without and with a tag.
const OVERHEAD: [usize; 2] = [38, 42];

/// One end of a link over raw Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawPlace {
    station: usize,
    end: usize,
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    endpoint: Endpoint,
    settings: Settings,
    /// Whether this end opens the connection; the other accepts it.
    opens: bool,
    peer: Mac,
    connection: u32,
    priority: u8,
    /// The node that uses it.
    owner: Component,
    connected: bool,
    /// Ended by either side, and not opened again.
    closed: bool,
    inbox: VecDeque<Arrived>,
    /// How the data frames came whose chunks are not delivered yet.
    ways: BTreeMap<u32, Residence>,
    /// The number of the chunk delivered next.
    next: Sequence,
    /// Whether the owner knows that there is room.
    told: bool,
}

/// All ends of a station.
#[derive(Debug)]
pub(super) struct Ends {
    mac: Mac,
    station: usize,
    ends: Vec<End>,
    /// Who is asked first: after who sent last.
    first: usize,
    frames_made: u64,
}

/// What the numbers of one connection and the next differ by: frames find
/// their end by the bits below, and an old frame is none of the new
/// connection.
const INCARNATION: u32 = 1 << 16;

/// Whether a frame is one of ours.
pub(super) fn is_raw(frame: &Frame) -> bool {
    frame.bytes[HEADER - 2..HEADER] == ETHERTYPE.to_be_bytes()
}

impl Network {
    /// Opens a connection of raw frames between two stations; its ends belong
    /// to `owners`. `connection`, below 65 536, tells it from all others.
    pub fn open_raw(
        &mut self,
        raw: &RawConfig,
        connection: u32,
        owners: [Component; 2],
    ) -> [RawPlace; 2] {
        [0, 1].map(|side| {
            let station = raw.stations[side];
            let peer = config::mac(raw.stations[1 - side]);
            let Station { raw: ends, nic, .. } = &mut self.stations[station];
            let overhead = OVERHEAD[usize::from(nic.tags())];
            let settings = Settings { connection, overhead, ..raw.settings };
            let mut end = End {
                endpoint: Endpoint::new(settings),
                settings,
                opens: side == 0,
                peer,
                connection,
                priority: raw.priority,
                owner: owners[side],
                connected: false,
                closed: false,
                inbox: VecDeque::new(),
                ways: BTreeMap::new(),
                next: Sequence::default(),
                told: false,
            };
            end.open(Instant::ZERO);
            ends.ends.push(end);
            RawPlace { station, end: ends.ends.len() - 1 }
        })
    }

    fn raw_end(&self, place: RawPlace) -> &End {
        &self.stations[place.station].raw.ends[place.end]
    }

    pub fn raw_is_connected(&self, place: RawPlace) -> bool {
        self.raw_end(place).connected
    }

    /// Bytes that an end may send now. If none, its owner is woken when there
    /// are.
    pub fn raw_room(&mut self, now: Instant, place: RawPlace) -> usize {
        let room = self.raw_takes(now, place);
        if room == 0 {
            self.stations[place.station].raw.ends[place.end].told = false;
        }
        room
    }

    /// The same for somebody who only looks.
    pub fn raw_takes(&self, now: Instant, place: RawPlace) -> usize {
        let Station { raw, nic, .. } = &self.stations[place.station];
        raw.room(now, place.end, nic)
    }

    /// Sends a chunk; the station runs next.
    pub fn raw_send(&mut self, now: Instant, place: RawPlace, chunk: Vec<u8>) -> Component {
        let ends = &mut self.stations[place.station].raw;
        ends.ends[place.end].endpoint.send(now, chunk);
        ends.first = (place.end + 1) % ends.ends.len();
        self.station_components[place.station]
    }

    pub fn raw_receive(&mut self, place: RawPlace) -> Option<Arrived> {
        self.stations[place.station].raw.ends[place.end].inbox.pop_front()
    }

    /// Whether the connection is over.
    pub fn raw_is_closed(&self, place: RawPlace) -> bool {
        self.raw_end(place).closed
    }

    /// Ends a connection; what came over it is forgotten. The station runs
    /// next.
    pub fn raw_close(&mut self, now: Instant, place: RawPlace) -> Component {
        let end = &mut self.stations[place.station].raw.ends[place.end];
        end.endpoint.handle(now, Input::Close);
        end.forget();
        end.closed = true;
        self.station_components[place.station]
    }

    /// Opens the connection again, or accepts it again. The station runs next.
    pub fn raw_reopen(&mut self, now: Instant, place: RawPlace) -> Component {
        self.stations[place.station].raw.ends[place.end].open(now);
        self.station_components[place.station]
    }

    /// The station of one end of a connection.
    pub fn raw_station_of(place: RawPlace) -> usize {
        place.station
    }

    /// The end itself, for what it counts.
    pub fn raw_endpoint(&self, place: RawPlace) -> &Endpoint {
        &self.raw_end(place).endpoint
    }
}

impl End {
    /// Begins anew, under the next number.
    fn open(&mut self, now: Instant) {
        self.forget();
        self.endpoint = Endpoint::new(self.settings);
        self.settings.connection += INCARNATION;
        self.endpoint.handle(now, if self.opens { Input::Open } else { Input::Accept });
    }

    fn forget(&mut self) {
        (self.connected, self.closed, self.told) = (false, false, false);
        self.inbox.clear();
        self.ways.clear();
        self.next = Sequence::default();
    }
}

impl Ends {
    /// The power is gone, with everything that is known here.
    pub fn power_off(&mut self) {
        self.ends.iter_mut().for_each(End::forget);
    }

    /// The power is back: connections are opened, or accepted, again.
    pub fn power_on(&mut self, now: Instant) {
        self.ends.iter_mut().for_each(|end| end.open(now));
    }

    pub fn new(mac: Mac, station: usize) -> Self {
        Self { mac, station, ends: Vec::new(), first: 0, frames_made: 0 }
    }

    pub fn retransmitted(&self) -> u64 {
        let of = |end: &End| -> Counters { end.endpoint.counters() };
        self.ends.iter().map(|end| of(end).retransmitted).sum()
    }

    /// Frames that the interface takes of a priority, those that wait for it
    /// taken off.
    fn frames(&self, priority: u8, nic: &Nic) -> usize {
        let waiting = self.ends.iter().filter(|end| end.priority == priority);
        let waiting: usize = waiting.map(|end| end.endpoint.queued()).sum();
        nic.room_for(priority).saturating_sub(waiting)
    }

    fn room(&self, now: Instant, number: usize, nic: &Nic) -> usize {
        let end = &self.ends[number];
        if self.frames(end.priority, nic) > 0 { end.endpoint.room(now) } else { 0 }
    }

    /// A frame from the line.
    pub fn receive(&mut self, now: Instant, frame: Frame) {
        let bytes = frame.bytes.slice(HEADER..);
        let Ok(header) = Header::decode(&bytes) else { return };
        let source = frame.source();
        // Who opens counts in the high bits.
        let number = header.connection % INCARNATION;
        let ours = |end: &&mut End| end.peer == source && end.connection == number;
        let Some(end) = self.ends.iter_mut().find(ours) else { return };
        if let Body::Data { sequence, .. } = header.body
            && sequence.ahead_of(end.next).is_some_and(|ahead| ahead < switch::raw::MAX_WINDOW)
        {
            end.ways.entry(sequence.number()).or_insert(frame.residence);
        }
        end.endpoint.handle(now, Input::Received(bytes));
    }

    /// All ends once; whether anything moved to the interface.
    pub fn turn(
        &mut self,
        now: Instant,
        nic: &mut Nic,
        context: &mut Context,
    ) -> (bool, Option<Instant>) {
        let mut moved = false;
        let mut wake = None;
        let (count, first) = (self.ends.len(), self.first);
        let order = (0..count).map(|turn| (first + turn) % count);
        for number in order.clone() {
            let (sent, at) = self.run(now, number, nic, context);
            moved |= sent;
            wake = earliest([wake, at]);
        }
        for number in order {
            let room = self.room(now, number, nic) > 0;
            let end = &mut self.ends[number];
            if room && !end.told {
                context.kernel.arm_by(end.owner, now);
            }
            end.told = room;
        }
        (moved, wake)
    }

    fn run(
        &mut self,
        now: Instant,
        number: usize,
        nic: &mut Nic,
        context: &mut Context,
    ) -> (bool, Option<Instant>) {
        let mut moved = false;
        let end = &mut self.ends[number];
        loop {
            let frames = nic.room_for(end.priority);
            end.endpoint.handle(now, Input::CanTransmit { frames });
            match end.endpoint.poll(now) {
                Output::Transmit(payload) => {
                    self.frames_made += 1;
                    let id = 1 << 62 | (self.station as u64) << 40 | self.frames_made;
                    let ends = [end.peer.0, self.mac.0];
                    let mut bytes = Vec::with_capacity(HEADER + payload.len());
                    ends.iter().for_each(|mac| bytes.extend_from_slice(mac));
                    bytes.extend_from_slice(&ETHERTYPE.to_be_bytes());
                    bytes.extend_from_slice(&payload);
                    let frame = Frame::new(id, bytes.into(), end.priority, now);
                    nic.handle(now, nic::Input::FromHost(frame));
                    moved = true;
                }
                Output::Delivered(chunk) => {
                    let way = end.ways.remove(&end.next.number());
                    let way = way.unwrap_or_else(|| Residence::new(now));
                    end.next = end.next.plus(1);
                    end.inbox.push_back(Arrived::over_raw(chunk, &way));
                    context.kernel.arm_by(end.owner, now);
                }
                Output::Connected => {
                    end.connected = true;
                    context.kernel.arm_by(end.owner, now);
                }
                Output::Down(_) => {
                    (end.connected, end.closed) = (false, true);
                    end.ways.clear();
                    context.kernel.arm_by(end.owner, now);
                }
                Output::Timeout(at) => return (moved, at),
            }
        }
    }
}
