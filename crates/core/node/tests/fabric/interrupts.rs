//! Interrupt wires through the switches, and message-signalled interrupts, which must arrive after
//! the data.

use crate::fabric::world::{Fabric, Happened, Plan, RAM, Shape, bar};
use pcie::dma_test::{control, register};
use pcie::enumerate::{self, Node};
use wire::Duration;

/// A fabric that is ready except for MSI-X.
fn wired(mut fabric: Fabric) -> (Fabric, Vec<Node>) {
    let nodes = fabric.endpoints();
    // Memory space and bus master, interrupt wires not disabled.
    nodes.iter().for_each(|node| fabric.set_config(node.bdf, 4, 2, 6));
    fabric.happened.clear();
    (fabric, nodes)
}

fn raise(fabric: &mut Fabric, node: &Node) {
    let (bus, bar) = (fabric.bus.clone(), bar(node));
    let ended = fabric.run(async move { pcie::dma_test::driver::fill(&bus, bar, 1, RAM, 4).await });
    assert_eq!(ended, Ok(()));
}

fn acknowledge(fabric: &mut Fabric, node: &Node) {
    let at = bar(node) + register::CONTROL;
    fabric.bus.write(at, 4, u64::from(control::ACKNOWLEDGE));
    fabric.pass(Duration::from_ms(1));
}

/// Changes of wires since the last call.
fn wires(fabric: &mut Fabric) -> Vec<(u8, bool)> {
    let wire = |happened: Happened| match happened {
        Happened::Wire(wire, level) => Some((wire, level)),
        _ => None,
    };
    fabric.happened.drain(..).filter_map(wire).collect()
}

#[test]
fn wires_are_swizzled_by_device_number() {
    let (mut fabric, nodes) = wired(Plan::default().with_devices(5));
    for (port, node) in (0u8..).zip(&nodes) {
        raise(&mut fabric, node);
        acknowledge(&mut fabric, node);
        assert_eq!(wires(&mut fabric), [(port % 4, true), (port % 4, false)], "port {port}");
    }
}

#[test]
fn a_shared_wire_falls_with_its_last_user() {
    let (mut fabric, nodes) = wired(Plan::default().with_devices(5));
    raise(&mut fabric, &nodes[0]);
    raise(&mut fabric, &nodes[4]);
    assert_eq!(wires(&mut fabric), [(0, true)]);
    acknowledge(&mut fabric, &nodes[0]);
    assert_eq!(wires(&mut fabric), []);
    acknowledge(&mut fabric, &nodes[4]);
    assert_eq!(wires(&mut fabric), [(0, false)]);
}

#[test]
fn two_switches_swizzle_twice() {
    let (mut fabric, nodes) = wired(Plan::default().cascade());
    // Below port 1 of the first switch: ports 0 and 1 of the second.
    for (node, wire) in nodes.iter().zip([0, 1, 2]) {
        raise(&mut fabric, node);
        acknowledge(&mut fabric, node);
        assert_eq!(wires(&mut fabric), [(wire, true), (wire, false)], "{}", node.bdf);
    }
}

#[test]
fn wires_fall_with_the_link_and_with_every_reset() {
    for way in 0..5 {
        let (mut fabric, nodes) = wired(Plan::default().cascade());
        raise(&mut fabric, &nodes[2]);
        assert_eq!(wires(&mut fabric), [(2, true)]);
        let inner = nodes[2].bdf.bus();
        match way {
            0 => fabric.disconnect(3),
            1 => fabric.disconnect(1),
            2 => fabric.set_config(wire::Bdf::new(2, 1, 0), 0x3e, 2, 1 << 6),
            3 => fabric.set_config(wire::Bdf::new(1, 0, 0), 0x3e, 2, 1 << 6),
            _ => fabric.set_config(pcie::root::ROOT_PORT, 0x3e, 2, 1 << 6),
        }
        fabric.pass(Duration::from_ms(1));
        assert_eq!(wires(&mut fabric), [(2, false)], "way {way}, bus {inner}");
    }
}

#[test]
fn disabled_and_enabled_wires() {
    let (mut fabric, nodes) = wired(Plan::default().with_devices(1));
    raise(&mut fabric, &nodes[0]);
    fabric.set_config(nodes[0].bdf, 4, 2, 6 | 1 << 10);
    fabric.set_config(nodes[0].bdf, 4, 2, 6);
    assert_eq!(wires(&mut fabric), [(0, true), (0, false), (0, true)]);
    assert_ne!(fabric.config(nodes[0].bdf, 6, 2) & 1 << 3, 0, "Interrupt Status");
}

#[test]
fn a_signal_comes_behind_the_data_it_announces() {
    let plan = Plan { shape: Shape::ROUGH, seed: 5, ..Plan::default() };
    let mut fabric = plan.cascade();
    let hierarchy = fabric.enumerate();
    let node = hierarchy.endpoints()[2].clone();
    fabric.enable(&node, 9);
    fabric.slow_memory = true;
    for round in 0..10u64 {
        fabric.happened.clear();
        let length = 4001 + round as u32 * 777;
        let (from, to) = (RAM + 13, RAM + 0x10_0000 + round);
        pcie::dma_test::driver::start_copy(&fabric.bus, bar(&node), from, to, length);
        fabric.pass(Duration::from_ms(20));
        let last = fabric.happened.last();
        assert_eq!(last, Some(&Happened::Interrupt(node.bdf, 9)));
        let mut next = to;
        for happened in &fabric.happened[..fabric.happened.len() - 1] {
            let Happened::Written(at, data) = happened else { panic!("{happened:?}") };
            assert_eq!(*at, next, "in order, nothing twice");
            next += data.len() as u64;
        }
        assert_eq!(next, to + u64::from(length));
    }
}

#[test]
fn masked_vectors_wait() {
    let mut fabric = Plan::default().with_devices(1);
    let node = fabric.enumerate().endpoints()[0].clone();
    fabric.enable(&node, 3);
    enumerate::write_msix_entry(&fabric.bus, &node, 0, 3, true);
    raise(&mut fabric, &node);
    let signals = |h: &Happened| matches!(h, Happened::Interrupt(_, 3));
    assert_eq!(fabric.count(signals), 0);
    let pending = bar(&node) + u64::from(node.device().unwrap().msix.unwrap().pending.1);
    assert_eq!(fabric.read(pending, 8), 1);
    enumerate::write_msix_entry(&fabric.bus, &node, 0, 3, false);
    fabric.pass(Duration::from_ms(1));
    assert_eq!(fabric.count(signals), 1);
    assert_eq!(fabric.read(pending, 8), 0);
}
