//! Connections that end and are made again; stations without power.

use super::{Network, SocketPlace, config};
use crate::kernel::Component;
use crate::tcp;
use wire::Instant;

impl Network {
    /// Whether the connection is over, or was refused.
    pub fn is_closed(&self, place: SocketPlace) -> bool {
        self.stations[place.station].sockets[place.socket].closed
    }

    /// Resets a connection; what came over it is forgotten. The station runs
    /// next.
    pub fn close(&mut self, now: Instant, place: SocketPlace) -> Component {
        let station = &mut self.stations[place.station];
        let socket = &mut station.sockets[place.socket];
        station.host.handle(now, tcp::Input::Abort(socket.id));
        (socket.connected, socket.closed) = (false, true);
        socket.inbox.clear();
        self.station_components[place.station]
    }

    /// Connects again, or waits for a connection again. The station runs next.
    pub fn reopen(&mut self, place: SocketPlace) -> Component {
        let station = &mut self.stations[place.station];
        let socket = &mut station.sockets[place.socket];
        socket.id = match socket.peer {
            Some(peer) => station.host.connect(peer, socket.priority),
            None => station.host.listen(socket.port, socket.priority),
        };
        (socket.connected, socket.closed) = (false, false);
        socket.inbox.clear();
        self.station_components[place.station]
    }

    /// A station loses its power, and with it everything that it knew.
    pub fn power_off(&mut self, number: usize) {
        let station = &mut self.stations[number];
        station.dead = true;
        station.nic.reset();
        station.raw.power_off();
        for socket in &mut station.sockets {
            (socket.connected, socket.closed) = (false, false);
            socket.inbox.clear();
        }
    }

    /// It is back: it waits for connections, and makes those of its own again.
    pub fn power_on(&mut self, now: Instant, number: usize) -> Component {
        let others = (0..self.stations.len()).filter(|other| *other != number);
        let others: Vec<_> = others.map(|at| (config::mac(at), config::ip(at))).collect();
        let station = &mut self.stations[number];
        station.dead = false;
        station.raw.power_on(now);
        station.host = station.host.restarted();
        others.into_iter().for_each(|(mac, ip)| station.host.add_neighbour(mac, ip));
        for socket in 0..self.stations[number].sockets.len() {
            self.reopen(SocketPlace { station: number, socket });
        }
        self.station_components[number]
    }

    /// The station of one end of a connection.
    pub fn station_of(place: SocketPlace) -> usize {
        place.station
    }
}
