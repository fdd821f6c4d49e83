//! A device node: the state machine of live device nodes between the paths of its hosts and a PCIe
//! link to its drive.

use super::Context;
use super::drive::DriveNode;
use super::port::{self, Port};
use crate::kernel::Component;
use crate::measure::{LinkChange, Point, Pushed, Stage};
use crate::network::Network;
use crate::pcie::{Deferral, Link, Received};
use crate::processor::Processor;
use crate::transport::{End, Stream, Transport};
use bytes::Bytes;
use node::PathId;
use node::device::{Event, Output, SavedNode};
use node::path::Input;
use pcie::endpoint::{Unsent, is_answer};
use pcie::{Function, Ready};
use std::collections::BTreeMap;
use switch::aggregate::Policy;
use switch::congestion::Rate;
use switch::tunnel::{Place, Report, Settings, Tunnel};
use wire::earliest;
use wire::frame::FrameReport;
use wire::tlp::{Tlp, TraceId};
use wire::{Duration, Instant};

/// By how much the instance number of a node grows at each power cycle.
const INSTANCES: u64 = 1 << 40;

/// A path of a tunnel link that leads to the node.
#[derive(Debug)]
struct Path {
    link: usize,
    /// Its number at the link.
    lane: usize,
    /// The switch at the other end.
    far: Component,
    /// The connection, if any.
    id: Option<PathId>,
    gone: bool,
    room: usize,
    /// Bytes received before the node selects this path for the link; reported to observers then.
    unobserved: Vec<Bytes>,
}

/// What a killed process leaves behind.
#[derive(Debug)]
struct Killed {
    at: Instant,
    node: SavedNode,
    /// Payloads of frames that the host may not have, by number.
    payloads: BTreeMap<u64, Bytes>,
    /// TLPs of the drive that it does not send again.
    answers: Vec<Tlp>,
}

/// The component of a device node.
#[derive(Debug)]
pub(crate) struct DeviceNode {
    node: node::DeviceNode<Port>,
    settings: Settings,
    limit: Option<Rate>,
    /// The group of the node's host, if the plan moves the node.
    group: Option<u16>,
    paths: Vec<Path>,
    /// Number of connections so far.
    accepted: u64,
    /// The first path that carries the link, or carried it last.
    current: usize,
    /// Counters of pushed bytes before the last power cycle.
    kept_before: Pushed,
    /// Failovers and copies of frames before the last power cycle.
    before: [u64; 2],
    killed: Option<Killed>,
    /// Number of sessions that went on after a kill.
    pub restored: u64,
    /// Whether the component below must be notified of a reset.
    pub reset: bool,
    /// The processor of the station.
    pub processor: Option<Processor>,
}

/// Parts of the world that a device node uses. Transports and streams are indexed by tunnel link,
/// transports then by path.
pub(crate) struct Env<'a> {
    pub transports: &'a mut [Vec<Transport>],
    pub network: &'a mut Network,
    /// Streams downstream and upstream.
    pub streams: &'a mut [[Stream; 2]],
    pub link: &'a mut Link,
    /// The drive or the switch.
    pub below: Component,
}

fn power_on(settings: Settings, limit: Option<Rate>, group: Option<u16>) -> node::DeviceNode<Port> {
    let port = Port::new(port::DEPTH);
    let mut node = node::DeviceNode::new(settings, port).with_rate_limit(limit).in_group(group);
    node.report_frames(true);
    node
}

/// Occupies the processor for the push messages of a received frame. They do not reach the drive,
/// where other TLPs occupy it, and they have no trace ID.
fn receive_messages(now: Instant, processor: &Processor, frame: &FrameReport) {
    let is_message = |(trace_id, _): &&(TraceId, u64)| *trace_id == TraceId::NONE;
    let messages = frame.trace_ids.iter().filter(is_message).count() as u64;
    if !frame.sent && messages > 0 {
        let config = processor.config();
        let further = Duration::from_ps(config.packet.as_ps() * (messages - 1));
        processor.occupy(now, config.tlp + further);
    }
}

impl DeviceNode {
    /// A node without tunnel links.
    pub(crate) fn new(settings: Settings, limit: Option<Rate>, group: Option<u16>) -> Self {
        let node = power_on(settings, limit, group);
        Self {
            node,
            settings,
            limit,
            group,
            paths: Vec::new(),
            accepted: 0,
            current: 0,
            kept_before: Pushed::default(),
            before: [0; 2],
            killed: None,
            restored: 0,
            reset: false,
            processor: None,
        }
    }

    /// Adds a tunnel link from the switch `far`, with this number of paths.
    pub(crate) fn add_link(&mut self, link: usize, far: Component, lanes: usize) {
        let (id, gone, room) = (None, false, 0);
        let path = |lane| Path { link, lane, far, id, gone, room, unobserved: Vec::new() };
        self.paths.extend((0..lanes).map(path));
    }

    /// Replaces the state of this node by `node`. The link that is added next becomes the current
    /// one.
    pub(crate) fn begin_as(&mut self, node: Self) {
        let paths = std::mem::take(&mut self.paths);
        *self = Self { current: paths.len(), paths, ..node };
    }

    /// The tunnel link that carries TLPs, or carried them last.
    pub(crate) fn link(&self) -> usize {
        self.paths[self.current].link
    }

    /// Counters of pushed bytes, including those before a power cycle.
    pub(crate) fn kept(&self) -> Pushed {
        self.kept_before + self.node.store().counters().into()
    }

    /// Failovers to another path, and copies of frames that another path had delivered.
    pub(crate) fn two_paths(&self) -> [u64; 2] {
        let counters = self.node.tunnel().counters();
        [self.before[0] + counters.failovers, self.before[1] + counters.copies]
    }

    pub(crate) fn number(&self) -> u16 {
        self.link() as u16
    }

    /// The node's end of its link.
    pub(crate) fn tunnel(&self) -> &Tunnel {
        self.node.tunnel()
    }

    /// The node's end of a tunnel link, unless the rate limit forbids sending.
    pub(crate) fn sender(&self, now: Instant, link: usize) -> Option<&Tunnel> {
        let sends = self.link() == link && self.node.rate_limited_until(now).is_none();
        sends.then(|| self.node.tunnel())
    }

    /// Cycles the power of the node. Only the group and counters survive.
    pub(crate) fn power_cycle(&mut self, env: Env, context: &mut Context) {
        let now = context.now;
        for path in self.paths.iter_mut() {
            if let Some(id) = path.id.take() {
                self.node.handle(now, id, Input::Closed);
            }
        }
        while !matches!(self.poll(env.streams, context).0, Output::Timeout(_)) {}
        env.link.take_deferred_up(now);
        env.link.up.set_deferred(Deferral::Nothing);
        let port = self.node.function_mut();
        port.handle(now, pcie::Input::HotReset);
        port.pass_reset(now, env.link, context.journeys);
        self.settings.instance += INSTANCES;
        (self.kept_before, self.before) = (self.kept(), self.two_paths());
        self.node = power_on(self.settings, self.limit, self.group);
        for Path { link, lane, .. } in &self.paths {
            for stream in &mut env.streams[*link] {
                stream.clear(*lane, context.journeys, false);
            }
        }
    }

    /// Kills the process of the node and its drive. In a live node, the modelled PCIe link and its
    /// TLPs are part of the drive.
    pub(crate) fn kill(&mut self, drive: &mut DriveNode, env: Env, context: &mut Context) {
        let (at, journeys) = (context.now, &mut *context.journeys);
        let [mut down, up] = env.link.take_all();
        let port = self.node.function_mut();
        down.extend(std::iter::from_fn(|| port.down.pop(Ready::ALL)));
        let mut queue = std::mem::take(&mut port.up);
        queue.extend(up);
        down.iter()
            .map(|tlp| tlp.trace_id)
            .chain(queue.trace_ids())
            .for_each(|id| journeys.end(id));
        let lost = Unsent::of(&queue);
        let answers = std::iter::from_fn(|| queue.pop(Ready::ALL)).filter(is_answer);
        let mut payloads = BTreeMap::new();
        let mut place = |number: u64, payload: &Bytes| -> Place {
            payloads.insert(number, payload.clone());
            (number, payload.len() as u32)
        };
        let save = |_: &mut Port, unsent: &Unsent| {
            let tags = [&unsent.tags[..], &lost.tags].concat();
            drive.kill(at, down, &Unsent { written: unsent.written + lost.written, tags })
        };
        let answers = answers.collect();
        let node = self.node.save(save, &mut place);
        self.killed = node.map(|node| Killed { at, node, payloads, answers });
        self.power_cycle(env, context);
    }

    /// Starts the next process, which goes on with the session, if its host still waits for it.
    /// Returns the state of the drive, if so.
    pub(crate) fn go_on(&mut self, now: Instant) -> Option<Bytes> {
        let Killed { at, node, payloads, answers } = self.killed.take()?;
        if !node.link.is_awaited_after(now - at) {
            return None;
        }
        let drive = node.link.function.clone();
        let payload = &mut |(number, _)| payloads.get(&number).cloned();
        self.node.restore(now, node, payload).expect("the node saved the state itself");
        self.node.function_mut().up.extend(answers);
        self.restored += 1;
        Some(drive)
    }

    /// The node's next output, and the number of TLPs sent before it.
    fn poll(&mut self, streams: &mut [[Stream; 2]], context: &mut Context) -> (Output, usize) {
        let output = self.node.poll(context.now);
        let tlps = self.account(streams, context);
        let change = match &output {
            Output::Event(Event::HostUp(_)) => Some(LinkChange::Up),
            Output::Event(Event::HostInterrupted(..)) => Some(LinkChange::Interrupted),
            Output::Event(Event::HostResumed(_)) => Some(LinkChange::Resumed),
            Output::Event(Event::HostDown(..)) => Some(LinkChange::Down),
            _ => None,
        };
        if let Some(change) = change {
            context.observe_link(Point::TunnelDevice(self.number()), change);
        }
        (output, tlps)
    }

    /// Accounts the activity of the node's link end. Returns the number of TLPs sent.
    fn account(&mut self, streams: &mut [[Stream; 2]], context: &mut Context) -> usize {
        let link = self.node.link();
        let carries = |path: &Path| link.is_some() && path.id == link;
        self.current = self.paths.iter().position(carries).unwrap_or(self.current);
        let Path { link, lane: current, .. } = self.paths[self.current];
        let (point, node) = (Point::TunnelDevice(self.number()), &mut self.node);
        let (paths, processor, now) = (&self.paths, self.processor.as_ref(), context.now);
        context.account(point, &mut streams[link][1], || {
            let report = node.poll_report()?;
            let Report::Frame(path, frame) = &report else { return Some((current, report)) };
            if let Some(processor) = processor {
                receive_messages(now, processor, frame);
            }
            let id = node.path(*path);
            let own = paths.iter().find(|own| id.is_some() && own.id == id);
            Some((own.map_or(current, |own| own.lane), report))
        })
    }

    /// Moves the node to the hosts of `group`.
    pub(crate) fn move_to(&mut self, now: Instant, group: u16) {
        self.group = Some(group);
        self.node.move_to(now, group);
    }

    /// Passes opened and closed connections and received bytes to the node.
    fn receive(&mut self, env: &mut Env, context: &mut Context) {
        for at in 0..self.paths.len() {
            self.opened(at, env, context);
            if let Some(id) = self.paths[at].id {
                self.receive_from(at, id, env, context);
            }
            self.closed(at, env, context);
        }
    }

    fn opened(&mut self, at: usize, env: &mut Env, context: &mut Context) {
        let (now, path) = (context.now, &mut self.paths[at]);
        let Env { transports, network, .. } = env;
        let transport = &transports[path.link][path.lane];
        if path.id.is_none() && transport.is_connected(now, End::Device, network) {
            let id = PathId(self.accepted);
            self.accepted += 1;
            (path.id, path.gone) = (Some(id), false);
            let signals_close = !transport.is_raw();
            let rights = node::Rights::ALL;
            self.node.handle(now, id, Input::Accepted { signals_close, rights, peer: None });
        }
    }

    /// Reports a closed connection to the node, behind everything that was received.
    fn closed(&mut self, at: usize, env: &mut Env, context: &mut Context) {
        let (now, path) = (context.now, &mut self.paths[at]);
        let Env { transports, network, .. } = env;
        let transport = &transports[path.link][path.lane];
        if transport.is_closed(now, End::Device, network) {
            match path.id {
                Some(id) => {
                    path.gone = true;
                    self.node.handle(now, id, Input::Closed);
                }
                None => transport.reopen(now, End::Device, network, context.kernel),
            }
        }
    }

    fn receive_from(&mut self, at: usize, id: PathId, env: &mut Env, context: &mut Context) {
        let Path { link, lane, .. } = self.paths[at];
        let (now, number) = (context.now, link as u16);
        let transport = &mut env.transports[link][lane];
        while let Some(arrived) = transport.receive(now, End::Device, env.network) {
            context.arrived(0x2000 + u64::from(number), arrived.bytes.len());
            if self.node.carries(id) {
                context.observe_stream(Point::TunnelDevice(number), false, &arrived.bytes);
            } else {
                self.paths[at].unobserved.push(arrived.bytes.clone());
            }
            let down = &mut env.streams[link][0];
            down.received(lane, arrived.bytes.len());
            while let Some(trace_id) = down.arrived(now, lane, &arrived.stages, context.journeys) {
                self.node.handle(now, id, Input::TraceId(trace_id));
            }
            self.node.handle(now, id, Input::Received(arrived.bytes));
            self.account(env.streams, context);
        }
    }

    /// Runs until no work is left now. Returns the next wake-up.
    pub(crate) fn run(&mut self, mut env: Env, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        self.catch_up(&mut env, context);
        self.receive(&mut env, context);
        self.receive_below(env.link, context);
        for at in 0..self.paths.len() {
            self.update_room(at, &mut env, context);
        }
        let timer = self.act(&mut env, context);
        let Env { transports, network: stations, link, below, .. } = env;
        self.reset |= self.node.function_mut().pass_reset(now, link, context.journeys);
        link.up.set_deferred(self.deferral(now, &transports[self.link()]));
        let next = earliest([link.down.next_arrival(), link.up.next_credits()]);
        context.kernel.arm_by_next(below, next);
        let mut network = None;
        for path in &self.paths {
            let transport = &transports[path.link][path.lane];
            context.kernel.arm_by_next(path.far, transport.next_arrival(End::Host));
            network = earliest([network, transport.next(now, End::Device, stations)]);
        }
        let sent = self.node.function().down.is_empty();
        let wire = link.down.next_ready(now).filter(|_| !sent);
        earliest([timer, network, link.up.next_arrival(), wire])
    }

    /// Executes the node's actions. Returns the timeout of the node.
    fn act(&mut self, env: &mut Env, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        loop {
            let (output, tlps) = self.poll(env.streams, context);
            match output {
                Output::Transmit { path, bytes } => {
                    let at = self.place(path);
                    let Path { link, lane, .. } = self.paths[at];
                    if self.node.carries(path) {
                        context.observe_stream(Point::TunnelDevice(link as u16), true, &bytes);
                    }
                    let transport = &mut env.transports[link][lane];
                    let network = &mut *env.network;
                    transport.send(now, End::Device, (bytes, tlps), network, context.kernel);
                    self.update_room(at, env, context);
                }
                Output::Close { path, .. } => self.close(path, env, context),
                Output::Linked { path, .. } => {
                    let (at, point) = (self.place(path), Point::TunnelDevice(self.number()));
                    for bytes in std::mem::take(&mut self.paths[at].unobserved) {
                        context.observe_stream(point, false, &bytes);
                    }
                }
                // Simulated links have one connection.
                Output::Event(_) | Output::Further { .. } => {}
                Output::Timeout(at) => {
                    // A free slot in the port lets the tunnel pass another TLP.
                    if !self.send_below(env.link, context) {
                        return at;
                    }
                }
            }
        }
    }

    /// The index of a path that the node has not closed.
    fn place(&self, id: PathId) -> usize {
        let place = self.paths.iter().position(|path| path.id == Some(id));
        place.expect("the node names open paths only")
    }

    fn update_room(&mut self, at: usize, env: &mut Env, context: &Context) {
        let path = &mut self.paths[at];
        let Some(id) = path.id else { return };
        let transport = &env.transports[path.link][path.lane];
        let (now, network) = (context.now, &mut *env.network);
        // While the rate limit blocks the node, new room must not wake it.
        path.room = match self.node.rate_limited_until(now) {
            Some(_) => transport.peek_room(now, End::Device, network),
            None => transport.room(now, End::Device, network),
        };
        self.node.handle(now, id, Input::Room(path.room));
    }

    fn close(&mut self, id: PathId, env: &mut Env, context: &mut Context) {
        let (now, at) = (context.now, self.place(id));
        let path = &mut self.paths[at];
        (path.id, path.room) = (None, 0);
        path.unobserved.clear();
        let (transport, network) = (&env.transports[path.link][path.lane], &mut *env.network);
        if !path.gone {
            transport.close(now, End::Device, network, context.kernel);
        }
        transport.reopen(now, End::Device, network, context.kernel);
        let goes_on = self.node.tunnel().is_up();
        for stream in &mut env.streams[path.link] {
            stream.clear(path.lane, context.journeys, goes_on);
        }
    }

    /// Passes the TLPs of the drive to the tunnel.
    fn receive_below(&mut self, link: &mut Link, context: &mut Context) {
        let now = context.now;
        link.up.arrive(now, &mut link.down);
        while let Some(received) = link.up.take(now, self.node.function().room_up(), &mut link.down)
        {
            self.take(now, received, context);
        }
    }

    /// Passes the TLPs that the link has deferred since the last run to the tunnel.
    fn catch_up(&mut self, env: &mut Env, context: &mut Context) {
        env.link.take_deferred_up(context.now);
        let mut any = false;
        while let Some((at, received)) = env.link.up.next_deferred() {
            self.take(at, received, context);
            any = true;
        }
        if any {
            self.node.exchange(context.now);
        }
    }

    fn take(&mut self, at: Instant, received: Received, context: &mut Context) {
        context.delivered(&received.tlp);
        let point = Point::DevicePort(self.number());
        context.observe(received.started, point, true, &received.tlp);
        context.journeys.advance(received.tlp.trace_id, at, Stage::Pcie);
        self.node.function_mut().up.push(received.tlp);
    }

    /// The deferral of TLPs from below. TLPs are deferred while they would only wait in the
    /// tunnel's queue: the network accepts nothing and will signal room, and no pushed bytes can
    /// answer reads. With two paths, none are.
    fn deferral(&self, now: Instant, transports: &[Transport]) -> Deferral {
        let [transport] = transports else { return Deferral::Nothing };
        let tunnel = self.node.tunnel();
        let full =
            self.paths[self.current].room == 0 || self.node.rate_limited_until(now).is_some();
        let most = Deferral::MOST * usize::from(self.settings.max_payload);
        let waits = full
            && !transport.is_raw()
            && tunnel.is_up()
            && self.node.store().bytes() == 0
            && matches!(self.settings.aggregation, Policy::Adaptive | Policy::PerTlp)
            && self.node.function().up.is_empty()
            && tunnel.queue().has_room(Deferral::MOST, most);
        if waits { Deferral::All } else { Deferral::Nothing }
    }

    /// Passes TLPs of the tunnel to the drive. Returns whether there was any.
    fn send_below(&mut self, link: &mut Link, context: &mut Context) -> bool {
        let now = context.now;
        let mut moved = false;
        loop {
            let ready = link.down.ready(now, usize::from(self.settings.max_payload));
            let tlp = self.node.function_mut().down.pop(ready);
            let Some(mut tlp) = tlp else { return moved };
            context.start_journey(now, &mut tlp);
            let start = link.down.send(now, tlp.clone());
            context.observe(start, Point::DevicePort(self.number()), false, &tlp);
            moved = true;
        }
    }
}
