//! The host's side of the distributed switch: the unchanged upstream port with
//! its mirrored downstream ports, between a PCIe link and the network.

use super::{Context, earliest};
use crate::kernel::Component;
use crate::measure::{Point, Segment};
use crate::network::Network;
use crate::pcie::Link;
use crate::transport::{End, Stream, Transport};
use bytes::BytesMut;
use pcie::{Function, Input, Output};
use std::ops::RangeInclusive;
use switch::congestion::Rate;
use switch::egress::Egress;
use switch::tunnel;
use switch::upstream::{LinkOutput, Upstream};
use wire::{Duration, Instant};

/// See the module.
#[derive(Debug)]
pub(crate) struct SwitchNode {
    upstream: Upstream,
    egress: Egress,
    frames: BytesMut,
    max_payload: usize,
    /// First link of this switch among those of the world.
    pub first: usize,
    ways: Vec<Way>,
    /// Links that came up or went down, not told yet.
    changes: Vec<(usize, bool)>,
    ups: Vec<bool>,
    /// Links that are up.
    pub up: usize,
    /// Links that went down.
    pub lost: u64,
}

/// Bytes of the largest frame that a node makes: one that fits Ethernet, or the
/// largest TLP alone.
pub(crate) fn largest_frame(max_payload: usize) -> usize {
    (wire::frame::HEADER + 16 + max_payload + 4).max(1500)
}

/// Pause between attempts to connect, and how long one may take: as in
/// `live::links`.
const RETRY: Duration = Duration::from_ms(200);
const CONNECTING: Duration = Duration::from_ms(2_000);

/// The connection of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Being made, until then at most.
    Connecting(Instant),
    Open,
    /// Tried again then.
    Waiting(Instant),
}

/// What the switch works with.
pub(crate) struct Around<'a> {
    pub transports: &'a mut [Transport],
    pub network: &'a mut Network,
    pub streams: &'a mut [[Stream; 2]],
    pub link: &'a mut Link,
    /// The root complex.
    pub above: Component,
    /// The device nodes' ends.
    pub far: &'a [Component],
}

impl SwitchNode {
    /// `limit` is for all its links together.
    pub fn new(settings: switch::upstream::Settings, first: usize, limit: Option<Rate>) -> Self {
        let max_payload = settings.max_payload;
        let egress = Egress::new(usize::from(settings.ports), largest_frame(max_payload), limit);
        let ways = vec![Way::Connecting(Instant::ZERO + CONNECTING); usize::from(settings.ports)];
        let mut upstream = Upstream::new(settings);
        (0..ways.len()).for_each(|port| upstream.report_frames(port, true));
        let (changes, ups) = (Vec::new(), vec![false; ways.len()]);
        let (up, lost) = (0, 0);
        Self {
            upstream,
            egress,
            frames: BytesMut::new(),
            max_payload,
            first,
            ways,
            changes,
            ups,
            up,
            lost,
        }
    }

    /// Its links.
    pub fn links(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.upstream.links()
    }

    /// What went wrong: upstream port, then downstream ports.
    pub fn errors(&self) -> Vec<pcie::Errors> {
        self.upstream.errors()
    }

    /// The link above was reset.
    pub fn hot_reset(&mut self, now: Instant) {
        self.upstream.handle(now, Input::HotReset);
    }

    /// Its end of a link, unless the rate limit holds everything back.
    pub fn sender(&self, now: Instant, port: usize) -> Option<&tunnel::Tunnel> {
        (!self.egress.is_held(now)).then(|| self.upstream.tunnel(port))
    }

    /// Does what can be done now; yields when to be woken.
    pub fn run(&mut self, around: &mut Around, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        around.link.settle_up(now);
        (0..self.upstream.links()).for_each(|port| self.connection(port, around, context));
        self.receive_network(around, context);
        self.receive_above(around, context);
        let mut timers = None;
        // Taking TLPs out of the tunnels returns credits, which are sent; a
        // link that went up or down may leave more to send above.
        self.send_above(around, context);
        while self.send_network(around, context, &mut timers) {
            if !self.send_above(around, context) {
                break;
            }
        }
        let link = &around.link;
        for at in [link.up.next_arrival(), link.down.next_credits()].into_iter().flatten() {
            context.kernel.arm_by(around.above, at);
        }
        for (transport, far) in around.transports.iter().zip(around.far) {
            timers = earliest([timers, transport.next(now, End::Host)]);
            if let Some(at) = transport.next_arrival(End::Device) {
                context.kernel.arm_by(*far, at);
            }
        }
        let link = &around.link;
        let connection = self.next_connection();
        let wire = link.up.next_ready(now).filter(|_| self.upstream.waits_for_link());
        earliest([timers, connection, link.down.next_arrival(), wire])
    }

    /// Connections are kept, and made again.
    fn connection(&mut self, port: usize, around: &mut Around, context: &mut Context) {
        let (now, transport) = (context.now, &around.transports[port]);
        let closed = transport.is_closed(now, End::Host, around.network);
        match self.ways[port] {
            Way::Connecting(_) if transport.is_connected(now, End::Host, around.network) => {
                self.ways[port] = Way::Open;
                self.upstream.handle_link(now, port, tunnel::Input::Connected);
            }
            Way::Connecting(until) if closed || now >= until => {
                transport.close(now, End::Host, around.network, context.kernel);
                self.ways[port] = Way::Waiting(now + RETRY);
            }
            // The link says that it is down, see there.
            Way::Open if closed => {
                self.upstream.handle_link(now, port, tunnel::Input::Disconnected);
            }
            Way::Waiting(until) if now >= until => {
                transport.reopen(now, End::Host, around.network, context.kernel);
                self.ways[port] = Way::Connecting(now + CONNECTING);
            }
            _ => {}
        }
    }

    /// A link went down: another connection follows.
    fn gone(&mut self, port: usize, around: &mut Around, context: &mut Context) {
        let now = context.now;
        self.changes.push((port, false));
        around.transports[port].close(now, End::Host, around.network, context.kernel);
        self.ways[port] = Way::Waiting(now + RETRY);
    }

    /// When a connection is to be looked at.
    fn next_connection(&self) -> Option<Instant> {
        let at = |way: &Way| match way {
            Way::Connecting(until) | Way::Waiting(until) => Some(*until),
            Way::Open => None,
        };
        self.ways.iter().filter_map(at).min()
    }

    /// A link that came up or went down since it was asked last: its port, and
    /// the buses below.
    pub fn change(&mut self) -> Option<(usize, bool, RangeInclusive<u8>)> {
        let (port, up) = if self.changes.is_empty() { None } else { Some(self.changes.remove(0)) }?;
        Some((port, up, self.upstream.buses(port)))
    }

    fn point(&self, port: usize) -> Point {
        Point::TunnelHost((self.first + port) as u16)
    }

    /// What its end of a link did; yields the number of TLPs that left.
    fn account(
        &mut self,
        port: usize,
        streams: &mut [[Stream; 2]],
        context: &mut Context,
    ) -> usize {
        let (point, upstream) = (self.point(port), &mut self.upstream);
        context.account(point, &mut streams[port][0], || upstream.poll_report(port))
    }

    fn receive_network(&mut self, around: &mut Around, context: &mut Context) {
        let now = context.now;
        for port in 0..self.upstream.links() {
            while let Some(arrived) =
                around.transports[port].receive(now, End::Host, around.network)
            {
                context.arrived(0x3000 + port as u64, arrived.bytes.len());
                context.observe_stream(self.point(port), false, &arrived.bytes);
                let stream = &mut around.streams[port][1];
                stream.received(arrived.bytes.len());
                while let Some(mark) = stream.arrived(now, &arrived.way, context.journeys) {
                    self.upstream.handle_link(now, port, tunnel::Input::Mark(mark));
                }
                self.upstream.handle_link(now, port, tunnel::Input::Received(arrived.bytes));
                self.account(port, around.streams, context);
            }
        }
    }

    /// TLPs of the root complex.
    fn receive_above(&mut self, around: &mut Around, context: &mut Context) {
        let now = context.now;
        around.link.arrive_down(now);
        while let Some(received) = around.link.take_down(now, self.upstream.ready()) {
            context.delivered(&received.tlp);
            context.journeys.advance(received.tlp.mark, now, Segment::Pcie);
            self.upstream.handle(now, Input::Tlp(received.tlp));
        }
    }

    /// Frames leave, the links in turn; whether any did, or a link went up or
    /// down.
    fn send_network(
        &mut self,
        around: &mut Around,
        context: &mut Context,
        timers: &mut Option<Instant>,
    ) -> bool {
        let now = context.now;
        let changes = self.changes.len();
        let mut sent = false;
        let mut egress = std::mem::take(&mut self.egress);
        egress.serve(now, |port| {
            let room = around.transports[port].room(now, End::Host, around.network);
            let length = self.send_frame(port, room, around, context, timers);
            sent |= length.is_some();
            length
        });
        if let Some(at) = egress.held_until(now) {
            // Links come up and go down all the same.
            for port in 0..self.upstream.links() {
                self.send_frame(port, 0, around, context, timers);
            }
            *timers = earliest([*timers, Some(at)]);
        }
        self.egress = egress;
        sent || self.changes.len() != changes
    }

    /// A frame of at most `bytes` leaves on a link; yields its length.
    fn send_frame(
        &mut self,
        port: usize,
        bytes: usize,
        around: &mut Around,
        context: &mut Context,
        timers: &mut Option<Instant>,
    ) -> Option<usize> {
        let now = context.now;
        self.upstream.handle_link(now, port, tunnel::Input::CanTransmit { bytes });
        loop {
            let output = self.upstream.poll_link(now, port, &mut self.frames);
            let tlps = self.account(port, around.streams, context);
            match output {
                LinkOutput::Transmit(length) => {
                    let bytes = self.frames.split().freeze();
                    context.observe_stream(self.point(port), true, &bytes);
                    let (transport, carried) = (&mut around.transports[port], (bytes, tlps));
                    transport.send(now, End::Host, carried, around.network, context.kernel);
                    return Some(length);
                }
                LinkOutput::Up(_) => {
                    self.up += 1;
                    self.ups[port] = true;
                    self.changes.push((port, true));
                    context.observe_link(self.point(port), true);
                }
                LinkOutput::Down(_) => {
                    // One that was turned away was never up.
                    let was = u64::from(std::mem::take(&mut self.ups[port]));
                    self.up -= was as usize;
                    self.lost += was;
                    context.observe_link(self.point(port), false);
                    around.streams[port].iter_mut().for_each(|s| s.clear(context.journeys));
                    self.gone(port, around, context);
                }
                LinkOutput::EchoReply(_) => {}
                LinkOutput::Timeout(at) => {
                    *timers = earliest([*timers, at]);
                    return None;
                }
            }
        }
    }

    fn send_above(&mut self, around: &mut Around, context: &mut Context) -> bool {
        let now = context.now;
        let mut moved = false;
        loop {
            let ready = around.link.up.ready(now, self.max_payload);
            let Output::Tlp(mut tlp) = self.upstream.poll(now, ready) else { return moved };
            context.journey_goes_on(&mut tlp);
            around.link.up.send(now, tlp);
            moved = true;
        }
    }
}
