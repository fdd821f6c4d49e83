//! Ordering of TLPs through the whole fabric: PCIe Base 4.0, table 2-40.

use crate::fabric::world::{Fabric, Happened, Parent, Plan, RAM, Shape, bar};
use bytes::Bytes;
use pcie::dma_test::register;
use pcie::enumerate::Node;
use pcie::software::Task;
use pcie::{OrderedQueue, Ready};
use proptest::prelude::*;
use switch::tunnel::{Cause, Input, Output, Settings, Tunnel};
use wire::frame::{Grant, Role};
use wire::tlp::{Attributes, Class, MemoryRequest, Packet, Status, Tlp};
use wire::{Bdf, Duration, Instant, Tag};

fn write(requester: Bdf, number: u32) -> Tlp {
    let address = RAM + u64::from(number % 1024) * 4;
    let bytes = Bytes::copy_from_slice(&number.to_le_bytes());
    Tlp::write_bytes(requester, address, &bytes).unwrap()
}

fn read(requester: Bdf, tag: u16) -> Tlp {
    Tlp::read_bytes(requester, Tag::truncate(tag), RAM, 4).unwrap()
}

/// A scripted device whose link has two non-posted credits in each direction.
fn narrow() -> (Fabric, Node) {
    let plan = Plan {
        shape: Shape::ROUGH,
        tunnel: |settings| settings.window[1] = Grant { headers: 2, data: 2 },
        ..Plan::default()
    };
    let mut fabric = plan.with_script(1);
    let node = fabric.ready().remove(0);
    fabric.script(0).received.clear();
    (fabric, node)
}

/// Starts `count` register reads whose results are not used.
fn reads(fabric: &Fabric, address: u64, count: usize) -> Vec<Task<u64>> {
    (0..count).map(|_| fabric.start_read(&fabric.bus, address)).collect()
}

#[test]
fn a_port_that_is_held_back_holds_up_no_other() {
    let mut fabric = Plan::default().with_script(2);
    let nodes = fabric.ready();
    fabric.switch(Parent::Top).hold(0, true);
    let writes = (0..8000).map(|number| write(nodes[0].bdf, number));
    fabric.script(0).send.extend(writes);
    fabric.pass(Duration::from_ms(50));
    let four_bytes = |h: &Happened| matches!(h, Happened::Written(_, data) if data.len() == 4);
    assert_eq!(fabric.count(four_bytes), 0);
    assert!(!fabric.script(0).send.is_empty(), "without credits the device waits");
    let (other, data) = (bar(&nodes[1]), vec![0xa7; 4096]);
    fabric.memory(0x1_0000, 4096).copy_from_slice(&data);
    assert_eq!(fabric.copy(other, RAM + 0x1_0000, RAM + 0x2_0000, 4096), Ok(()));
    assert_eq!(fabric.memory(0x2_0000, 4096), data);
    fabric.switch(Parent::Top).hold(0, false);
    fabric.pass(Duration::from_ms(50));
    assert_eq!(fabric.count(four_bytes), 8000);
}

#[test]
fn requests_stuck_on_the_way_down_hold_up_nothing_else() {
    let (mut fabric, node) = narrow();
    let bar = bar(&node) + register::RAM;
    fabric.script(0).takes = Ready::ALL.with(Class::NonPosted, false);
    let mut waiting = reads(&fabric, bar, 50);
    fabric.pass(Duration::from_ms(1));
    for number in 0..100u64 {
        fabric.bus.write(bar + number * 4, 4, number);
        // A read by the device: its completion must arrive too.
        fabric.script(0).send.push_back(read(node.bdf, number as u16));
        fabric.script(0).send.push_back(write(node.bdf, number as u32));
    }
    fabric.pass(Duration::from_ms(10));
    let received = |fabric: &mut Fabric, class: Class| {
        fabric.script(0).received.iter().filter(|tlp| tlp.class() == class).count()
    };
    assert_eq!(received(&mut fabric, Class::NonPosted), 0, "stuck");
    assert_eq!(received(&mut fabric, Class::Posted), 100);
    assert_eq!(received(&mut fabric, Class::Completion), 100);
    assert_eq!(fabric.count(|h| matches!(h, Happened::Written(..))), 100);
    assert!(waiting.iter_mut().all(|task| task.poll(fabric.now).is_none()));
    fabric.script(0).takes = Ready::ALL;
    fabric.pass(Duration::from_ms(10));
    // Reads sent before the writes may be answered after them. The order requires only that reads
    // do not pass writes.
    assert!(waiting.iter_mut().all(|task| task.poll(fabric.now) == Some(0)));
}

#[test]
fn a_device_that_takes_nothing_loses_its_link_and_frees_the_others() {
    let mut fabric = Plan::default().with_script(2);
    let nodes = fabric.endpoints();
    let [stuck, other] = [0, 1].map(|n: usize| bar(&nodes[n]));
    fabric.script(0).takes = Ready::NONE;
    // More than the window and the queue before it hold.
    for _ in 0..8000 {
        fabric.bus.write(stuck + register::RAM, 4, 1);
    }
    fabric.bus.write(other + register::RAM, 4, 0x55);
    fabric.pass(Duration::from_ms(700));
    let down = |h: &Happened| matches!(h, Happened::Down(..));
    assert_eq!(fabric.count(down), 0, "it has some time");
    fabric.pass(Duration::from_ms(200));
    assert_eq!(fabric.count(|h| *h == Happened::Down(0, Cause::Stuck)), 1);
    assert_eq!(fabric.count(down), 1);
    assert_eq!(fabric.read(other + register::RAM, 4), 0x55, "the other has its write");
    assert!(fabric.top().errors()[1].dropped_link_down > 4000, "what was lost is counted");
}

#[test]
fn requests_stuck_on_the_way_up_hold_up_nothing_else() {
    let (mut fabric, node) = narrow();
    let bar = bar(&node) + register::RAM;
    fabric.stuck_memory = true;
    for number in 0..3000 {
        fabric.script(0).send.push_back(read(node.bdf, number));
    }
    fabric.pass(Duration::from_ms(50));
    assert!(fabric.top().tunnel(0).has_received(), "the port leaves the rest to its link");
    fabric.script(0).send.clear();
    for number in 0..100 {
        fabric.script(0).send.push_back(write(node.bdf, number));
    }
    fabric.pass(Duration::from_ms(10));
    assert_eq!(fabric.count(|h| matches!(h, Happened::Written(..))), 100);
    let before = fabric.now;
    assert_eq!(fabric.read(bar, 4), 0, "the host's own reads are answered");
    assert!(fabric.now.since(before) < Duration::from_ms(1));
    let asked = fabric.script(0).received.len();
    fabric.stuck_memory = false;
    fabric.pass(Duration::from_ms(100));
    assert!(fabric.script(0).received.len() > asked + 1000, "and the rest goes on");
}

#[test]
fn a_read_pushes_the_writes_before_it() {
    let mut fabric = Plan { shape: Shape::ROUGH, ..Plan::default() }.with_script(1);
    let node = fabric.ready().remove(0);
    let bar = bar(&node) + register::RAM;
    for round in 0..50u64 {
        // Down: a register read returns the value written just before.
        fabric.bus.write(bar, 4, round);
        assert_eq!(fabric.read(bar, 4), round);
        // Up: a completion comes behind the device's earlier writes.
        let written = |h: &Happened| matches!(h, Happened::Written(..));
        let before = fabric.count(written);
        fabric.script(0).send.extend((0..20).map(|number| write(node.bdf, number)));
        fabric.read(bar, 4);
        assert_eq!(fabric.count(written), before + 20);
    }
}

fn numbered(class: Class, relaxed: bool, number: u32) -> Tlp {
    let tag = Tag::truncate(number as u16 & 0x3ff);
    let mut tlp = match class {
        Class::Posted => write(Bdf::new(3, 0, 0), number),
        Class::NonPosted => read(Bdf::new(3, 0, 0), number as u16),
        Class::Completion => {
            let device = Bdf::new(3, 0, 0);
            let request = MemoryRequest::for_bytes(Bdf::default(), tag, RAM, 4).unwrap();
            Tlp::completion(request.completion(device, Status::UnsupportedRequest, 4))
        }
    };
    tlp.attributes = Attributes { relaxed, ..Attributes::default() };
    if let Packet::MemoryWrite(request) = &mut tlp.packet {
        request.tag = tag;
    }
    tlp
}

/// The number set by [`numbered`].
fn number(tlp: &Tlp) -> u16 {
    match tlp.packet {
        Packet::MemoryRead(r) | Packet::MemoryWrite(r) => r.tag.get(),
        Packet::Completion(c) => c.tag.get(),
        _ => panic!("none of ours"),
    }
}

/// Checks that the order of `taken` is allowed, given the numbers.
fn lawful(taken: &[Tlp]) -> Result<(), TestCaseError> {
    for (at, later) in taken.iter().enumerate() {
        for earlier in &taken[..at] {
            if number(earlier) < number(later) {
                continue;
            }
            // `earlier` left first although it entered behind `later`.
            let passed = (earlier.class(), later.class());
            let allowed = match passed {
                (_, Class::Posted) => {
                    earlier.class() == Class::Completion && earlier.attributes.relaxed
                }
                (one, other) => one != other,
            };
            prop_assert!(allowed, "{passed:?} {} {}", number(earlier), number(later));
        }
    }
    Ok(())
}

fn ready(mask: u8) -> Ready {
    Ready::from_fn(|class| mask >> class.index() & 1 != 0)
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push(Class, bool),
    Pop(u8),
    Carry(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let class = prop_oneof![Just(Class::Posted), Just(Class::NonPosted), Just(Class::Completion)];
    prop::collection::vec(
        prop_oneof![
            3 => (class, any::<bool>()).prop_map(|(class, relaxed)| Step::Push(class, relaxed)),
            2 => (0u8..8).prop_map(Step::Pop),
            1 => (1usize..500).prop_map(Step::Carry),
        ],
        1..300,
    )
}

/// Passes the bytes of each end to the other in pieces.
fn carry(ends: &mut [Tunnel; 2], piece: usize) {
    loop {
        let mut quiet = true;
        for from in 0..2 {
            ends[from].handle(Instant::ZERO, Input::CanTransmit { bytes: 1 << 16 });
            while let Output::Transmit(_, bytes) = ends[from].poll(Instant::ZERO) {
                quiet = false;
                for part in bytes.chunks(piece) {
                    let part = Bytes::copy_from_slice(part);
                    ends[1 - from].handle(Instant::ZERO, Input::Received(part));
                }
            }
        }
        if quiet {
            return;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_queue_keeps_the_rules(steps in steps()) {
        let (mut queue, mut taken, mut pushed) = (OrderedQueue::default(), Vec::new(), 0);
        for step in steps {
            match step {
                Step::Push(class, relaxed) => {
                    queue.push(numbered(class, relaxed, pushed));
                    pushed += 1;
                }
                Step::Pop(mask) => taken.extend(queue.pop(ready(mask))),
                Step::Carry(_) => {}
            }
        }
        while let Some(tlp) = queue.pop(Ready::ALL) {
            taken.push(tlp);
        }
        prop_assert_eq!(taken.len(), pushed as usize);
        lawful(&taken)?;
    }

    /// Through a tunnel with little credit and a receiver that accepts some classes only,
    /// everything arrives once and in an allowed order.
    #[test]
    fn the_tunnel_keeps_the_rules(steps in steps(), headers in 1u32..8) {
        let end = |role| {
            let mut settings = Settings::new(role, 1);
            settings.window = [Grant { headers, data: 256 }; 3];
            Tunnel::new(settings)
        };
        let mut ends = [end(Role::Host), end(Role::Device)];
        for end in &mut ends {
            end.handle(Instant::ZERO, Input::Connected);
        }
        carry(&mut ends, 1000);
        prop_assert!(ends.iter().all(Tunnel::is_up));
        let (mut taken, mut pushed) = (Vec::new(), 0);
        for step in steps {
            match step {
                Step::Push(class, relaxed) => {
                    ends[0].push(numbered(class, relaxed, pushed));
                    pushed += 1;
                }
                Step::Pop(mask) => taken.extend(ends[1].pop(ready(mask))),
                Step::Carry(piece) => carry(&mut ends, piece),
            }
        }
        for _ in 0..pushed {
            carry(&mut ends, 1000);
            while let Some(tlp) = ends[1].pop(Ready::ALL) {
                taken.push(tlp);
            }
        }
        prop_assert_eq!(taken.len(), pushed as usize);
        lawful(&taken)?;
    }
}
