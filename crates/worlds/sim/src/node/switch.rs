//! A switch node: the state machine of live switch nodes below a PCIe link. Transports are the
//! paths of its tunnel links, one or two each.

use super::Context;
use super::port::PushRooms;
use crate::kernel::Component;
use crate::measure::{LinkChange, Point, Stage};
use crate::network::Network;
use crate::pcie::Link;
use crate::processor::{Crossing, Processor};
use crate::transport::{End, Stream, Transport};
use node::LinkEvent;
use node::path::Input;
use node::switch::Output;
use pcie::{Function, Ports, Ready, Wait};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use switch::congestion::Rate;
use switch::tunnel::{self, Report};
use wire::earliest;
use wire::{Bdf, Instant};

/// The component of a switch.
#[derive(Debug)]
pub(crate) struct SwitchNode {
    node: node::SwitchNode,
    max_payload: usize,
    /// Index of this switch's first link among all links.
    pub first: usize,
    /// Number of tunnel links.
    ports: usize,
    lanes: Vec<Lane>,
    /// Link changes that the host has not handled: port, whether the link is up, buses below.
    pub changes: VecDeque<(usize, bool, RangeInclusive<u8>)>,
    /// Number of links that are up.
    pub up: usize,
    /// When the node must be polled next for its links.
    timer: Option<Instant>,
    /// Whether the node has received input since the last poll for its links.
    touched: bool,
    /// TLPs from above and to above, with the processor of a switch node's station.
    crossings: [Crossing; 2],
}

/// One path of a link.
#[derive(Debug)]
struct Lane {
    port: usize,
    /// Its number at the link.
    number: usize,
    /// The path, as last reported to the node.
    path: Path,
    /// Room of the path, as last reported to the node.
    room: usize,
}

/// A path, as last reported to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    None,
    Connecting,
    Open,
}

/// Parts of the world for a switch.
pub(crate) struct Env<'a> {
    /// By link, then by path.
    pub transports: &'a mut [Vec<Transport>],
    pub network: &'a mut Network,
    pub streams: &'a mut [[Stream; 2]],
    pub link: &'a mut Link,
    /// The root complex.
    pub above: Component,
    /// The device nodes at the other ends.
    pub far: &'a [Component],
}

impl SwitchNode {
    /// A switch with one or two paths for each link. `limit` applies to all its links together.
    pub(crate) fn new(
        settings: switch::upstream::Settings,
        first: usize,
        limit: Option<Rate>,
        paths: &[usize],
    ) -> Self {
        let (max_payload, ports) = (settings.max_payload, usize::from(settings.ports));
        let mut node = node::SwitchNode::with_lanes(settings, limit, paths);
        let lane = |port| move |number| Lane { port, number, path: Path::None, room: 0 };
        let lanes = paths.iter().enumerate().flat_map(|(port, count)| (0..*count).map(lane(port)));
        (0..ports).for_each(|port| node.report_frames(port, true));
        Self {
            node,
            max_payload,
            first,
            ports,
            lanes: lanes.collect(),
            changes: VecDeque::new(),
            up: 0,
            timer: Some(Instant::ZERO),
            touched: true,
            crossings: Default::default(),
        }
    }

    /// Makes the processor of a station handle TLPs. A host's own switch has none of its own.
    pub(crate) fn set_processor(&mut self, processor: Option<Processor>) {
        self.crossings.iter_mut().for_each(|crossing| crossing.processor = processor.clone());
    }

    /// The indices of the switch's tunnel links.
    pub(crate) fn links(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.ports
    }

    /// Errors of the upstream port, then of the downstream ports.
    pub(crate) fn errors(&self) -> Vec<pcie::Errors> {
        self.node.upstream().errors()
    }

    /// Handles a reset of the link above.
    pub(crate) fn hot_reset(&mut self, now: Instant) {
        self.touched = true;
        self.node.handle(now, pcie::Input::HotReset);
    }

    /// Counters of the switch's end of a link.
    pub(crate) fn counters(&self, port: usize) -> tunnel::Counters {
        self.node.upstream().tunnel(port).counters()
    }

    /// The switch's ends of its links.
    pub(crate) fn tunnels(&self) -> impl Iterator<Item = &tunnel::Tunnel> {
        self.links().map(|link| self.node.upstream().tunnel(link - self.first))
    }

    /// The switch's end of a link, unless the rate limit forbids sending.
    pub(crate) fn sender(&self, now: Instant, port: usize) -> Option<&tunnel::Tunnel> {
        (!self.node.is_rate_limited(now)).then(|| self.node.upstream().tunnel(port))
    }

    /// The rooms for pushed bytes.
    pub(crate) fn push_rooms(&self) -> PushRooms {
        let upstream = self.node.upstream();
        let room = |port| {
            let bus = *upstream.buses(port).start();
            Some((bus, upstream.push_room(Bdf::new(bus, 0, 0))?))
        };
        PushRooms((0..self.ports).filter_map(room).collect())
    }

    /// Runs until no work is left now. Returns the next wake-up.
    pub(crate) fn run(&mut self, env: &mut Env, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        env.link.take_deferred_up(now);
        (0..self.lanes.len()).for_each(|lane| self.opened(lane, env, now));
        self.receive_network(env, context);
        (0..self.lanes.len()).for_each(|lane| self.closed(lane, env, now));
        self.receive_above(env, context);
        // Removing TLPs from tunnels returns credits, which must be sent.
        let mut work = self.touched | self.has_received() | self.timer.is_some_and(|at| at <= now);
        let (_, mut wait) = self.send_above(env, context);
        work |= self.update_room(env, now);
        // After a poll without work, only new input creates work.
        while work {
            self.timer = self.serve_links(env, context);
            // A link change may cause TLPs for the root complex.
            (work, wait) = self.send_above(env, context);
        }
        self.touched = false;
        let waits = self.send_ahead(env, context, wait.receiver);
        let mut timers = self.timer;
        let link = &env.link;
        let next = earliest([link.up.next_arrival(), link.down.next_credits()]);
        context.kernel.arm_by_next(env.above, next);
        for (transports, far) in env.transports.iter().zip(env.far) {
            for transport in transports {
                timers = earliest([timers, transport.next(now, End::Host, env.network)]);
                context.kernel.arm_by_next(*far, transport.next_arrival(End::Device));
            }
        }
        let wire = link.up.next_ready(now).filter(|_| waits);
        earliest([timers, link.down.next_arrival(), wire])
    }

    /// Whether TLPs of a link wait to be sent upwards.
    fn has_received(&self) -> bool {
        let upstream = self.node.upstream();
        (0..self.ports).any(|port| upstream.tunnel(port).has_received())
    }

    /// Reports an opened connection to the node.
    fn opened(&mut self, lane: usize, env: &Env, now: Instant) {
        let Lane { port, number, path, room } = &mut self.lanes[lane];
        let connected = env.transports[*port][*number].is_connected(now, End::Host, env.network);
        if *path == Path::Connecting && connected {
            (*path, *room) = (Path::Open, 0);
            self.touched = true;
            self.node.handle_lane(now, (*port, *number), Input::Connected);
        }
    }

    /// Reports a closed connection to the node, behind everything that was received.
    fn closed(&mut self, lane: usize, env: &Env, now: Instant) {
        let Lane { port, number, path, .. } = &mut self.lanes[lane];
        let closed = env.transports[*port][*number].is_closed(now, End::Host, env.network);
        if *path != Path::None && closed {
            *path = Path::None;
            self.touched = true;
            self.node.handle_lane(now, (*port, *number), Input::Closed);
        }
    }

    /// The place in `lanes` of a path of a link.
    fn lane(&self, (port, number): (usize, usize)) -> usize {
        let is_it = |lane: &Lane| (lane.port, lane.number) == (port, number);
        self.lanes.iter().position(is_it).expect("the node names paths of its links")
    }

    fn point(&self, port: usize) -> Point {
        Point::TunnelHost((self.first + port) as u16)
    }

    /// Accounts the activity of a link end. Returns the number of TLPs sent.
    fn account(
        &mut self,
        port: usize,
        streams: &mut [[Stream; 2]],
        context: &mut Context,
    ) -> usize {
        let (point, node) = (self.point(port), &mut self.node);
        context.account(point, &mut streams[port][0], || {
            let report = node.poll_report(port)?;
            let lane = if let Report::Frame(path, _) = &report { *path } else { 0 };
            Some((lane, report))
        })
    }

    fn receive_network(&mut self, env: &mut Env, context: &mut Context) {
        let now = context.now;
        for lane in 0..self.lanes.len() {
            let Lane { port, number, .. } = self.lanes[lane];
            let place = (port, number);
            while let Some(arrived) =
                env.transports[port][number].receive(now, End::Host, env.network)
            {
                context.arrived(0x3000 + port as u64, arrived.bytes.len());
                context.observe_stream(self.point(port), false, &arrived.bytes);
                let (stream, journeys) = (&mut env.streams[port][1], &mut *context.journeys);
                stream.received(number, arrived.bytes.len());
                while let Some(trace_id) = stream.arrived(now, number, &arrived.stages, journeys) {
                    self.node.handle_lane(now, place, Input::TraceId(trace_id));
                }
                self.touched = true;
                self.node.handle_lane(now, place, Input::Received(arrived.bytes));
                self.account(port, env.streams, context);
            }
        }
    }

    /// Takes TLPs of the root complex.
    fn receive_above(&mut self, env: &mut Env, context: &mut Context) {
        let now = context.now;
        let Link { down, up } = &mut *env.link;
        down.arrive(now, up);
        while let Some(received) = down.take(now, self.node.ready(), up) {
            context.delivered(&received.tlp);
            context.journeys.advance(received.tlp.trace_id, now, Stage::Pcie);
            self.crossings[0].pass(now, &received.tlp);
            self.touched = true;
            self.node.handle(now, pcie::Input::Tlp(received.tlp));
        }
    }

    /// Reports changed room of the open paths to the node. Returns whether there was a change.
    fn update_room(&mut self, env: &mut Env, now: Instant) -> bool {
        let mut any = false;
        for lane in self.lanes.iter_mut().filter(|lane| lane.path == Path::Open) {
            let (port, number) = (lane.port, lane.number);
            let room = env.transports[port][number].room(now, End::Host, env.network);
            if std::mem::replace(&mut lane.room, room) != room {
                self.node.handle_lane(now, (port, number), Input::Room(room));
                any = true;
            }
        }
        any
    }

    /// Executes the node's actions for its links. Returns the timeout of the node.
    fn serve_links(&mut self, env: &mut Env, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        self.update_room(env, now);
        loop {
            match self.node.poll_links(now) {
                Output::Connect { link, lane, .. } => {
                    let at = self.lane((link, lane));
                    self.lanes[at].path = Path::Connecting;
                    env.transports[link][lane].connect(now, env.network, context.kernel);
                    self.opened(at, env, now);
                    self.closed(at, env, now);
                    self.update_room(env, now);
                }
                Output::Transmit { link, lane, bytes } => {
                    let tlps = self.account(link, env.streams, context);
                    context.observe_stream(self.point(link), true, &bytes);
                    let at = self.lane((link, lane));
                    self.lanes[at].room -= bytes.len();
                    let (transport, carried) = (&mut env.transports[link][lane], (bytes, tlps));
                    transport.send(now, End::Host, carried, env.network, context.kernel);
                    self.update_room(env, now);
                }
                Output::Close { link, lane, .. } => {
                    self.account(link, env.streams, context);
                    let at = self.lane((link, lane));
                    self.lanes[at].path = Path::None;
                    env.transports[link][lane].close(now, End::Host, env.network, context.kernel);
                    let goes_on = self.node.upstream().tunnel(link).is_up();
                    for stream in &mut env.streams[link] {
                        stream.clear(lane, context.journeys, goes_on);
                    }
                }
                Output::Event(event) => self.event(event, context),
                Output::Timeout(at) => return at,
            }
        }
    }

    fn event(&mut self, event: LinkEvent, context: &mut Context) {
        let (link, change, buses) = match event {
            LinkEvent::Up(link, _) => (link, LinkChange::Up, self.node.upstream().buses(link)),
            LinkEvent::Down { link, buses, .. } => (link, LinkChange::Down, buses),
            LinkEvent::Interrupted(link, _) => {
                return context.observe_link(self.point(link), LinkChange::Interrupted);
            }
            LinkEvent::Resumed(link) => {
                return context.observe_link(self.point(link), LinkChange::Resumed);
            }
            // Failovers are counted.
            LinkEvent::PathLost(..)
            | LinkEvent::PathUp(..)
            | LinkEvent::FailedOver(..)
            | LinkEvent::Failed { .. }
            | LinkEvent::Echo(..) => return,
        };
        let up = change == LinkChange::Up;
        self.up = if up { self.up + 1 } else { self.up - 1 };
        context.observe_link(self.point(link), change);
        self.changes.push_back((link, up, buses));
    }

    /// Sends TLPs while the link above accepts them. Returns whether there was any, and what the
    /// node waits for.
    fn send_above(&mut self, env: &mut Env, context: &mut Context) -> (bool, Wait) {
        let now = context.now;
        let mut moved = false;
        loop {
            let ready = env.link.up.ready(now, self.max_payload);
            let mut tlp = match self.node.poll(now, ready) {
                pcie::Output::Tlp(tlp) => tlp,
                pcie::Output::Wait(wait) => return (moved, wait),
            };
            context.start_journey(now, &mut tlp);
            self.crossings[1].pass(now, &tlp);
            env.link.up.send(now, tlp);
            moved = true;
        }
    }

    /// Sends TLPs ahead of time if no event can change them: TLPs leave in the order of arrival,
    /// and no tunnel link waits for their room. `waits`: whether TLPs wait. Returns whether further
    /// TLPs wait.
    fn send_ahead(&mut self, env: &mut Env, context: &mut Context, mut waits: bool) -> bool {
        if !waits || self.has_received() || self.crossings[1].processor.is_some() {
            return waits;
        }
        let known = env.link.known_below(context.kernel.next_time());
        let (mut at, until) = (context.now, earliest([self.timer, known]));
        while waits && let Some(next) = env.link.up.takes_ahead(at, until, self.max_payload) {
            at = next;
            if let pcie::Output::Tlp(mut tlp) = self.node.poll(at, Ready::ALL) {
                context.start_journey(at, &mut tlp);
                env.link.up.send(at, tlp);
            }
            waits = match self.node.poll(at, Ready::NONE) {
                pcie::Output::Wait(wait) => wait.receiver,
                pcie::Output::Tlp(_) => unreachable!("the link takes none"),
            };
        }
        waits
    }
}
