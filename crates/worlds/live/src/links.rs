//! The connections of a switch node's links: names, addresses and descriptors.
//! [`node::SwitchNode`] decides when to open and close them.

use crate::net::{Carrier, LineGate, LinkSettings, Peer};
use crate::poller::{Activity, Poller};
use crate::status::{LinkStatus, PeerStatus};
use crate::trace::Tracer;
use bytes::Bytes;
use credentials::Identity;
pub use node::LinkEvent;
use node::SwitchNode;
use node::path::Input;
use node::switch::Output;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use switch::congestion::Rate;
use wire::Instant;
use wire::earliest;
use wire::trace::Tap;

/// One path of a link.
#[derive(Debug)]
struct Lane {
    peer: Peer,
    /// Number of the latest attempt to connect; each attempt uses the next address of the peer.
    attempt: usize,
    carrier: Option<Carrier>,
    /// Whether the carrier is established.
    open: bool,
    /// Whether epoll watches the open carrier for output.
    watched: bool,
}

#[derive(Debug)]
struct Link {
    lanes: Vec<Lane>,
    /// The name of the first peer that proved its identity; the link belongs to this peer.
    name: Option<Arc<str>>,
}

impl Lane {
    /// The carrier, if it is established.
    fn open(&mut self) -> Option<&mut Carrier> {
        self.carrier.as_mut().filter(|_| self.open)
    }

    /// Watches for output while the kernel takes no more bytes.
    fn watch(&mut self, poller: &Poller) -> io::Result<()> {
        if let Some(carrier) = &self.carrier
            && self.open
            && self.watched != carrier.is_full()
        {
            self.watched = !self.watched;
            poller.modify(carrier, self.watched)?;
        }
        Ok(())
    }
}

/// The connections of a switch node, one per downstream port.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    limit: Option<Rate>,
    events: VecDeque<LinkEvent>,
    tracer: Tracer,
    settings: LinkSettings,
    last_service: Instant,
}

impl Links {
    /// One connection to each of `peers`, one per downstream port.
    pub fn new<'a, P>(peers: &'a [P]) -> Self
    where
        &'a P: Into<Peer>,
    {
        let link = |peer: &'a P| {
            let peer: Peer = peer.into();
            let lane = |peer: &Peer| {
                let (attempt, carrier, open, watched) = (0, None, false, false);
                Lane { peer: peer.clone(), attempt, carrier, open, watched }
            };
            Link { lanes: peer.paths().map(lane).collect(), name: peer.key_name().cloned() }
        };
        Self {
            links: peers.iter().map(link).collect(),
            limit: None,
            events: VecDeque::new(),
            tracer: Tracer::off(),
            settings: LinkSettings::default(),
            last_service: Instant::ZERO,
        }
    }

    /// The number of paths of each link.
    pub fn lanes(&self) -> Vec<usize> {
        self.links.iter().map(|link| link.lanes.len()).collect()
    }

    /// Sets the settings of the connections.
    #[must_use]
    pub fn over(mut self, settings: impl Into<LinkSettings>) -> Self {
        self.settings = settings.into();
        self
    }

    /// Limits the total output of all links. The links share the limit evenly in bytes.
    #[must_use]
    pub fn limited(mut self, rate: Option<Rate>) -> Self {
        self.limit = rate;
        self
    }

    /// The gate of all links.
    pub fn gate(&self) -> Option<&LineGate> {
        self.settings.gate.as_ref()
    }

    /// The limit to the total output of all links.
    pub fn limit(&self) -> Option<Rate> {
        self.limit
    }

    /// Records the links with `tracer`.
    pub fn trace(&mut self, tracer: Tracer) {
        self.tracer = tracer;
    }

    /// The tracer.
    pub fn tracer(&self) -> Tracer {
        self.tracer.clone()
    }

    /// The next event. The cause of a failed attempt names the far side.
    pub fn event(&mut self) -> Option<LinkEvent> {
        self.events.pop_front()
    }

    /// The name of the far side of link `index`, for messages.
    pub fn peer(&self, index: usize) -> String {
        let name = |lane: &Lane| lane.peer.named(lane.attempt);
        self.links[index].lanes.iter().map(name).collect::<Vec<_>>().join(" and ")
    }

    /// The far side of link `index`, if its connection has proved its identity.
    pub fn identity(&self, index: usize) -> Option<Arc<Identity>> {
        let mut carriers = self.links[index].lanes.iter().filter_map(|lane| lane.carrier.as_ref());
        carriers.find_map(|carrier| carrier.identity().cloned())
    }

    /// Adds the far side of link `index`, and the round trip of its connection.
    pub(crate) fn add_status(&self, index: usize, status: &mut LinkStatus) {
        let identity = self.identity(index);
        status.peer = Some(PeerStatus::new(self.peer(index), identity.as_ref()));
        let mut carriers = self.links[index].lanes.iter().filter(|lane| lane.open);
        if let Some(carrier) = carriers.find_map(|lane| lane.carrier.as_ref()) {
            status.connected_by(carrier);
        }
    }

    /// One line for each link whose far side has proved its identity.
    pub fn identities(&self) -> Vec<String> {
        let line = |port| Some(format!("port {port}: link to {}", self.identity(port)?));
        (0..self.links.len()).filter_map(line).collect()
    }

    /// Moves bytes between the connections and `node`. It reads from the ready connections
    /// before it sends.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn service(
        &mut self,
        now: Instant,
        node: &mut SwitchNode,
        poller: &Poller,
    ) -> io::Result<Activity> {
        if let Some(number) = self.tracer.echo_due(now) {
            (0..self.links.len()).for_each(|index| node.echo(index, number));
        }
        self.last_service = now;
        let mut received = false;
        for index in 0..self.links.len() {
            for lane in 0..self.links[index].lanes.len() {
                received |= self.receive(now, (index, lane), node, poller)?;
            }
        }
        let mut all = self.drain(now, node, poller)?;
        all.moved |= received;
        for lane in self.links.iter_mut().flat_map(|link| &mut link.lanes) {
            lane.watch(poller)?;
        }
        let lanes = self.links.iter().flat_map(|link| &link.lanes);
        let carriers = lanes.map(|lane| lane.carrier.as_ref()?.timer());
        all.timer = earliest(carriers.chain([all.timer]));
        Ok(all)
    }

    /// Reads from one connection; returns whether anything happened.
    fn receive(
        &mut self,
        now: Instant,
        (index, number): (usize, usize),
        node: &mut SwitchNode,
        poller: &Poller,
    ) -> io::Result<bool> {
        let (tap, tracer) = (Tap::link(index), &self.tracer);
        let Link { lanes, name } = &mut self.links[index];
        let (lane, place) = (&mut lanes[number], (index, number));
        let Some(carrier) = &mut lane.carrier else { return Ok(false) };
        let connected = !lane.open;
        if connected {
            match carrier.established(now) {
                Ok(false) => return Ok(false),
                Ok(true) => {}
                Err(error) => {
                    let failure = failure(carrier, node.is_up(index));
                    let failed = || Input::Failed(error.to_string());
                    lane.carrier = None;
                    node.handle_lane(now, place, failure.unwrap_or_else(failed));
                    return Ok(true);
                }
            }
            if node.upstream().tunnel(index).sends_records() {
                carrier.send_as_records();
            }
            *name = carrier.identity().map(|identity| identity.name.clone());
            poller.modify(&*carrier, false)?;
            (lane.open, lane.watched) = (true, false);
            // A further path changes nothing that the trace shows.
            let tunnel = node.upstream().tunnel(index);
            if !tunnel.is_up() || tunnel.is_interrupted() {
                tracer.connected(tap, tunnel.is_interrupted());
            }
            node.report_frames(index, tracer.is_on());
            node.handle_lane(now, place, Input::Connected);
        }
        // A new connection may have received bytes already.
        if !poller.take_ready(&*carrier) && !connected {
            return Ok(false);
        }
        let read = read(now, place, carrier, tracer, node);
        Ok(connected | read | carrier.take_room_changed())
    }

    /// Executes the node's actions, within the present room.
    fn drain(
        &mut self,
        now: Instant,
        node: &mut SwitchNode,
        poller: &Poller,
    ) -> io::Result<Activity> {
        self.make_room(now, node);
        let mut moved = false;
        loop {
            match node.poll_links(now) {
                Output::Connect { link, lane, attempt } => {
                    self.connect(now, (link, lane), attempt, node, poller)?;
                }
                Output::Transmit { link, lane, bytes } => {
                    self.send(now, (link, lane), bytes, node);
                }
                Output::Close { link, lane, cause } => {
                    let tunnel = node.upstream().tunnel(link);
                    if let Some(cause) = cause
                        && (!tunnel.is_up() || tunnel.is_interrupted())
                    {
                        self.tracer.lost(Tap::link(link), &cause, tunnel.is_interrupted());
                    }
                    self.links[link].lanes[lane].carrier = None;
                }
                Output::Event(event) => self.queue_event(event),
                Output::Timeout(timer) => return Ok(Activity { moved, timer }),
            }
            moved = true;
        }
    }

    /// Sends remaining bytes, and reports to the node how many bytes each carrier accepts now.
    fn make_room(&mut self, now: Instant, node: &mut SwitchNode) {
        for (index, link) in self.links.iter_mut().enumerate() {
            for (number, lane) in link.lanes.iter_mut().enumerate() {
                if let Some(carrier) = lane.open() {
                    let flushed = carrier.flush(now);
                    node.handle_lane(now, (index, number), room_after(now, carrier, flushed));
                }
            }
        }
    }

    fn connect(
        &mut self,
        now: Instant,
        (index, number): (usize, usize),
        attempt: usize,
        node: &mut SwitchNode,
        poller: &Poller,
    ) -> io::Result<()> {
        let Link { lanes, name } = &mut self.links[index];
        let lane = &mut lanes[number];
        lane.attempt = attempt;
        let address = lane.peer.address(attempt);
        match Carrier::connect(now, address, name.as_ref(), &self.settings) {
            Ok(carrier) => {
                poller.add(&carrier, carrier.connects_when_writable())?;
                (lane.carrier, lane.open) = (Some(carrier), false);
            }
            Err(error) => {
                node.handle_lane(now, (index, number), Input::Failed(error.to_string()));
            }
        }
        Ok(())
    }

    fn send(
        &mut self,
        now: Instant,
        (index, number): (usize, usize),
        bytes: Bytes,
        node: &mut SwitchNode,
    ) {
        let Some(carrier) = self.links[index].lanes[number].open() else { return };
        self.tracer.frames(Tap::link(index), || node.poll_report(index));
        let sent = carrier.send(now, bytes);
        let place = (index, number);
        if sent.is_err() {
            // What arrived before says more than the error, such as a Goodbye.
            read(now, place, carrier, &self.tracer, node);
        }
        node.handle_lane(now, place, room_after(now, carrier, sent));
    }

    /// Queues an event. Of consecutive failed attempts only the latest is kept.
    fn queue_event(&mut self, mut event: LinkEvent) {
        if let LinkEvent::Failed { link, attempt, why, .. } = &mut event {
            let named = |lane: &Lane| lane.peer.named(*attempt);
            let lanes = self.links[*link].lanes.iter();
            *why = format!("{}: {why}", lanes.map(named).collect::<Vec<_>>().join(" and "));
            if matches!(self.events.back(), Some(LinkEvent::Failed { link: last, .. }) if last == link)
            {
                self.events.pop_back();
            }
        }
        self.events.push_back(event);
    }

    /// Sends Goodbye on every link and closes it.
    pub fn close(&mut self, node: &mut SwitchNode) {
        let now = self.last_service;
        self.make_room(now, node);
        node.close(now);
        loop {
            match node.poll_links(now) {
                Output::Transmit { link, lane, bytes } => {
                    self.send(now, (link, lane), bytes, node);
                }
                Output::Close { link, lane, .. } => {
                    let lane = &mut self.links[link].lanes[lane];
                    if let Some(carrier) = lane.open() {
                        carrier.linger();
                    }
                    lane.carrier = None;
                }
                Output::Connect { .. } | Output::Event(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }
}

/// Passes on what `carrier` has received, and its end. Returns whether there was anything.
fn read(
    now: Instant,
    place: (usize, usize),
    carrier: &mut Carrier,
    tracer: &Tracer,
    node: &mut SwitchNode,
) -> bool {
    let mut any = false;
    let gone = carrier.receive(now, |bytes| {
        any = true;
        node.handle_lane(now, place, Input::Received(bytes));
        tracer.frames(Tap::link(place.0), || node.poll_report(place.0));
    });
    if gone {
        let failure = failure(carrier, node.is_up(place.0));
        node.handle_lane(now, place, failure.unwrap_or(Input::Closed));
    }
    any || gone
}

/// The input for a node after TLS has ended a connection. Only a refused key ends a session that is
/// up.
fn failure(carrier: &mut Carrier, is_up: bool) -> Option<Input> {
    let refused = carrier.is_refused() || !is_up;
    let why = carrier.take_failure()?;
    Some(if refused { Input::Refused(why) } else { Input::Failed(why) })
}

/// The input for a node after an attempt to send: the number of bytes that the carrier accepts now,
/// or the loss of the link.
pub(crate) fn room_after(now: Instant, carrier: &mut Carrier, sent: io::Result<()>) -> Input {
    sent.map_or(Input::Closed, |()| Input::Room(carrier.room(now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waiting;
    use crate::net::{Address, Listener};
    use switch::Tunnel;
    use switch::tunnel::{self, Settings};
    use wire::Duration;
    use wire::frame::Role;

    /// The node is not scheduled for longer than the loss limit; `hears` states whether its far
    /// side sent a frame meanwhile. Returns whether the link is kept.
    fn late(hears: bool) -> bool {
        let listener =
            Listener::bind("127.0.0.1:0".parse().unwrap(), LinkSettings::default()).unwrap();
        let mut links = Links::new(&[Address::from(listener.address().unwrap())]);
        let tunnel = Settings::new(Role::Host, 1);
        let settings =
            switch::upstream::Settings { ports: 1, max_payload: 4096, p2p: false, tunnel };
        let mut node = SwitchNode::new(settings, None);
        let mut poller = Poller::new(Waiting::Block).unwrap();
        let mut now = Instant::ZERO;
        let mut turn = |now, node: &mut SwitchNode| {
            poller.end_turn();
            poller.refresh(now).unwrap();
            links.service(now, node, &poller).unwrap();
        };
        turn(now, &mut node);
        let mut far = loop {
            if let Some(far) = listener.accept() {
                break far;
            }
        };
        let mut end = Tunnel::new(Settings::new(Role::Device, 2));
        end.handle(now, tunnel::Input::Connected);
        while !node.is_up(0) {
            turn(now, &mut node);
            while let Ok(Some(bytes)) = far.receive() {
                end.handle(now, tunnel::Input::Received(bytes));
            }
            end.handle(now, tunnel::Input::CanTransmit { bytes: 1 << 16 });
            while let tunnel::Output::Transmit(_, bytes) = end.poll(now) {
                far.send(bytes).unwrap();
            }
        }
        // Reads all frames that the far side has sent so far.
        let heard = |node: &SwitchNode| node.upstream().tunnel(0).counters().bytes_received;
        while heard(&node) < end.counters().bytes_sent {
            turn(now, &mut node);
        }
        now += Duration::from_ms(100);
        if hears {
            let tunnel::Output::Transmit(_, bytes) = end.poll(now) else { panic!("no keepalive") };
            far.send(bytes).unwrap();
        }
        now += Duration::from_ms(5_000);
        turn(now, &mut node);
        node.is_up(0)
    }

    #[test]
    fn late_node_keeps_link_if_bytes_have_arrived() {
        assert!(late(true));
        assert!(!late(false));
    }
}
