//! A device of one's own behind a link: a thermometer that interrupts above a limit.
//!
//! `pcie::Endpoint` is the PCIe part of a device. Below the switch, a device is whatever implements
//! `pcie::Function`. Here the byte stream between both halves of the switch is a buffer in memory.

use node::host::{Buses, HostNode, Input, Output};
use pcie::endpoint::{Endpoint, EndpointConfig, Event};
use pcie::root::{HostOutput, Settings};
use pcie::{Bus, Function, Ports, Ready, enumerate, software::Task};
use switch::tunnel::{self, Output as LinkOutput};
use switch::{Downstream, Upstream, upstream};
use wire::{Instant, frame::Role};

const NOW: Instant = Instant::ZERO;

/// Reads of BAR 0 return the temperature in thousandths of a degree. A write of a lower limit makes
/// the device interrupt.
struct Thermometer(Endpoint, u32);

impl Function for Thermometer {
    fn handle(&mut self, now: Instant, input: pcie::Input) {
        self.0.handle(now, input);
        while let Some(event) = self.0.poll_event() {
            match event {
                Event::Read { length, token, .. } => {
                    let data = self.1.to_le_bytes().repeat(length.div_ceil(4));
                    self.0.complete_read(token, &data[..length]);
                }
                Event::Write { data, .. } => match data.first_chunk() {
                    Some(limit) if self.1 > u32::from_le_bytes(*limit) => self.0.interrupt(0),
                    _ => {}
                },
                Event::ReadDone { .. } | Event::Reset(_) | Event::Foreign(_) => {}
            }
        }
    }
    fn poll(&mut self, now: Instant, ready: Ready) -> pcie::Output {
        self.0.poll(now, ready)
    }
    fn ready(&self) -> Ready {
        self.0.ready()
    }
    fn ports(&self) -> Option<&dyn Ports> {
        None // not a switch
    }
}

/// Exchanges the bytes of both ends of the link; returns whether there were any.
fn carry(switch: &mut Upstream, device: &mut Downstream<Thermometer, ()>) -> bool {
    let mut moved = false;
    switch.handle_link(NOW, 0, tunnel::Input::CanTransmit { bytes: 1 << 16 });
    device.handle(NOW, tunnel::Input::CanTransmit { bytes: 1 << 16 });
    loop {
        match (switch.poll_link(NOW, 0), device.poll(NOW)) {
            (LinkOutput::Timeout(_), LinkOutput::Timeout(_)) => return moved,
            (down, up) => {
                moved = true;
                if let LinkOutput::Transmit(_, bytes) = down {
                    device.handle(NOW, tunnel::Input::Received(bytes));
                }
                if let LinkOutput::Transmit(_, bytes) = up {
                    switch.handle_link(NOW, 0, tunnel::Input::Received(bytes));
                }
            }
        }
    }
}

/// Finds the thermometer, enables its interrupt, sets the limit, reads the temperature.
async fn host_software(bus: Bus) -> u64 {
    let found = enumerate::enumerate(bus.clone(), enumerate::Settings::default()).await;
    let node = found.expect("a hierarchy").endpoints()[0].clone();
    enumerate::enable(&bus, &node, [(0, 77)]).await;
    let bar = node.bar(0).expect("registers").address;
    bus.write(bar, 4, 20_000);
    bus.read(bar, 4).await
}

/// The temperature that the host read, and the data of interrupts.
fn run() -> (u64, Vec<u32>) {
    let tunnel = tunnel::Settings::new(Role::Host, 1);
    let settings = upstream::Settings { ports: 1, max_payload: 256, p2p: false, tunnel };
    let mut host = HostNode::new(Settings::default(), Upstream::new(settings));
    let config = EndpointConfig::new(0x1234, 1, [0x11, 0x80, 0]); // a signal processing controller
    let thermometer = Thermometer(Endpoint::new(config), 21_500);
    let mut device = Downstream::new(tunnel::Settings::new(Role::Device, 2), thermometer, ());
    host.below_mut().handle_link(NOW, 0, tunnel::Input::Connected);
    device.handle(NOW, tunnel::Input::Connected);
    while carry(host.below_mut(), &mut device) {}
    let (mut buses, mut interrupts) = (Buses::default(), Vec::new());
    let bus = buses.new_bus();
    let mut software = Task::new(&bus, host_software(bus.clone()));
    loop {
        if let Some(temperature) = software.poll(NOW) {
            return (temperature, interrupts);
        }
        if let Some((id, request)) = buses.next_request(NOW, |_| true) {
            host.handle(NOW, Input::Request(id, request));
        }
        match host.poll(NOW) {
            Output::Host(HostOutput::Answer(id, value)) => buses.answer(id, value),
            Output::Host(HostOutput::Interrupt { data, .. }) => interrupts.push(data),
            Output::Host(_) => {}
            Output::Wait(_) => _ = carry(host.below_mut(), &mut device),
        }
    }
}

fn main() {
    println!("thousandths of a degree, interrupts: {:?}", run());
}

#[test]
fn host_reads_register_and_gets_interrupt() {
    assert_eq!(run(), (21_500, vec![77]));
}
