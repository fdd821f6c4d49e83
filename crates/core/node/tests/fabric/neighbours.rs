//! A device that accepts nothing, or whose reads of host memory get no answer, must not block
//! devices behind other ports.

use crate::fabric::world::{Fabric, Happened, Plan, RAM, bar};
use pcie::Ready;
use pcie::dma_test::{control, register};
use pcie::enumerate::Node;
use wire::tlp::Tlp;
use wire::{Duration, Tag};

/// A script that accepts nothing behind port 0, a DMA test function behind port 1.
fn world(p2p: bool) -> (Fabric, Vec<Node>) {
    let mut fabric = Plan { p2p, ..Plan::default() }.with_script(2);
    let nodes = fabric.ready();
    fabric.script(0).takes = Ready::NONE;
    (fabric, nodes)
}

/// Checks that port 1 works: register reads, posted writes, the function's reads and writes of host
/// memory, and its interrupt.
fn goes_on(fabric: &mut Fabric, nodes: &[Node]) {
    fabric.pass(Duration::from_ms(20));
    let bar = bar(&nodes[1]);
    let before = fabric.now;
    for round in 0..10_u64 {
        fabric.bus.write(bar + register::RAM, 8, round);
        assert_eq!(fabric.read(bar + register::RAM, 8), round);
    }
    let data = vec![0xa7; 0x1_0000];
    fabric.memory(0x1_0000, data.len()).copy_from_slice(&data);
    assert_eq!(fabric.copy(bar, RAM + 0x1_0000, RAM + 0x2_0000, 0x1_0000), Ok(()));
    assert!(fabric.memory(0x2_0000, data.len()) == data);
    assert_eq!(fabric.count(|h| *h == Happened::Interrupt(nodes[1].bdf, 1)), 1);
    assert_eq!(fabric.count(|h| matches!(h, Happened::Down(..))), 0, "port 0 is stuck still");
    assert!(fabric.now.since(before) < Duration::from_ms(10), "{}", fabric.now.since(before));
}

#[test]
fn posted_writes_that_a_device_does_not_take_hold_up_no_other_port() {
    let (mut fabric, nodes) = world(false);
    let bar = bar(&nodes[0]);
    // More than its window, its queue and the root complex hold.
    (0..20_000).for_each(|n| fabric.other.write(bar + register::RAM + n % 64 * 8, 8, n));
    goes_on(&mut fabric, &nodes);
    assert!(fabric.other.queued() > 10_000, "what is not taken waits where it came from");
    fabric.script(0).takes = Ready::ALL;
    fabric.pass(Duration::from_ms(50));
    assert_eq!(fabric.other.queued(), 0);
    let ram = fabric.script(0).behind.ram();
    let last = |n: u64| ram[n as usize * 8..][..8] == (19_968 + n).to_le_bytes();
    assert!((0..32).all(last), "all of them arrived, in order");
}

#[test]
fn register_reads_that_a_device_does_not_take_hold_up_no_other_port() {
    let (mut fabric, nodes) = world(false);
    let bar = bar(&nodes[0]);
    let mut waiting: Vec<_> = (0..600).map(|_| fabric.start_read(&fabric.other, bar)).collect();
    goes_on(&mut fabric, &nodes);
    assert!(waiting.iter_mut().all(|task| task.poll(fabric.now).is_none()));
    fabric.script(0).takes = Ready::ALL;
    fabric.pass(Duration::from_ms(50));
    assert!(waiting.iter_mut().all(|task| task.poll(fabric.now).is_some()));
}

/// 3000 reads of the script behind port 0, from `address`.
fn ask(fabric: &mut Fabric, node: &Node, address: u64, length: usize) {
    let read = |n: u16| {
        let tag = Tag::truncate(n % 1024);
        Tlp::read_bytes(node.bdf, tag, address, length).unwrap()
    };
    fabric.script(0).send.extend((0..3000).map(read));
}

#[test]
fn completions_that_a_device_does_not_take_hold_up_no_other_port() {
    for p2p in [false, true] {
        let (mut fabric, nodes) = world(p2p);
        ask(&mut fabric, &nodes[0], RAM, 4096);
        goes_on(&mut fabric, &nodes);
        fabric.script(0).takes = Ready::ALL;
        fabric.pass(Duration::from_ms(100));
        assert!(fabric.script(0).send.is_empty());
    }
}

#[test]
fn writes_to_a_peer_that_takes_nothing_hold_up_no_other_port() {
    let mut fabric = Plan { p2p: true, ..Plan::default() }.with_script(3);
    let nodes = fabric.ready();
    fabric.script(0).takes = Ready::NONE;
    let peer = bar(&nodes[0]) + register::RAM;
    let bar = bar(&nodes[2]);
    fabric.bus.write(bar + register::DESTINATION, 8, peer);
    fabric.bus.write(bar + register::LENGTH, 4, 0x2000);
    // 16 MiB from port 2 to its stuck peer.
    for _ in 0..2000 {
        fabric.bus.write(bar + register::CONTROL, 1, control::FILL.into());
        fabric.pass(Duration::from_us(10));
    }
    goes_on(&mut fabric, &nodes);
}

#[test]
fn memory_that_does_not_answer_one_port_holds_up_no_other() {
    let (mut fabric, nodes) = world(false);
    fabric.script(0).takes = Ready::ALL;
    fabric.unanswered = Some(nodes[0].bdf);
    ask(&mut fabric, &nodes[0], RAM, 64);
    goes_on(&mut fabric, &nodes);
}
