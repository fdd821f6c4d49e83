//! Ends of connections at stations: over TCP, or over raw Ethernet.

use super::raw::{self, Raw};
use super::{Network, Station, config};
use crate::kernel::Component;
use crate::tcp::{self, SocketId};
use crate::transport::{Arrived, Encapsulation, RawConfig, TcpConfig};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use wire::Instant;

/// Where an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndPlace {
    pub station: usize,
    number: usize,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct End {
    /// The node that uses it.
    pub owner: Component,
    pub connected: bool,
    /// Ended by either side, or refused, and not opened again.
    pub closed: bool,
    pub inbox: VecDeque<Arrived>,
    pub over: Over,
}

#[derive(Debug)]
pub(super) enum Over {
    Tcp(Socket),
    Raw(Box<Raw>),
}

#[derive(Debug)]
pub(super) struct Socket {
    pub id: SocketId,
    /// Whom it connects to; none: it listens.
    peer: Option<SocketAddrV4>,
    port: u16,
    config: TcpConfig,
}

impl End {
    pub fn forget(&mut self) {
        (self.connected, self.closed) = (false, false);
        self.inbox.clear();
        if let Over::Raw(raw) = &mut self.over {
            raw.forget();
        }
    }
}

impl Station {
    /// Connects again, or waits for a connection again.
    pub fn reopen(&mut self, now: Instant, number: usize) {
        let end = &mut self.ends[number];
        end.forget();
        match &mut end.over {
            Over::Tcp(Socket { id, peer, port, config }) => {
                *id = match *peer {
                    Some(peer) => self.host.connect(peer, config.priority),
                    None => self.host.listen(*port, config.priority),
                };
            }
            Over::Raw(raw) => raw.open(now),
        }
    }
}

impl Network {
    /// Opens a connection between two stations; its ends belong to `owners`.
    pub fn open(&mut self, config: &TcpConfig, port: u16, owners: [Component; 2]) -> [EndPlace; 2] {
        let TcpConfig { stations, priority, .. } = *config;
        let listening = self.stations[stations[1]].host.listen(port, priority);
        let remote = SocketAddrV4::new(config::ip(stations[1]), port);
        let connecting = self.stations[stations[0]].host.connect(remote, priority);
        for station in stations {
            let priorities = &mut self.stations[station].priorities;
            if !priorities.contains(&priority) {
                priorities.push(priority);
            }
        }
        let socket = |id, peer| Over::Tcp(Socket { id, peer, port, config: *config });
        let both = [socket(connecting, Some(remote)), socket(listening, None)];
        self.add_ends(stations, owners, both)
    }

    /// The same of raw frames. `connection`, below 65 536, tells it from all
    /// others.
    pub fn open_raw(
        &mut self,
        raw: &RawConfig,
        connection: u32,
        encapsulation: Encapsulation,
        owners: [Component; 2],
    ) -> [EndPlace; 2] {
        let both = [0, 1].map(|side| {
            let tagged = self.stations[raw.stations[side]].nic.tags();
            Over::Raw(Box::new(Raw::new(raw, connection, encapsulation, side, tagged)))
        });
        self.add_ends(raw.stations, owners, both)
    }

    fn add_ends(
        &mut self,
        stations: [usize; 2],
        owners: [Component; 2],
        both: [Over; 2],
    ) -> [EndPlace; 2] {
        let [first, second] = both;
        [(0, first), (1, second)].map(|(side, over)| {
            let (station, owner, inbox) = (stations[side], owners[side], VecDeque::new());
            let ends = &mut self.stations[station].ends;
            ends.push(End { owner, connected: false, closed: false, inbox, over });
            EndPlace { station, number: ends.len() - 1 }
        })
    }

    fn end(&self, place: EndPlace) -> &End {
        &self.stations[place.station].ends[place.number]
    }

    pub fn is_connected(&self, place: EndPlace) -> bool {
        self.end(place).connected
    }

    /// Whether the connection is over, or was refused.
    pub fn is_closed(&self, place: EndPlace) -> bool {
        self.end(place).closed
    }

    /// Bytes that an end may send now. If none, its owner is woken when there
    /// are.
    pub fn room(&mut self, now: Instant, place: EndPlace) -> usize {
        let Station { host, nic, ends, .. } = &mut self.stations[place.station];
        if let Over::Tcp(Socket { id, config, .. }) = &ends[place.number].over {
            return host.free_to_send(*id).min(config.burst);
        }
        let room = raw::room(now, ends, place.number, nic);
        let Over::Raw(raw) = &mut ends[place.number].over else { return 0 };
        raw.told &= room > 0;
        raw.encapsulation.room(room)
    }

    /// The same for somebody who only looks.
    pub fn peek_room(&self, now: Instant, place: EndPlace) -> usize {
        let Station { host, nic, ends, .. } = &self.stations[place.station];
        match &ends[place.number].over {
            Over::Tcp(Socket { id, config, .. }) => host.room(*id).min(config.burst),
            Over::Raw(raw) => raw.encapsulation.room(raw::room(now, ends, place.number, nic)),
        }
    }

    /// Sends bytes with so many TLPs in them; the station runs next.
    pub fn send(&mut self, now: Instant, place: EndPlace, data: Bytes, tlps: usize) -> Component {
        let Station { host, ends, line, .. } = &mut self.stations[place.station];
        let count = ends.len();
        match &mut ends[place.number].over {
            Over::Tcp(Socket { id, .. }) => {
                host.handle(now, tcp::Input::Send { socket: *id, data });
            }
            Over::Raw(raw) => {
                let chunk = raw.encapsulation.wrap(data.into(), tlps);
                raw.endpoint.send(now, chunk);
                line.first = (place.number + 1) % count;
            }
        }
        self.station_components[place.station]
    }

    pub fn receive(&mut self, place: EndPlace) -> Option<Arrived> {
        let end = &mut self.stations[place.station].ends[place.number];
        let mut arrived = end.inbox.pop_front()?;
        if let Over::Raw(raw) = &end.over {
            raw.encapsulation.unwrap(&mut arrived.bytes);
        }
        Some(arrived)
    }

    /// Resets a connection; what came over it is forgotten. The station runs
    /// next.
    pub fn close(&mut self, now: Instant, place: EndPlace) -> Component {
        let Station { host, ends, .. } = &mut self.stations[place.station];
        let end = &mut ends[place.number];
        match &mut end.over {
            Over::Tcp(socket) => host.handle(now, tcp::Input::Abort(socket.id)),
            Over::Raw(raw) => raw.endpoint.handle(now, switch::raw::Input::Close),
        }
        end.forget();
        end.closed = true;
        self.station_components[place.station]
    }

    /// Connects again, or waits for a connection again. The station runs next.
    pub fn reopen(&mut self, now: Instant, place: EndPlace) -> Component {
        self.stations[place.station].reopen(now, place.number);
        self.station_components[place.station]
    }

    /// What an end of raw frames counted.
    pub fn raw_counters(&self, place: EndPlace) -> Option<switch::raw::Counters> {
        match &self.end(place).over {
            Over::Tcp(_) => None,
            Over::Raw(raw) => Some(raw.endpoint.counters()),
        }
    }
}
