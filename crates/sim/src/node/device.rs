//! A device node's end of a link: the unchanged downstream switch port, with a
//! PCIe link below it.

use super::port::{self, Port};
use super::switch::largest_frame;
use super::{Context, DriveNode, earliest};
use crate::kernel::Component;
use crate::measure::{Point, Segment};
use crate::network::Network;
use crate::pcie::{Intake, Link, Received};
use crate::transport::{End, Stream, Transport};
use bytes::BytesMut;
use pcie::{Function, Input};
use switch::aggregate::Policy;
use switch::congestion::Rate;
use switch::downstream::{self, Downstream};
use switch::egress::Egress;
use switch::tunnel;
use wire::Instant;
use wire::tlp::Tlp;

/// What instances of a node that lost its power differ by.
const INSTANCES: u64 = 1 << 40;

fn power_on(settings: tunnel::Settings) -> Downstream<Port> {
    let mut downstream = Downstream::new(settings, Port::new(port::MOST));
    downstream.report_frames(true);
    downstream
}

/// See the module.
#[derive(Debug)]
pub(crate) struct DeviceNode {
    number: u16,
    settings: tunnel::Settings,
    downstream: Downstream<Port>,
    egress: Egress,
    frames: BytesMut,
    max_payload: usize,
    connected: bool,
    /// It belongs to another host: this one is turned away.
    away: bool,
}

/// What a device node's end works with.
pub(crate) struct Around<'a> {
    pub transport: &'a mut Transport,
    pub network: &'a mut Network,
    /// What goes down and what comes up.
    pub streams: &'a mut [Stream; 2],
    pub link: &'a mut Link,
    pub drive: &'a mut DriveNode,
    /// The drive.
    pub below: Component,
    /// The host's switch.
    pub far: Component,
}

impl DeviceNode {
    pub fn new(number: u16, settings: tunnel::Settings, limit: Option<Rate>) -> Self {
        let max_payload = usize::from(settings.max_payload);
        let egress = Egress::new(1, largest_frame(max_payload), limit);
        let downstream = power_on(settings);
        let (connected, away) = (false, false);
        let frames = BytesMut::new();
        Self { number, settings, downstream, egress, frames, max_payload, connected, away }
    }

    /// Its end of the link, unless the rate limit holds everything back.
    pub fn sender(&self, now: Instant) -> Option<&tunnel::Tunnel> {
        (!self.egress.is_held(now)).then(|| self.downstream.tunnel())
    }

    /// Its power goes and, one day, comes: another instance then, which knows
    /// nothing.
    pub fn power_cycle(&mut self, around: Around, context: &mut Context) {
        self.settings.instance += INSTANCES;
        self.downstream.handle(context.now, tunnel::Input::Disconnected);
        self.account(&mut around.streams[1], context);
        around.link.settle_up(context.now);
        around.link.up.set_intake(Intake::Woken);
        let port = self.downstream.function_mut();
        port.handle(context.now, Input::HotReset);
        port.pass_reset(around.link, context.journeys);
        self.downstream = power_on(self.settings);
        if std::mem::take(&mut self.connected) {
            context.observe_link(Point::TunnelDevice(self.number), false);
        }
        around.streams.iter_mut().for_each(|stream| stream.clear(context.journeys));
        around.drive.power_cycle(context.now);
    }

    /// What its end of the link did; yields the number of TLPs that left.
    fn account(&mut self, up: &mut Stream, context: &mut Context) -> usize {
        let downstream = &mut self.downstream;
        context.account(Point::TunnelDevice(self.number), up, || downstream.poll_report())
    }

    /// It belongs to another host.
    pub fn stay_away(&mut self) {
        self.away = true;
    }

    /// It belongs to this host.
    pub fn come_back(&mut self) {
        self.away = false;
    }

    /// The host loses the device: the link ends, what is below is reset.
    pub fn leave(&mut self, around: Around, context: &mut Context) -> Option<Instant> {
        self.downstream.handle(context.now, tunnel::Input::Disconnected);
        let next = self.run(around, context);
        self.away = true;
        next
    }

    /// Hears of a connection that stands or is over.
    fn connection(&mut self, around: &mut Around, context: &mut Context) {
        let now = context.now;
        let Around { transport, network, .. } = around;
        let stands = transport.is_connected(End::Device, network);
        if self.away {
            if stands || transport.is_closed(End::Device, network) {
                transport.close(now, End::Device, network, context.kernel);
                transport.reopen(now, End::Device, network, context.kernel);
            }
            return;
        }
        if stands && !self.connected {
            self.connected = true;
            self.downstream.handle(now, tunnel::Input::Connected);
        } else if transport.is_closed(End::Device, network) {
            if std::mem::take(&mut self.connected) {
                self.downstream.handle(now, tunnel::Input::Disconnected);
            }
            transport.reopen(now, End::Device, network, context.kernel);
        }
    }

    /// Does what can be done now; yields when to be woken.
    pub fn run(&mut self, mut around: Around, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        self.catch_up(&mut around, context);
        self.connection(&mut around, context);
        let Around { transport, network, streams, link, drive, below, far } = around;
        let [down, up] = streams;
        while let Some(arrived) = transport.receive(now, End::Device, network) {
            context.arrived(0x2000 + u64::from(self.number), arrived.bytes.len());
            context.observe_stream(Point::TunnelDevice(self.number), false, &arrived.bytes);
            down.received(arrived.bytes.len());
            while let Some(mark) = down.arrived(now, &arrived.way, context.journeys) {
                self.downstream.handle(now, tunnel::Input::Mark(mark));
            }
            self.downstream.handle(now, tunnel::Input::Received(arrived.bytes));
            self.account(up, context);
        }
        self.receive_below(link, context);
        let (timer, room) = loop {
            let held = self.egress.is_held(now);
            let bytes = if held { 0 } else { transport.room(now, End::Device, network) };
            self.downstream.handle(now, tunnel::Input::CanTransmit { bytes });
            let output = self.downstream.poll(now, &mut self.frames);
            let tlps = self.account(up, context);
            match output {
                downstream::Output::Transmit(length) => {
                    self.egress.sent(now, length);
                    let bytes = self.frames.split().freeze();
                    context.observe_stream(Point::TunnelDevice(self.number), true, &bytes);
                    transport.send(now, End::Device, (bytes, tlps), network, context.kernel);
                }
                downstream::Output::Up(_) => {
                    context.observe_link(Point::TunnelDevice(self.number), true);
                }
                downstream::Output::Down(_) => {
                    context.observe_link(Point::TunnelDevice(self.number), false);
                    down.clear(context.journeys);
                    up.clear(context.journeys);
                    if std::mem::take(&mut self.connected) {
                        transport.close(now, End::Device, network, context.kernel);
                        transport.reopen(now, End::Device, network, context.kernel);
                    }
                }
                downstream::Output::Timeout(at) => {
                    // A place in the port makes room for what waits above.
                    if !self.send_below(link, context) {
                        break (at, bytes);
                    }
                }
            }
        };
        if self.downstream.function_mut().pass_reset(link, context.journeys) {
            drive.hot_reset(now);
        }
        link.up.set_intake(self.intake(room, transport));
        for at in [link.down.next_arrival(), link.up.next_credits()].into_iter().flatten() {
            context.kernel.arm_by(below, at);
        }
        if let Some(at) = transport.next_arrival(End::Host) {
            context.kernel.arm_by(far, at);
        }
        let network = transport.next(now, End::Device);
        let waits = self.downstream.function().waits_for_link();
        let wire = link.down.next_ready(now).filter(|_| waits);
        earliest([timer, network, link.up.next_arrival(), wire, self.egress.held_until(now)])
    }

    /// What the drive has sent goes to the tunnel.
    fn receive_below(&mut self, link: &mut Link, context: &mut Context) {
        let now = context.now;
        link.arrive_up(now);
        while let Some(received) = link.take_up(now, self.downstream.function().room_up()) {
            self.take(now, received, context);
        }
    }

    /// What the port took since this component ran last goes to the tunnel,
    /// whatever becomes of the link now.
    fn catch_up(&mut self, around: &mut Around, context: &mut Context) {
        around.link.settle_up(context.now);
        let mut any = false;
        while let Some((at, received)) = around.link.up.next_taken() {
            self.take(at, received, context);
            any = true;
        }
        if any {
            self.downstream.exchange(context.now);
        }
    }

    fn take(&mut self, at: Instant, received: Received, context: &mut Context) {
        context.delivered(&received.tlp);
        let point = Point::DevicePort(self.number);
        context.observe(received.started, point, true, &received.tlp);
        context.journeys.advance(received.tlp.mark, at, Segment::Pcie);
        self.downstream.function_mut().push_up(received.tlp);
    }

    /// What comes from below while the network takes nothing, and says when it
    /// does again, goes to a queue that nobody looks at before.
    fn intake(&self, room: usize, transport: &Transport) -> Intake {
        let tunnel = self.downstream.tunnel();
        let waits = room == 0
            && transport.tells_of_room()
            && tunnel.is_up()
            && !matches!(self.settings.aggregation, Policy::Wait(_))
            && self.downstream.function().is_empty_up()
            && tunnel.queue().has_room(Intake::MOST, Intake::MOST * self.max_payload);
        if waits { Intake::All } else { Intake::Woken }
    }

    /// What came out of the tunnel goes to the drive; whether anything did.
    fn send_below(&mut self, link: &mut Link, context: &mut Context) -> bool {
        let now = context.now;
        let mut moved = false;
        loop {
            let ready = link.down.ready(now, self.max_payload);
            let tlp: Option<Tlp> = self.downstream.function_mut().next_down(ready);
            let Some(mut tlp) = tlp else { return moved };
            context.journey_goes_on(&mut tlp);
            let start = link.down.send(now, tlp.clone());
            context.observe(start, Point::DevicePort(self.number), false, &tlp);
            moved = true;
        }
    }
}
