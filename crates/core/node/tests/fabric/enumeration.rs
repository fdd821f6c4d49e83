//! Results of enumeration, and the routing of configuration requests.

use crate::fabric::world::{Device, Fabric, Parent, Plan, Shape, bar, dma};
use pcie::enumerate::Hierarchy;
use wire::Bdf;

fn serials(hierarchy: &Hierarchy) -> Vec<u64> {
    hierarchy.endpoints().iter().filter_map(|node| node.device()?.serial).collect()
}

#[test]
fn one_two_and_four_ports() {
    for ports in [1, 2, 4] {
        for shape in [Shape::PLAIN, Shape::ROUGH] {
            let mut fabric = Plan { shape, ..Plan::default() }.with_devices(ports);
            let hierarchy = fabric.enumerate();
            assert_eq!(serials(&hierarchy), (0..u64::from(ports)).collect::<Vec<_>>());
            assert_eq!(hierarchy.nodes().len(), 2 + 2 * usize::from(ports));
            let upstream = &hierarchy.root.children()[0];
            assert_eq!(upstream.port().unwrap().port_type, 5);
            for node in upstream.children() {
                let port = node.port().unwrap();
                assert!(port.link_up);
                let bar = node.children()[0].bar(0).unwrap();
                assert!(port.window.contains(&bar.address));
                assert_eq!(fabric.read(bar.address, 4), u64::from(pcie::dma_test::MAGIC));
            }
            assert_eq!(fabric.root().errors().completion_timeout, 0);
        }
    }
}

#[test]
fn empty_slots_are_ports_with_their_link_down() {
    let plan = Plan::default();
    let mut fabric = plan.build(4);
    plan.add(&mut fabric, Parent::Top, 2, dma(9));
    let hierarchy = fabric.connected().enumerate();
    assert_eq!(serials(&hierarchy), [9]);
    let ports = hierarchy.root.children()[0].children();
    let up: Vec<bool> = ports.iter().map(|port| port.port().unwrap().link_up).collect();
    assert_eq!(up, [false, false, true, false]);
    let mut windows: Vec<_> =
        ports.iter().map(|port| port.port().unwrap().window.clone()).collect();
    windows.sort_by_key(|window| window.start);
    assert!(windows.windows(2).all(|pair| pair[0].end <= pair[1].start), "{windows:x?}");
}

#[test]
fn absent_functions_read_as_all_ones_at_once() {
    let mut fabric = Plan::default().with_devices(2);
    fabric.enumerate();
    let before = fabric.now;
    // Other devices next to the endpoint and the ports, another function, and a bus that does not
    // exist.
    for target in [
        Bdf::new(3, 1, 0),
        Bdf::new(3, 0, 1),
        Bdf::new(2, 2, 0),
        Bdf::new(2, 0, 1),
        Bdf::new(1, 1, 0),
        Bdf::new(200, 0, 0),
        Bdf::new(0, 5, 0),
    ] {
        assert_eq!(fabric.config(target, 0, 4), !0, "{target}");
    }
    assert!(fabric.now.since(before) < wire::Duration::from_ms(1));
    assert_eq!(fabric.root().errors().completion_timeout, 0);
}

/// Every device of the cascade is reachable, and nothing else.
fn check_cascade(fabric: &mut Fabric, hierarchy: &Hierarchy) {
    for node in hierarchy.endpoints() {
        let bar = bar(node) + pcie::dma_test::register::RAM;
        let serial = node.device().unwrap().serial.unwrap();
        fabric.bus.write(bar, 8, 0x1111_1111 * (serial + 1));
    }
    for node in hierarchy.endpoints() {
        let bar = bar(node) + pcie::dma_test::register::RAM;
        let serial = node.device().unwrap().serial.unwrap();
        assert_eq!(fabric.read(bar, 8), 0x1111_1111 * (serial + 1));
        assert_eq!(fabric.dma(serial as usize).endpoint().id(), node.bdf);
    }
}

#[test]
fn a_cascade_of_two_switches() {
    for shape in [Shape::PLAIN, Shape::ROUGH] {
        let mut fabric = Plan { shape, ..Plan::default() }.cascade();
        let hierarchy = fabric.enumerate();
        assert_eq!(serials(&hierarchy), [0, 2, 3]);
        let second = &hierarchy.root.children()[0].children()[1].children()[0];
        let port = second.port().unwrap();
        assert_eq!(port.port_type, 5);
        assert_eq!(port.children.len(), 2);
        assert!(port.children.iter().all(|child| {
            let inner = child.port().unwrap();
            port.window.start <= inner.window.start
                && inner.window.end <= port.window.end
                && (port.secondary..=port.subordinate).contains(&inner.secondary)
        }));
        check_cascade(&mut fabric, &hierarchy);
        // Behind the second switch too, an absent function fails at once.
        let before = fabric.now;
        assert_eq!(fabric.config(Bdf::new(port.secondary, 9, 0), 0, 4), !0);
        assert_eq!(
            fabric.config(Bdf::new(port.children[0].port().unwrap().secondary, 3, 0), 0, 4),
            !0
        );
        assert!(fabric.now.since(before) < wire::Duration::from_ms(1));
        assert_eq!(fabric.root().errors().completion_timeout, 0);
    }
}

#[test]
fn an_empty_slot_behind_two_switches_answers_at_once() {
    let plan = Plan::default();
    let mut fabric = plan.with([Device::Switch(Box::new(plan.switch(2)))]);
    let hierarchy = fabric.enumerate();
    let ports = hierarchy.root.children()[0].children()[0].children()[0].children();
    assert_eq!(ports.len(), 2);
    assert_eq!(fabric.root().errors().completion_timeout, 0);
}

#[test]
fn a_second_enumeration_finds_the_same() {
    let mut fabric = Plan::default().cascade();
    let first = fabric.enumerate();
    assert_eq!(fabric.enumerate(), first);
}
