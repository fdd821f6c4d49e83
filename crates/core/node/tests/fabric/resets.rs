//! Resets of every kind, and links that are lost and come back.

use crate::fabric::world::{Device, Fabric, Happened, Parent, Plan, RAM, Shape, bar, dma};
use pcie::dma_test::{MAGIC, register};
use pcie::enumerate::{self, Hierarchy, Node, Settings};
use pcie::root::ROOT_PORT;
use stats::random::Random;
use switch::tunnel::Cause;
use wire::{Bdf, Duration};

const MARK: u64 = 0x1122_3344;

fn endpoints(hierarchy: &Hierarchy) -> Vec<Node> {
    hierarchy.endpoints().into_iter().cloned().collect()
}

/// A cascade with every endpoint enabled and a value written to each.
fn marked() -> (Fabric, Hierarchy) {
    let mut fabric = Plan { shape: Shape::ROUGH, ..Plan::default() }.cascade();
    let hierarchy = fabric.enumerate();
    mark(&mut fabric, &hierarchy);
    (fabric, hierarchy)
}

fn mark(fabric: &mut Fabric, hierarchy: &Hierarchy) {
    for node in endpoints(hierarchy) {
        fabric.enable(&node, 1);
        fabric.bus.write(bar(&node) + register::RAM, 4, MARK);
        assert_eq!(fabric.read(bar(&node) + register::RAM, 4), MARK);
    }
}

/// Whether each of the three devices still has the value.
fn kept(fabric: &Fabric) -> [bool; 3] {
    [0, 2, 3].map(|node| fabric.dma(node).ram()[..4] == (MARK as u32).to_le_bytes())
}

fn works(fabric: &mut Fabric, node: &Node) {
    let noise = Random::new(3).bytes(10_001);
    fabric.memory(7, noise.len()).copy_from_slice(&noise);
    fabric.memory(0x10_0000, noise.len()).fill(0);
    assert_eq!(fabric.copy(bar(node), RAM + 7, RAM + 0x10_0000, 10_001), Ok(()), "{}", node.bdf);
    assert!(fabric.memory(0x10_0000, noise.len()) == noise);
}

/// Secondary Bus Reset as Linux does it: set, wait, clear, wait.
fn secondary_bus_reset(fabric: &mut Fabric, port: Bdf) {
    let before = fabric.config(port, 0x3e, 2);
    fabric.set_config(port, 0x3e, 2, before | 1 << 6);
    fabric.pass(Duration::from_ms(2));
    fabric.set_config(port, 0x3e, 2, before & !(1 << 6));
    fabric.pass(Duration::from_ms(1));
}

#[test]
fn hot_reset_through_every_bridge_reaches_what_is_below_and_nothing_else() {
    let second = |hierarchy: &Hierarchy| {
        let ports = hierarchy.root.children()[0].children();
        (ports[0].bdf, ports[1].bdf, ports[1].children()[0].clone())
    };
    for which in 0..6 {
        let (mut fabric, hierarchy) = marked();
        let (first, cascade, inner) = second(&hierarchy);
        let (port, left) = match which {
            0 => (ROOT_PORT, [false; 3]),
            1 => (hierarchy.root.children()[0].bdf, [false; 3]),
            2 => (first, [false, true, true]),
            3 => (cascade, [true, false, false]),
            4 => (inner.bdf, [true, false, false]),
            _ => (inner.children()[1].bdf, [true, true, false]),
        };
        secondary_bus_reset(&mut fabric, port);
        assert_eq!(kept(&fabric), left, "reset through {port}");
        assert_eq!(fabric.count(|h| matches!(h, Happened::Down(..))), 0, "no link is lost");
        // Devices that were reset neither decode nor master; the others continue.
        for (node, kept) in endpoints(&hierarchy).iter().zip(left) {
            let value = fabric.read(bar(node), 4);
            assert_eq!(value, if kept { MAGIC.into() } else { 0xffff_ffff }, "{}", node.bdf);
        }
        let again = fabric.ready();
        assert_eq!(again.len(), 3);
        for node in again {
            works(&mut fabric, &node);
        }
    }
}

#[test]
fn software_programs_a_function_again_after_its_reset() {
    let (mut fabric, hierarchy) = marked();
    let nodes = endpoints(&hierarchy);
    let node = nodes[1].clone();
    let control = node.pcie.unwrap() + 8;
    let before = fabric.config(node.bdf, control, 2);
    fabric.set_config(node.bdf, control, 2, before | 1 << 15);
    assert_eq!(kept(&fabric), [true, false, true]);
    assert_eq!(fabric.read(bar(&node), 4), 0xffff_ffff);
    fabric.program(&node);
    fabric.host.clear_bus_masters(node.bdf.bus()..=node.bdf.bus());
    fabric.enable(&node, 1);
    works(&mut fabric, &node);
    assert_eq!(fabric.config(node.bdf, control, 2) & 7 << 5, before & 7 << 5, "MPS is kept");
}

#[test]
fn a_reset_amid_copies_forgets_them_and_no_other_link_notices() {
    let mut fabric = Plan { shape: Shape::ROUGH, ..Plan::default() }.with_devices(2);
    let nodes = fabric.ready();
    for round in 0..20u64 {
        for (i, node) in (0u64..).zip(&nodes) {
            let to = RAM + 0x10_0000 * (i + 1);
            pcie::dma_test::driver::start_copy(&fabric.bus, bar(node), RAM, to, 200_000);
        }
        fabric.pass(Duration::from_us(20 + round * 37));
        secondary_bus_reset(&mut fabric, Bdf::new(2, 0, 0));
        let quiet = fabric.count(|_| true);
        assert_eq!(fabric.read(bar(&nodes[0]), 4), 0xffff_ffff);
        let (bus, node) = (fabric.bus.clone(), nodes[1].clone());
        let ended = fabric.run(async move { pcie::dma_test::driver::wait(&bus, bar(&node)).await });
        assert_eq!(ended, Ok(()));
        let nothing_of_the_first = fabric.happened[quiet..].iter().all(|h| {
            !matches!(h, Happened::Written(at, _) if (RAM + 0x10_0000..RAM + 0x20_0000).contains(at))
        });
        assert!(nothing_of_the_first, "round {round}: written after the reset");
        fabric.program(&nodes[0]);
        fabric.enable(&nodes[0], 1);
        works(&mut fabric, &nodes[0]);
    }
}

/// Link status and slot status of a downstream port.
fn port_state(fabric: &mut Fabric, port: &Node) -> (bool, bool, u32) {
    let at = port.pcie.unwrap();
    let up = fabric.config(port.bdf, at + 0x12, 2) & 1 << 13 != 0;
    let slot = fabric.config(port.bdf, at + 0x1a, 2);
    (up, slot & 1 << 6 != 0, slot & (1 << 8 | 1 << 3))
}

#[test]
fn a_link_goes_and_comes_and_its_device_is_found_again() {
    let mut fabric = Plan { shape: Shape::ROUGH, ..Plan::default() }.with_devices(2);
    let hierarchy = fabric.enumerate();
    let nodes = endpoints(&hierarchy);
    nodes.iter().for_each(|node| fabric.enable(node, 1));
    let port = hierarchy.root.children()[0].children()[0].clone();
    let at = port.pcie.unwrap() + 0x1a;
    fabric.set_config(port.bdf, at, 2, 1 << 8 | 1 << 3);
    assert_eq!(port_state(&mut fabric, &port), (true, true, 0));
    fabric.disconnect(0);
    fabric.pass(Duration::from_us(1));
    assert_eq!(port_state(&mut fabric, &port), (false, false, 1 << 8 | 1 << 3));
    let before = fabric.now;
    assert_eq!(fabric.read(bar(&nodes[0]), 4), 0xffff_ffff);
    assert_eq!(fabric.config(nodes[0].bdf, 0, 4), !0);
    fabric.bus.write(bar(&nodes[0]), 4, 1);
    fabric.settle();
    assert_eq!(fabric.now, before, "at once");
    assert_eq!(fabric.top().errors()[1].dropped_link_down, 1);
    works(&mut fabric, &nodes[1]);

    fabric.connect(0);
    assert!(port_state(&mut fabric, &port).0);
    let found = fabric.enumerate_below(&port, Settings::default(), nodes[0].max_payload);
    assert_eq!(found.unwrap(), [nodes[0].clone()], "where it was");
    fabric.enable(&nodes[0], 1);
    works(&mut fabric, &nodes[0]);
    works(&mut fabric, &nodes[1]);
}

#[test]
fn something_else_may_come_up_in_a_slot_even_a_switch() {
    let plan = Plan::default();
    let mut fabric = plan.with_devices(2);
    let hierarchy = fabric.enumerate();
    let port = hierarchy.root.children()[0].children()[0].clone();
    fabric.disconnect(0);
    *fabric.nodes[0].function_mut() = Device::Switch(Box::new(plan.switch(1)));
    fabric.connect(0);
    let below = plan.add(&mut fabric, Parent::Node(0), 0, dma(77));
    fabric.connect(below);
    let settings = Settings { hotplug_buses: 1, hotplug_window: 1 << 20, ..Settings::default() };
    let found = fabric.enumerate_below(&port, settings, 128).unwrap();
    let device = &found[0].children()[0].children()[0];
    assert_eq!(device.device().unwrap().serial, Some(77));
    fabric.enable(device, 1);
    works(&mut fabric, device);
    works_too(&mut fabric, &endpoints(&hierarchy)[1]);

    // A slot that requests more buses than it has does not affect others.
    let greedy = Settings { hotplug_buses: 40, ..Settings::default() };
    let found = fabric.enumerate_below(&port, greedy, 128);
    assert_eq!(found, Err(enumerate::Error::Buses));
    works_too(&mut fabric, &endpoints(&hierarchy)[1]);
}

fn works_too(fabric: &mut Fabric, node: &Node) {
    fabric.enable(node, 1);
    works(fabric, node);
}

#[test]
fn a_device_node_that_falls_silent_is_lost_within_a_second() {
    let mut fabric = Plan::default().with_devices(2);
    let nodes = fabric.ready();
    (fabric.links[0].up.stalled, fabric.links[0].down.stalled) = (true, true);
    let before = fabric.now;
    assert_eq!(fabric.read(bar(&nodes[0]), 4), 0xffff_ffff);
    assert!(fabric.now.since(before) < Duration::from_ms(1_000));
    // Either end may close the link first.
    let lost = |h: &Happened| {
        matches!(h, Happened::Down(0, Cause::Lost) | Happened::DeviceDown(0, Cause::Lost))
    };
    assert!(fabric.count(lost) >= 1, "{:?}", fabric.happened);
    let again = fabric.now;
    assert_eq!(fabric.read(bar(&nodes[0]), 4), 0xffff_ffff);
    assert_eq!(fabric.now, again, "at once from then on");
    works(&mut fabric, &nodes[1]);
}

#[test]
fn links_above_and_below_the_second_switch_go_and_come() {
    for (link, left) in [(1, [true, false, false]), (3, [true, true, false])] {
        let (mut fabric, hierarchy) = marked();
        let nodes = endpoints(&hierarchy);
        let mut port = &hierarchy.root.children()[0].children()[1];
        if link == 3 {
            port = &port.children()[0].children()[1];
        }
        fabric.disconnect(link);
        fabric.pass(Duration::from_us(1));
        let before = fabric.now;
        for (node, _) in nodes.iter().zip(left).filter(|(_, left)| !left) {
            assert_eq!(fabric.config(node.bdf, 0, 4), !0);
            assert_eq!(fabric.read(bar(node), 4), 0xffff_ffff);
        }
        // The lower link's loss is detected only after the upper one's.
        let limit = if link == 1 { Duration::ZERO } else { Duration::from_ms(1) };
        assert!(fabric.now.since(before) <= limit, "at once");
        nodes.iter().zip(left).filter(|(_, left)| *left).for_each(|(n, _)| works(&mut fabric, n));
        fabric.connect(link);
        assert_eq!(kept(&fabric), left, "a new link is a hot reset");
        let found = fabric.enumerate_below(port, Settings::default(), nodes[0].max_payload);
        assert_eq!(found.unwrap(), port.children());
        nodes.iter().for_each(|node| works_too(&mut fabric, node));
    }
}

#[test]
fn a_restarted_device_node_is_a_fresh_device() {
    let mut fabric = Plan::default().with_devices(1);
    let nodes = fabric.ready();
    fabric.bus.write(bar(&nodes[0]) + register::RAM, 4, MARK);
    fabric.pass(Duration::from_us(10));
    fabric.disconnect(0);
    *fabric.nodes[0].function_mut() = dma(5);
    fabric.connect(0);
    // Before the host enumerates again, accesses must fail.
    assert_eq!(fabric.read(bar(&nodes[0]), 4), 0xffff_ffff);
    let again = endpoints(&fabric.enumerate());
    assert_eq!(again[0].device().unwrap().serial, Some(5));
    works_too(&mut fabric, &again[0]);
}

#[test]
fn a_device_that_comes_back_masters_the_bus_only_when_it_is_told_to_again() {
    let mut fabric = Plan::default().with_script(1);
    let nodes = fabric.ready();
    let data = bytes::Bytes::from_static(&[1; 4]);
    let write = wire::tlp::Tlp::write_bytes(nodes[0].bdf, RAM, &data).unwrap();
    let written = |h: &Happened| matches!(h, Happened::Written(..));
    fabric.send(0, write.clone());
    assert_eq!(fabric.count(written), 1);
    fabric.disconnect(0);
    fabric.pass(Duration::from_ms(1));
    fabric.connect(0);
    fabric.send(0, write);
    assert_eq!(fabric.count(written), 1, "it lies about its bus master bit");
    assert_eq!(fabric.root().errors().bus_master_off, 1);
}
