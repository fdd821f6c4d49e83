//! Ends of connections at stations: over TCP, or over raw Ethernet.

use super::raw::{self, Raw};
use super::{Network, Station, config};
use crate::kernel::Component;
use crate::processor::Processor;
use crate::tcp::{self, Host, SocketId};
use crate::transport::{Arrived, Encapsulation, RawConfig, TcpConfig};
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use wire::Instant;

/// Message of a panic. The first socket of a station creates its TCP host.
const HAS_HOST: &str = "a station with a socket has a TCP host";

/// Identifies an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndId {
    pub station: usize,
    number: usize,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct ConnectionEnd {
    /// The component that uses this end.
    pub owner: Component,
    pub connected: bool,
    /// Whether either side has closed or refused the connection since the last [`Station::reopen`].
    pub closed: bool,
    pub inbox: VecDeque<Arrived>,
    pub protocol: Protocol,
}

#[derive(Debug)]
pub(super) enum Protocol {
    Tcp(Socket),
    Raw(Box<Raw>),
}

#[derive(Debug)]
pub(super) struct Socket {
    pub id: SocketId,
    /// The peer to connect to; `None` for a listener.
    peer: Option<SocketAddrV4>,
    port: u16,
    config: TcpConfig,
}

impl ConnectionEnd {
    pub(super) fn forget(&mut self) {
        (self.connected, self.closed) = (false, false);
        self.inbox.clear();
        if let Protocol::Raw(raw) = &mut self.protocol {
            raw.forget();
        }
    }
}

impl Station {
    /// Connects or listens again.
    pub(super) fn reopen(&mut self, now: Instant, number: usize) {
        let end = &mut self.ends[number];
        end.forget();
        match &mut end.protocol {
            Protocol::Tcp(Socket { id, peer, port, config }) => {
                let host = self.host.as_mut().expect(HAS_HOST);
                *id = match *peer {
                    Some(peer) => host.connect(peer, config.priority),
                    None => host.listen(*port, config.priority),
                };
            }
            Protocol::Raw(raw) => raw.open(now),
        }
    }
}

impl Network {
    /// Opens a TCP connection between two stations. The components `owners` use its ends.
    pub(crate) fn open(
        &mut self,
        config: &TcpConfig,
        port: u16,
        owners: [Component; 2],
    ) -> [EndId; 2] {
        let TcpConfig { stations, priority, .. } = *config;
        let [first, second] = stations;
        let listening = self.host(second, first).listen(port, priority);
        let remote = SocketAddrV4::new(config::ip(second), port);
        let connecting = self.host(first, second).connect(remote, priority);
        for station in stations {
            let priorities = &mut self.stations[station].priorities;
            if !priorities.contains(&priority) {
                priorities.push(priority);
            }
        }
        let socket = |id, peer| Protocol::Tcp(Socket { id, peer, port, config: *config });
        let both = [socket(connecting, Some(remote)), socket(listening, None)];
        self.add_ends(stations, owners, both)
    }

    /// The TCP host of a station. Adds the address of `peer` to the host.
    fn host(&mut self, station: usize, peer: usize) -> &mut Host {
        let address = self.stations[peer].nic.mac();
        let Station { host, tcp, .. } = &mut self.stations[station];
        let host = host.get_or_insert_with(|| Box::new(Host::new(tcp.clone())));
        host.add_neighbour(address, config::ip(peer));
        host
    }

    /// Opens a connection over raw Ethernet. `connection` is a unique number below 65 536.
    pub(crate) fn open_raw(
        &mut self,
        raw: &RawConfig,
        connection: u32,
        encapsulation: Encapsulation,
        owners: [Component; 2],
    ) -> [EndId; 2] {
        let both = [0, 1].map(|side| {
            let tagged = self.stations[raw.stations[side]].nic.tags();
            let peer = self.stations[raw.stations[1 - side]].nic.mac();
            let ends = (side, peer);
            Protocol::Raw(Box::new(Raw::new(raw, connection, encapsulation, ends, tagged)))
        });
        self.add_ends(raw.stations, owners, both)
    }

    fn add_ends(
        &mut self,
        stations: [usize; 2],
        owners: [Component; 2],
        both: [Protocol; 2],
    ) -> [EndId; 2] {
        let [first, second] = both;
        [(0, first), (1, second)].map(|(side, protocol)| {
            let (station, owner, inbox) = (stations[side], owners[side], VecDeque::new());
            let ends = &mut self.stations[station].ends;
            ends.push(ConnectionEnd { owner, connected: false, closed: false, inbox, protocol });
            EndId { station, number: ends.len() - 1 }
        })
    }

    fn end(&self, end: EndId) -> &ConnectionEnd {
        &self.stations[end.station].ends[end.number]
    }

    /// The socket of an end; `None` over raw Ethernet.
    pub(super) fn socket(&self, end: EndId) -> Option<SocketId> {
        match &self.end(end).protocol {
            Protocol::Tcp(socket) => Some(socket.id),
            Protocol::Raw(_) => None,
        }
    }

    pub(crate) fn is_connected(&self, end: EndId) -> bool {
        self.end(end).connected
    }

    /// Whether the connection was closed or refused.
    pub(crate) fn is_closed(&self, end: EndId) -> bool {
        self.end(end).closed
    }

    /// Bytes that an end may send now. If zero, the owner of the end is woken when there is room.
    pub(crate) fn room(&mut self, now: Instant, end: EndId) -> usize {
        let Station { host, nic, ends, .. } = &mut self.stations[end.station];
        if nic.busy(now).is_some() {
            return 0;
        }
        if let Protocol::Tcp(Socket { id, config, .. }) = &ends[end.number].protocol {
            return host.as_mut().expect(HAS_HOST).free_to_send(*id).min(config.burst);
        }
        let room = raw::room(now, ends, end.number, nic);
        let Protocol::Raw(raw) = &mut ends[end.number].protocol else { return 0 };
        raw.owner_notified &= room > 0;
        raw.encapsulation.room(room)
    }

    /// Bytes that an end may send now. Does not wake the owner later.
    pub(crate) fn peek_room(&self, now: Instant, end: EndId) -> usize {
        let Station { host, nic, ends, .. } = &self.stations[end.station];
        if nic.busy(now).is_some() {
            return 0;
        }
        match &ends[end.number].protocol {
            Protocol::Tcp(Socket { id, config, .. }) => {
                host.as_ref().expect(HAS_HOST).room(*id).min(config.burst)
            }
            Protocol::Raw(raw) => raw.encapsulation.room(raw::room(now, ends, end.number, nic)),
        }
    }

    /// When the owner of an end must run again, because the processor is busy and there is no room.
    pub(crate) fn next(&self, now: Instant, end: EndId) -> Option<Instant> {
        self.stations[end.station].nic.busy(now)
    }

    /// The processor of a station, if it has one.
    pub(crate) fn processor(&self, station: usize) -> Option<Processor> {
        self.stations[station].nic.processor().cloned()
    }

    /// Makes the processor of one station do the work of another one of the same node too.
    pub(crate) fn share_processor(&mut self, from: usize, to: usize) {
        let processor = self.processor(from);
        self.stations[to].nic.set_processor(processor);
    }

    /// Sends bytes that contain `tlps` TLPs. Returns the station, which must run next.
    pub(crate) fn send(&mut self, now: Instant, end: EndId, data: Bytes, tlps: usize) -> Component {
        let Station { host, ends, scheduler, .. } = &mut self.stations[end.station];
        let count = ends.len();
        match &mut ends[end.number].protocol {
            Protocol::Tcp(Socket { id, .. }) => {
                let host = host.as_mut().expect(HAS_HOST);
                host.handle(now, tcp::Input::Send { socket: *id, data });
            }
            Protocol::Raw(raw) => {
                let segment = raw.encapsulation.wrap(data.into(), tlps);
                raw.endpoint.send(now, segment);
                scheduler.first = (end.number + 1) % count;
            }
        }
        self.station_components[end.station]
    }

    pub(crate) fn receive(&mut self, end: EndId) -> Option<Arrived> {
        let end = &mut self.stations[end.station].ends[end.number];
        let mut arrived = end.inbox.pop_front()?;
        if let Protocol::Raw(raw) = &end.protocol {
            raw.encapsulation.unwrap(&mut arrived.bytes);
        }
        Some(arrived)
    }

    /// Closes a connection and discards its received bytes; sent bytes are still delivered. Returns
    /// the station, which must run next.
    pub(crate) fn close(&mut self, now: Instant, end: EndId) -> Component {
        let Station { host, ends, .. } = &mut self.stations[end.station];
        let connection = &mut ends[end.number];
        match &mut connection.protocol {
            Protocol::Tcp(socket) => {
                let host = host.as_mut().expect(HAS_HOST);
                let delivers = host.has_unacknowledged(socket.id);
                let (close, abort) = (tcp::Input::Close(socket.id), tcp::Input::Abort(socket.id));
                host.handle(now, if delivers { close } else { abort });
            }
            Protocol::Raw(raw) => raw.close(now),
        }
        connection.forget();
        connection.closed = true;
        self.station_components[end.station]
    }

    /// Connects or listens again. Returns the station, which must run next.
    pub(crate) fn reopen(&mut self, now: Instant, end: EndId) -> Component {
        self.stations[end.station].reopen(now, end.number);
        self.station_components[end.station]
    }

    /// The counters of an end over raw Ethernet; `None` for TCP.
    pub(crate) fn raw_counters(&self, end: EndId) -> Option<switch::raw::Counters> {
        match &self.end(end).protocol {
            Protocol::Tcp(_) => None,
            Protocol::Raw(raw) => Some(raw.endpoint.counters()),
        }
    }
}
