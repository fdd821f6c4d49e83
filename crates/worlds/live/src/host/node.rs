//! The host node as a server of endpoints for VMMs.

use super::descriptors;
use super::endpoint::{Endpoint, describe};
use super::event_limits::{HostEventLimiter, kind};
use super::{HostIo, Memory, ReadOutcome};
use crate::Control;
use crate::attached::{Attached, Switch};
use crate::clock::Clock;
use crate::limiter::Suppressed;
use crate::poller::Poller;
use crate::status::{Report, Status};
use ::node::LinkEvent;
use ::node::push;
use ::node::slot::{self, Change, Snapshot};
use bytes::BytesMut;
use credentials::Identity;
use pcie::enumerate::{self, Node, Settings};
use pcie::root::{self, ReadToken};
use pcie::software::{Bus, Task};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use switch::tunnel::Cause;
use vfio_user::{EndpointInfo, Presence, SocketFolder};
use wire::earliest;
use wire::{Bdf, Duration, Instant};

/// An event that a host node reports to its user.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// Endpoint `n` is offered on this socket.
    Offered(usize, PathBuf, super::Summary),
    /// A VMM uses endpoint `n`.
    VmmAttached(usize),
    /// The VMM of an endpoint has disconnected, with the reason.
    VmmGone(usize, String),
    /// The link of a downstream port went down.
    LinkDown(usize, Cause),
    /// The connection of the link of a downstream port is lost. The link stays up, and waits for
    /// another connection.
    LinkInterrupted(usize, Cause),
    /// The link goes on over another connection, after this time.
    LinkResumed(usize, Duration),
    /// One of the paths of a downstream port's link is lost; another one carries the link.
    PathLost(usize, usize, Cause),
    /// A further path of a downstream port's link.
    PathUp(usize, usize),
    /// The link of a downstream port is up again, with the identity of the far side under TLS.
    LinkUp(usize, Option<Arc<Identity>>),
    /// Endpoint `n` has the serial number of another one, `m`.
    DuplicateSerial(usize, usize),
    /// A change of endpoint `n` after its link came up or its client requested a reset.
    Endpoint(usize, Change),
    /// The far side of a link rejects the link until the configuration changes. Has the name of the
    /// far side.
    Refused(usize, String),
    /// The devices behind a link cannot be used.
    Unusable(usize, String),
    /// The counters, as requested.
    Report(Report),
    /// The state, for the request with this number.
    Status(u64, Box<Status>),
    /// A count of events that were not reported one by one.
    Suppressed(Suppressed<Self>),
}

/// At shutdown, the time without an access by a client after which the node ends: a guest's CPU
/// under emulation needs less time between two accesses.
const QUIET: Duration = Duration::from_ms(100);
/// The longest wait for a time of [`QUIET`] without an access.
const LONGEST_LEAVE: Duration = Duration::from_ms(2_000);

/// Settings of the machine of a host node.
#[derive(Clone, Debug, Default)]
pub struct MachineSettings {
    /// The root complex.
    pub root: root::Settings,
    /// Settings of enumeration; contents are always read.
    pub enumeration: Settings,
    /// Settings of push.
    pub push: push::Settings,
}

fn find_endpoint(endpoints: &mut [Endpoint], function: Bdf) -> Option<&mut Endpoint> {
    endpoints.iter_mut().find(|endpoint| endpoint.slot.node().bdf == function)
}

/// Routes DMA and interrupts of the endpoints to their guests.
impl Memory for Vec<Endpoint> {
    fn read(
        &mut self,
        now: Instant,
        requester: Bdf,
        range: (u64, usize),
        token: &ReadToken,
    ) -> ReadOutcome {
        match find_endpoint(self, requester) {
            Some(Endpoint { slot, guest, .. }) => slot.memory_read(now, guest, range, token),
            None => ReadOutcome::Done(None),
        }
    }

    fn peek(&mut self, requester: Bdf, range: (u64, usize), out: &mut BytesMut) -> bool {
        find_endpoint(self, requester)
            .is_some_and(|endpoint| endpoint.slot.peek(&mut endpoint.guest, range, out))
    }

    fn write(&mut self, now: Instant, requester: Bdf, address: u64, data: &[u8]) {
        if let Some(Endpoint { slot, guest, .. }) = find_endpoint(self, requester) {
            slot.memory_write(now, guest, address, data);
        }
    }

    fn interrupt(&mut self, requester: Bdf, data: u32) {
        if let Some(Endpoint { slot, guest, .. }) = find_endpoint(self, requester) {
            slot.interrupt(guest, data as u16);
        }
    }

    fn wire(&mut self, wire: u8, level: bool) {
        // Endpoints on the same wire share its interrupts.
        for endpoint in self.iter_mut().filter(|endpoint| endpoint.wire == wire) {
            endpoint.guest.server.session.set_intx(level);
        }
    }
}

/// A new endpoint that is not yet offered, below a port that had no endpoint before.
struct DiscoveredEndpoint {
    port: usize,
    node: Node,
    wire: u8,
    bus: Bus,
    describing: Task<(EndpointInfo, Option<Snapshot>)>,
}

/// A host node that offers endpoints to VMMs.
pub struct HostNode {
    pub(super) machine: HostIo<Switch>,
    pub(super) endpoints: Vec<Endpoint>,
    bus: Bus,
    settings: Settings,
    /// The downstream ports of the switch right below the root port.
    ports: Vec<slot::Port>,
    discovered: Vec<DiscoveredEndpoint>,
    /// Pairs of endpoints with the same serial number, not yet reported.
    duplicates: Vec<(usize, usize)>,
    /// Since when each link has no connection, if its session goes on.
    pub(super) interrupted: Vec<Option<Instant>>,
    folder: SocketFolder,
    spin_for_doorbells: bool,
}

impl HostNode {
    /// Enumerates the devices behind `switch` (whose links are up, or `up` waits for them) and
    /// offers every endpoint in the folder. An endpoint that appears later below a port whose
    /// link is down is offered then.
    ///
    /// # Errors
    /// One line for the user.
    pub fn start(
        clock: Clock,
        poller: Poller,
        machine: MachineSettings,
        switch: Switch,
        sockets: SocketFolder,
        doorbells: bool,
        mut up: impl FnMut(&mut Switch, Instant) -> io::Result<bool>,
    ) -> io::Result<Self> {
        let MachineSettings { root, enumeration, push } = machine;
        let settings = Settings { contents: true, ..enumeration };
        let mut machine = HostIo::new(clock, poller, root, switch)?.with_push(push);
        let mut endpoints = Vec::new();
        let bus = machine.new_bus();
        while !up(machine.attached_mut(), clock.now())? {
            let (moved, timer) = machine.pump(&mut endpoints)?;
            let soon = clock.now() + wire::Duration::from_ms(100);
            machine.wait(moved, earliest([timer, Some(soon)]))?;
        }
        let found = enumerate::enumerate(bus.clone(), settings.clone());
        let hierarchy = machine.run(&mut endpoints, &bus, found)?.map_err(io::Error::other)?;
        let ports = hierarchy.root.children().first().map_or(&[][..], Node::children);
        let links = machine.attached().upstream().links();
        let mut node = Self {
            machine,
            endpoints,
            bus,
            settings,
            interrupted: vec![None; links],
            ports: ports.iter().cloned().map(slot::Port::new).collect(),
            discovered: Vec::new(),
            folder: sockets,
            duplicates: Vec::new(),
            spin_for_doorbells: doorbells,
        };
        node.offer_found()?;
        Ok(node)
    }

    fn offer_found(&mut self) -> io::Result<()> {
        let found: Vec<(usize, (Node, u8))> = self
            .ports
            .iter()
            .map(|port| endpoints(&port.node, 0))
            .enumerate()
            .flat_map(|(port, all)| all.into_iter().map(move |found| (port, found)))
            .collect();
        let upstream = self.machine.attached().upstream();
        let all_up = (0..upstream.links()).all(|port| upstream.tunnel(port).is_up());
        if found.is_empty() && all_up {
            let links = 0..upstream.links();
            let switch = self.machine.attached_mut().links_mut();
            let peers: Vec<String> = links.map(|link| switch.peer(link)).collect();
            let why = format!("no endpoint found behind {}", peers.join(", "));
            return Err(io::Error::other(why));
        }
        for (port, (node, wire)) in found {
            let bus = self.machine.new_bus();
            let describing = describe(bus.clone(), node.clone(), self.spin_for_doorbells);
            let info = self.machine.run(&mut self.endpoints, &bus, describing)?;
            self.offer(port, node, wire, bus, info)?;
        }
        Ok(())
    }

    /// Offers one endpoint; returns its number.
    fn offer(
        &mut self,
        port: usize,
        node: Node,
        wire: u8,
        bus: Bus,
        info: (EndpointInfo, Option<Snapshot>),
    ) -> io::Result<usize> {
        descriptors::check(self.endpoints.iter().map(|one| one.slot.node()).chain([&node]))?;
        let (number, settings) = (self.endpoints.len(), self.settings.clone());
        self.duplicates.extend(same_serial(&node, &self.endpoints).map(|other| (number, other)));
        let mut endpoint = Endpoint::offer(&self.folder, number, port, node, info, bus, settings)
            .map_err(io::Error::other)?;
        endpoint.wire = wire;
        self.machine.poller().add(&endpoint.guest.server, false)?;
        self.endpoints.push(endpoint);
        Ok(number)
    }

    /// The sockets, in the order of the endpoints.
    pub fn sockets(&self) -> Vec<PathBuf> {
        self.endpoints.iter().map(|e| e.guest.server.path().to_owned()).collect()
    }

    /// As [`Links::identities`](crate::links::Links::identities).
    pub fn identities(&mut self) -> Vec<String> {
        self.machine.attached_mut().links_mut().identities()
    }

    /// A summary of each endpoint, in the order of the endpoints.
    pub fn summaries(&self) -> Vec<super::Summary> {
        self.endpoints.iter().map(Endpoint::summary).collect()
    }

    /// Serves until `control` returns otherwise; `wake` becomes readable then.
    ///
    /// # Errors
    /// Errors that end the node.
    pub fn run(
        &mut self,
        wake: BorrowedFd<'_>,
        mut control: impl FnMut() -> Control,
        mut emit: impl FnMut(HostEvent),
    ) -> io::Result<()> {
        self.machine.poller().add_without_spin(wake)?;
        let mut lines = HostEventLimiter::new(HostEvent::Suppressed);
        let ran = self.serve_until(&mut control, &mut lines, &mut emit);
        let now = self.machine.clock().now();
        let left = self.take_leave(&mut |event| lines.pass(now, kind(&event), event, &mut emit));
        let ran = ran.and(left);
        lines.flush(self.machine.clock().now(), &mut emit);
        ran?;
        self.machine.close()
    }

    fn serve_until(
        &mut self,
        control: &mut impl FnMut() -> Control,
        lines: &mut HostEventLimiter,
        emit: &mut impl FnMut(HostEvent),
    ) -> io::Result<()> {
        loop {
            // One wake-up may stand for several requests.
            match control() {
                Control::Serve => {}
                Control::Report => {
                    emit(HostEvent::Report(self.report()));
                    continue;
                }
                Control::Status(request) => {
                    emit(HostEvent::Status(request, Box::new(self.status())));
                    continue;
                }
                Control::RateLimit(rate) => {
                    self.machine.attached_mut().set_rate_limit(rate);
                    continue;
                }
                Control::Stop => return Ok(()),
            }
            let (moved, timer) = self.turn(lines, emit)?;
            if !moved
                && self.spin_for_doorbells
                && self.endpoints.iter().any(|endpoint| endpoint.connected)
            {
                // A store into the page does not wake this thread, and the client may need this
                // core.
                std::thread::yield_now();
            } else {
                self.machine.wait(moved, timer)?;
            }
        }
    }

    /// Removes the endpoints, and answers their clients until none has an access under way and no
    /// access follows for a while: QEMU 11.1 aborts if the connection ends while two of its CPUs
    /// access the endpoint. A guest's CPUs stop accessing an endpoint that completes nothing.
    fn take_leave(&mut self, emit: &mut impl FnMut(HostEvent)) -> io::Result<()> {
        let end = self.machine.clock().now() + LONGEST_LEAVE;
        for endpoint in &mut self.endpoints {
            endpoint.guest.server.set_presence(self.machine.clock().now(), Presence::Absent);
        }
        loop {
            let now = self.machine.clock().now();
            self.machine.poller.refresh(now)?;
            let served = self.serve(now, emit);
            let mut sessions = self.endpoints.iter().map(|endpoint| &endpoint.guest.server.session);
            if now >= end || !served && sessions.all(|session| session.is_quiet(now, QUIET)) {
                return Ok(());
            }
            let (pumped, timer) = self.machine.pump(&mut self.endpoints)?;
            self.machine.wait(served | pumped, earliest([timer, Some((now + QUIET).min(end))]))?;
        }
    }

    /// Makes one turn. Returns whether anything happened, and when to call again at the latest.
    pub(super) fn turn(
        &mut self,
        lines: &mut HostEventLimiter,
        emit: &mut impl FnMut(HostEvent),
    ) -> io::Result<(bool, Option<Instant>)> {
        self.duplicates.drain(..).for_each(|(n, m)| emit(HostEvent::DuplicateSerial(n, m)));
        // Writes of VMMs reach the links in this turn, and so do the resulting requests.
        let now = self.machine.clock().now();
        self.machine.poller.refresh(now)?;
        let served = self.serve(now, &mut |event| lines.pass(now, kind(&event), event, emit));
        let (pumped, timer) = self.machine.pump(&mut self.endpoints)?;
        let now = self.machine.clock().now();
        lines.report_suppressed(now, emit);
        let mut emit = |event| lines.pass(now, kind(&event), event, emit);
        let mut moved = served | pumped;
        moved |= self.process_link_events(now, &mut emit)?;
        moved |= self.rescan(now, &mut emit);
        moved |= self.offer_discovered(now, &mut emit);
        let mut deadlines = earliest([lines.timer(), self.end_sessions_for_clients(now)]);
        for endpoint in &mut self.endpoints {
            moved |= endpoint.advance(now);
            deadlines = earliest([deadlines, endpoint.guest.server.session.deadline()]);
        }
        Ok((moved, earliest([timer, deadlines])))
    }

    fn serve(&mut self, now: Instant, emit: &mut impl FnMut(HostEvent)) -> bool {
        let mut moved = false;
        for number in 0..self.endpoints.len() {
            let endpoint = &mut self.endpoints[number];
            moved |= match self.machine.poller().take_ready(&endpoint.guest.server) {
                true => endpoint.service(now),
                false => endpoint.service_without_input(now),
            };
            // Handled before further accesses of the client.
            for range in endpoint.guest.server.session.take_remapped() {
                endpoint.remapped(&range);
                self.machine.remapped(range);
            }
            for (token, data) in std::mem::take(&mut endpoint.answers) {
                moved = true;
                self.machine.complete_read(token, data);
            }
            for change in std::mem::take(&mut endpoint.changes) {
                emit(HostEvent::Endpoint(number, change));
            }
            if let Some(why) = endpoint.guest.server.take_closed() {
                emit(HostEvent::VmmGone(number, why.to_string()));
                endpoint.connected = false;
            }
            let connected = endpoint.guest.server.connected();
            let before = std::mem::replace(&mut endpoint.connected, connected);
            if connected && !before {
                emit(HostEvent::VmmAttached(number));
            }
        }
        self.apply_backpressure();
        moved
    }

    /// Stops the devices below a port whose client does not accept their writes. Other ports are
    /// not affected.
    fn apply_backpressure(&mut self) {
        let switch = self.machine.attached_mut();
        for port in 0..switch.upstream().links() {
            let mut below = self.endpoints.iter().filter(|endpoint| endpoint.port == port);
            switch.hold(port, !below.all(|endpoint| endpoint.slot.takes_writes()));
        }
    }

    fn process_link_events(
        &mut self,
        now: Instant,
        emit: &mut impl FnMut(HostEvent),
    ) -> io::Result<bool> {
        let mut moved = false;
        while let Some(event) = self.machine.attached_mut().links_mut().event() {
            moved = true;
            match event {
                LinkEvent::Down { link: port, cause, buses } => {
                    emit(HostEvent::LinkDown(port, cause));
                    self.interrupted[port] = None;
                    self.ports[port].link_down();
                    self.discovered.retain(|found| found.port != port);
                    self.lose_endpoints(now, port);
                    self.machine.clear_bus_masters(buses);
                }
                LinkEvent::Interrupted(port, cause) => {
                    self.interrupted[port] = Some(now);
                    emit(HostEvent::LinkInterrupted(port, cause));
                    self.set_interrupted(port, true);
                    if self.is_reached_elsewhere(port) {
                        self.machine.attached_mut().give_up(now, port);
                    }
                }
                LinkEvent::Resumed(port) => {
                    let since = self.interrupted[port].take();
                    emit(HostEvent::LinkResumed(port, now - since.unwrap_or(now)));
                    self.set_interrupted(port, false);
                }
                LinkEvent::Up(port, _) => {
                    let identity = self.machine.attached_mut().links_mut().identity(port);
                    emit(HostEvent::LinkUp(port, identity));
                    self.ports[port].link_up(&self.bus, &self.settings);
                }
                LinkEvent::Failed { link: port, why, permanent: true, .. } => {
                    emit(HostEvent::Refused(port, why));
                }
                LinkEvent::PathLost(port, path, cause) => {
                    emit(HostEvent::PathLost(port, path, cause));
                }
                LinkEvent::PathUp(port, path) => emit(HostEvent::PathUp(port, path)),
                // Another attempt follows automatically, and failovers are counted.
                LinkEvent::FailedOver(..) | LinkEvent::Failed { .. } | LinkEvent::Echo(..) => {}
            }
        }
        Ok(moved)
    }

    /// Continues the enumeration below ports whose links came up.
    fn rescan(&mut self, now: Instant, emit: &mut impl FnMut(HostEvent)) -> bool {
        let mut moved = false;
        for port in 0..self.ports.len() {
            let Some(found) = self.ports[port].poll(now) else { continue };
            moved = true;
            match found {
                Ok(found) => self.reattach(now, port, &found),
                Err(error) => emit(HostEvent::Unusable(port, error.to_string())),
            }
        }
        moved
    }

    fn reattach(&mut self, now: Instant, port: usize, found: &[Node]) {
        if self.endpoints.iter().all(|endpoint| endpoint.port != port) {
            return self.describe_discovered(port, found);
        }
        for endpoint in self.endpoints.iter_mut().filter(|endpoint| endpoint.port == port) {
            endpoint.link_up(now, found);
        }
    }

    /// Describes the endpoints below a port that had no endpoints before.
    fn describe_discovered(&mut self, port: usize, found: &[Node]) {
        let wire = self.ports[port].node.bdf.device() % 4;
        for (node, wire) in found.iter().flat_map(|child| endpoints(child, wire)) {
            let bus = self.machine.new_bus();
            let describing = describe(bus.clone(), node.clone(), self.spin_for_doorbells);
            let describing = Task::new(&bus, describing);
            self.discovered.push(DiscoveredEndpoint { port, node, wire, bus, describing });
        }
    }

    /// Offers new endpoints once they are described.
    fn offer_discovered(&mut self, now: Instant, emit: &mut impl FnMut(HostEvent)) -> bool {
        let mut moved = false;
        for mut found in std::mem::take(&mut self.discovered) {
            let Some(info) = found.describing.poll(now) else {
                self.discovered.push(found);
                continue;
            };
            let DiscoveredEndpoint { port, node, wire, bus, .. } = found;
            moved = true;
            match self.offer(port, node, wire, bus, info) {
                Ok(number) => {
                    let endpoint = &self.endpoints[number];
                    let path = endpoint.guest.server.path().to_owned();
                    emit(HostEvent::Offered(number, path, endpoint.summary()));
                }
                Err(error) => emit(HostEvent::Unusable(port, error.to_string())),
            }
        }
        moved
    }
}

/// The first of `endpoints` with the serial number of `node`. An operating system would treat both
/// as one drive (Linux refuses the second as a duplicate controller of one subsystem).
fn same_serial(node: &Node, endpoints: &[Endpoint]) -> Option<usize> {
    let serial = |node: &Node| node.device().and_then(|device| device.serial);
    let own = serial(node)?;
    endpoints
        .iter()
        .map(|endpoint| endpoint.slot.node())
        .position(|other| other.id == node.id && serial(other) == Some(own))
}

/// The endpoints in a subtree, each with the wire of the root port (0 for INTA) that its INTA
/// drives, if an INTA at the top drives `wire`: every switch on the way rotates it by the
/// device number of the downstream port (PCIe Base 4.0, section 2.2.8.1).
fn endpoints(node: &Node, wire: u8) -> Vec<(Node, u8)> {
    match node.device() {
        Some(_) => vec![(node.clone(), wire)],
        None => {
            let wire = (wire + node.bdf.device()) % 4;
            node.children().iter().flat_map(|child| endpoints(child, wire)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::tests::{BARE, node};
    use pcie::enumerate::{Kind, Port};

    fn bridge(device: u8, children: Vec<Node>) -> Node {
        let port = Port {
            port_type: 6,
            slot: None,
            link_up: true,
            secondary: 0,
            subordinate: 0,
            window: 0..0,
            children,
        };
        node(Bdf::new(1, device, 0), Kind::Bridge(port))
    }

    #[test]
    fn every_switch_on_the_way_turns_the_interrupt_wires() {
        let endpoint = || node(Bdf::new(1, 0, 0), Kind::Endpoint(BARE));
        let second = bridge(0, vec![bridge(1, vec![endpoint()]), bridge(2, vec![endpoint()])]);
        let wires = |port: &Node| -> Vec<u8> {
            endpoints(port, 0).into_iter().map(|(_, wire)| wire).collect()
        };
        assert_eq!(wires(&bridge(3, vec![endpoint()])), [3]);
        assert_eq!(wires(&bridge(5, vec![endpoint()])), [1]);
        assert_eq!(wires(&bridge(3, vec![second])), [0, 1], "behind a second switch");
    }
}
