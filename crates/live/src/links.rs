//! The connections of a switch node's links: names, addresses and descriptors.
//! [`node::SwitchNode`] decides when to open and close them.

use crate::net::{Carrier, Peer, RawSettings};
use crate::poller::{Activity, Poller};
use crate::trace::Tracer;
use bytes::Bytes;
pub use node::LinkEvent;
use node::SwitchNode;
use node::path::Input;
use node::switch::Output;
use std::collections::VecDeque;
use std::io;
use switch::congestion::Rate;
use switch::upstream::next_timer;
use wire::Instant;
use wire::trace::Tap;

#[derive(Debug)]
enum Connection {
    None,
    /// Being established.
    Connecting(Carrier),
    /// Established. The flag says whether epoll watches it for output.
    Open(Carrier, bool),
}

#[derive(Debug)]
struct Link {
    peer: Peer,
    /// The latest attempt to connect: each takes the next address of the peer.
    attempt: usize,
    connection: Connection,
}

impl Link {
    /// Watches for output while the kernel takes no more bytes.
    fn watch(&mut self, poller: &Poller) -> io::Result<()> {
        if let Connection::Open(carrier, watched) = &mut self.connection
            && *watched != carrier.is_full()
        {
            *watched = !*watched;
            poller.modify(&*carrier, *watched)?;
        }
        Ok(())
    }

    fn timer(&self) -> Option<Instant> {
        match &self.connection {
            Connection::Connecting(carrier) | Connection::Open(carrier, _) => carrier.timer(),
            Connection::None => None,
        }
    }
}

/// The connections of a switch node, one per downstream port.
#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    limit: Option<Rate>,
    events: VecDeque<LinkEvent>,
    tracer: Tracer,
    raw: RawSettings,
    last_service: Instant,
}

impl Links {
    /// One connection to each of `peers`, one per downstream port.
    pub fn new<'a, P>(peers: &'a [P]) -> Self
    where
        &'a P: Into<Peer>,
    {
        let link =
            |peer: &'a P| Link { peer: peer.into(), attempt: 0, connection: Connection::None };
        Self {
            links: peers.iter().map(link).collect(),
            limit: None,
            events: VecDeque::new(),
            tracer: Tracer::off(),
            raw: RawSettings::default(),
            last_service: Instant::ZERO,
        }
    }

    /// The same with these settings for raw Ethernet.
    #[must_use]
    pub fn over(mut self, raw: RawSettings) -> Self {
        self.raw = raw;
        self
    }

    /// The same with a limit to the total output of all links. They share it evenly in bytes.
    #[must_use]
    pub fn limited(mut self, rate: Option<Rate>) -> Self {
        self.limit = rate;
        self
    }

    /// The limit to the total output of all links.
    pub fn limit(&self) -> Option<Rate> {
        self.limit
    }

    /// The same, recorded by `tracer`.
    #[must_use]
    pub fn traced(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
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
        let link = &self.links[index];
        link.peer.named(link.attempt)
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
            received |= self.receive(now, index, node, poller)?;
        }
        let mut all = self.drain(now, node, poller)?;
        all.moved |= received;
        for link in &mut self.links {
            link.watch(poller)?;
        }
        all.timer = next_timer(self.links.iter().map(Link::timer).chain([all.timer]));
        Ok(all)
    }

    /// Reads from one connection; returns whether anything happened.
    fn receive(
        &mut self,
        now: Instant,
        index: usize,
        node: &mut SwitchNode,
        poller: &Poller,
    ) -> io::Result<bool> {
        let (tap, tracer) = (Tap::link(index), &self.tracer);
        let link = &mut self.links[index];
        let connected = match &mut link.connection {
            Connection::Connecting(carrier) => match carrier.established(now) {
                Ok(false) => return Ok(false),
                Ok(true) => true,
                Err(error) => {
                    link.connection = Connection::None;
                    node.handle_link(now, index, Input::Failed(error.to_string()));
                    return Ok(true);
                }
            },
            _ => false,
        };
        if connected {
            let connection = std::mem::replace(&mut link.connection, Connection::None);
            let Connection::Connecting(mut carrier) = connection else {
                unreachable!("it has connected");
            };
            if node.upstream().tunnel(index).sends_records() {
                carrier.send_as_records();
            }
            poller.modify(&carrier, false)?;
            link.connection = Connection::Open(carrier, false);
            tracer.connected(tap);
            node.report_frames(index, tracer.is_on());
            node.handle_link(now, index, Input::Connected);
        }
        let Connection::Open(carrier, _) = &mut link.connection else { return Ok(false) };
        // A new connection may have received bytes already.
        if !poller.take_ready(&*carrier) && !connected {
            return Ok(false);
        }
        let mut received = connected;
        let gone = carrier.receive(now, |bytes| {
            received = true;
            node.handle_link(now, index, Input::Received(bytes));
            tracer.frames(tap, || node.poll_report(index));
        });
        received |= carrier.take_room_changed();
        if gone {
            node.handle_link(now, index, Input::Closed);
        }
        Ok(received || gone)
    }

    /// Carries out what the node asks for, within the room there is now.
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
                Output::Connect { link, attempt } => {
                    self.connect(now, (link, attempt), node, poller)?;
                }
                Output::Transmit { link, bytes } => self.send(now, link, bytes, node),
                Output::Close { link, cause } => {
                    if let Some(cause) = cause {
                        self.tracer.down(Tap::link(link), &cause);
                    }
                    self.links[link].connection = Connection::None;
                }
                Output::Event(event) => self.queue_event(event),
                Output::Timeout(timer) => return Ok(Activity { moved, timer }),
            }
            moved = true;
        }
    }

    /// Sends what is left over, and reports to the node how much more may follow.
    fn make_room(&mut self, now: Instant, node: &mut SwitchNode) {
        for (index, link) in self.links.iter_mut().enumerate() {
            if let Connection::Open(carrier, _) = &mut link.connection {
                let input = match carrier.flush(now) {
                    Ok(()) => Input::Room(carrier.room(now)),
                    Err(_) => Input::Closed,
                };
                node.handle_link(now, index, input);
            }
        }
    }

    fn connect(
        &mut self,
        now: Instant,
        (index, attempt): (usize, usize),
        node: &mut SwitchNode,
        poller: &Poller,
    ) -> io::Result<()> {
        let link = &mut self.links[index];
        link.attempt = attempt;
        match Carrier::connect(now, link.peer.address(attempt), self.raw) {
            Ok(carrier) => {
                poller.add(&carrier, carrier.connects_when_writable())?;
                link.connection = Connection::Connecting(carrier);
            }
            Err(error) => node.handle_link(now, index, Input::Failed(error.to_string())),
        }
        Ok(())
    }

    fn send(&mut self, now: Instant, index: usize, bytes: Bytes, node: &mut SwitchNode) {
        let Connection::Open(carrier, _) = &mut self.links[index].connection else { return };
        self.tracer.frames(Tap::link(index), || node.poll_report(index));
        let input = match carrier.send(now, bytes) {
            Ok(()) => Input::Room(carrier.room(now)),
            Err(_) => Input::Closed,
        };
        node.handle_link(now, index, input);
    }

    /// Queues an event. Of consecutive failed attempts only the latest is kept.
    fn queue_event(&mut self, mut event: LinkEvent) {
        if let LinkEvent::Failed { link, attempt, why, .. } = &mut event {
            *why = format!("{}: {why}", self.links[*link].peer.named(*attempt));
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
                Output::Transmit { link, bytes } => self.send(now, link, bytes, node),
                Output::Close { link, .. } => {
                    let connection = &mut self.links[link].connection;
                    if let Connection::Open(carrier, _) = connection {
                        carrier.linger();
                    }
                    *connection = Connection::None;
                }
                Output::Connect { .. } | Output::Event(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Waiting;
    use crate::net::{Address, Listener};
    use bytes::BytesMut;
    use switch::Tunnel;
    use switch::tunnel::{self, Settings};
    use wire::Duration;
    use wire::frame::Role;

    /// A node is not scheduled for longer than the loss limit; `hears` says whether its far
    /// side sent a frame meanwhile. Returns whether the link is kept.
    fn late(hears: bool) -> bool {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
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
            let mut frames = BytesMut::new();
            while let tunnel::Output::Transmit(_) = end.poll(now, &mut frames) {
                far.send(frames.split().freeze()).unwrap();
            }
        }
        // Read everything that the far side has sent so far.
        let heard = |node: &SwitchNode| node.upstream().tunnel(0).counters().bytes_received;
        while heard(&node) < end.counters().bytes_sent {
            turn(now, &mut node);
        }
        now += Duration::from_ms(100);
        if hears {
            let mut frames = BytesMut::new();
            let tunnel::Output::Transmit(_) = end.poll(now, &mut frames) else {
                panic!("no keepalive")
            };
            far.send(frames.freeze()).unwrap();
        }
        now += Duration::from_ms(5_000);
        turn(now, &mut node);
        node.is_up(0)
    }

    #[test]
    fn what_has_arrived_keeps_the_link_of_a_node_that_is_late() {
        assert!(late(true));
        assert!(!late(false));
    }
}
