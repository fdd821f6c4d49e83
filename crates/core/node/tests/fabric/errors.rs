//! Everything that can be refused, lost or damaged, and its counters.

use crate::fabric::world::{Fabric, Happened, Plan, RAM, bar, script};
use bytes::Bytes;
use pcie::Errors;
use pcie::bridge::completion_for;
use pcie::config::command;
use pcie::dma_test::{MAGIC, register};
use pcie::enumerate::Node;
use pcie::root::ROOT_PORT;
use switch::tunnel::Cause;
use wire::tlp::{Completion, ConfigKind, ConfigRequest, Packet, Status, Tlp};
use wire::{Bdf, Duration, Tag};

/// An enumerated fabric with every endpoint enabled.
fn ready(mut fabric: Fabric) -> (Fabric, Vec<Node>) {
    let nodes = fabric.ready();
    (fabric, nodes)
}

fn write(requester: Bdf, address: u64) -> Tlp {
    Tlp::write_bytes(requester, address, &Bytes::from_static(&[1, 2, 3, 4])).unwrap()
}

fn read(requester: Bdf, address: u64) -> Tlp {
    Tlp::read_bytes(requester, Tag::truncate(9), address, 4).unwrap()
}

/// How much a counter of a switch's port grew; the upstream port is 0.
fn grown(fabric: &Fabric, port: usize, before: &[Errors], counter: fn(&Errors) -> u64) -> u64 {
    counter(&fabric.top().errors()[port]) - counter(&before[port])
}

#[test]
fn addresses_that_nobody_has_are_unsupported_requests() {
    let (mut fabric, nodes) = ready(Plan::default().with_devices(1));
    assert_eq!(fabric.copy(bar(&nodes[0]), 0x7000_0000, RAM, 64), Err(Some(1)));
    assert_eq!(fabric.happened[0], Happened::Refused(0x7000_0000));
    assert_eq!(fabric.copy(bar(&nodes[0]), u64::MAX - 31, RAM, 64), Err(Some(1)));
    // Inside the window of the ports, outside the BAR.
    let before = fabric.now;
    assert_eq!(fabric.read(bar(&nodes[0]) + 0x1_0000, 4), 0xffff_ffff);
    // Outside every window.
    assert_eq!(fabric.read(0xd000_0000, 4), 0xffff_ffff);
    assert!(fabric.now.since(before) < Duration::from_ms(1));
    assert_eq!(fabric.dma(0).endpoint().errors().unsupported_request, 1);
    assert_eq!(fabric.read(bar(&nodes[0]), 4), u64::from(MAGIC), "and all goes on");
}

#[test]
fn a_completer_abort_and_a_read_without_answer() {
    let (mut fabric, nodes) = ready(Plan::default().with_script(1));
    fabric.script(0).silent = true;
    let at = bar(&nodes[0]);
    let mut task = fabric.start_read(&fabric.bus, at);
    fabric.pass(Duration::from_ms(1));
    let asked = fabric.script(0).received.last().unwrap().clone();
    let abort = completion_for(nodes[0].bdf, &asked, Status::CompleterAbort);
    fabric.send(0, abort.clone());
    assert_eq!(task.poll(fabric.now), Some(0xffff_ffff));
    assert_eq!(fabric.root().errors().completer_abort, 1);
    // The same completion again matches no request.
    fabric.send(0, abort);
    assert_eq!(fabric.top().errors()[1].unexpected_completion, 1);

    let before = fabric.now;
    assert_eq!(fabric.read(at, 4), 0xffff_ffff, "nobody answers");
    let waited = fabric.now.since(before);
    assert!(waited >= Duration::from_ms(900) && waited < Duration::from_ms(1_000), "{waited}");
    assert_eq!(fabric.root().errors().completion_timeout, 1);
    assert!(fabric.host.below().is_up(0), "a slow device is no lost link");
}

#[test]
fn a_device_whose_read_is_not_answered_gives_up_and_a_late_answer_harms_nobody() {
    let (mut fabric, nodes) = ready(Plan::default().with_devices(1));
    // Completion timeout of the default range: 50 ms.
    let control = nodes[0].pcie.unwrap() + 0x28;
    fabric.set_config(nodes[0].bdf, control, 2, 0);
    fabric.stuck_memory = true;
    assert_eq!(fabric.copy(bar(&nodes[0]), RAM, RAM + 0x1000, 64), Err(Some(3)));
    fabric.stuck_memory = false;
    fabric.pass(Duration::from_ms(1));
    let errors = *fabric.dma(0).endpoint().errors();
    assert_eq!((errors.completion_timeout, errors.unexpected_completion), (1, 1));
    fabric.memory(0, 4).copy_from_slice(&[4, 3, 2, 1]);
    assert_eq!(fabric.copy(bar(&nodes[0]), RAM, RAM + 0x1000, 64), Ok(()));
    assert_eq!(fabric.memory(0x1000, 4), [4, 3, 2, 1]);
}

#[test]
fn a_malformed_packet_closes_its_link_alone() {
    let (mut fabric, nodes) = ready(Plan::default().with_script(2));
    let before = fabric.top().errors();
    // LN set: the first double word of the TLP behind the frame header.
    fabric.links[0].up.spoil = Some(12 + 1);
    fabric.send(0, write(nodes[0].bdf, RAM));
    let down = |h: &Happened| matches!(h, Happened::Down(0, Cause::Tlp(_)));
    assert_eq!(fabric.count(down), 1, "{:?}", fabric.happened);
    assert_eq!(fabric.count(|h| matches!(h, Happened::Down(1, _))), 0);
    assert_eq!(grown(&fabric, 1, &before, |e| e.malformed), 1);
    let before = fabric.now;
    assert_eq!(fabric.read(bar(&nodes[0]), 4), 0xffff_ffff);
    assert_eq!(fabric.config(nodes[0].bdf, 0, 4), !0);
    assert!(fabric.now.since(before) < Duration::from_us(1), "at once");
    assert_eq!(fabric.read(bar(&nodes[1]), 4), u64::from(MAGIC));
    assert_eq!(fabric.copy(bar(&nodes[1]), RAM, RAM + 0x1000, 5000), Ok(()));
}

#[test]
fn bus_mastering_is_needed_at_every_level() {
    let (mut fabric, nodes) = ready(Plan::default().cascade());
    let inner = nodes[1].bdf;
    let levels = [
        ROOT_PORT,
        Bdf::new(1, 0, 0),
        Bdf::new(2, 1, 0),
        // The second switch and its port.
        Bdf::new(inner.bus() - 2, 0, 0),
        Bdf::new(inner.bus() - 1, 0, 0),
        inner,
    ];
    for level in levels {
        let before = fabric.config(level, 4, 2);
        assert_ne!(before & u32::from(command::BUS_MASTER), 0, "{level}");
        fabric.set_config(level, 4, 2, before & !u32::from(command::BUS_MASTER));
        let failed = if level == inner { 5 } else { 1 };
        assert_eq!(fabric.copy(bar(&nodes[1]), RAM, RAM + 64, 8), Err(Some(failed)), "{level}");
        fabric.set_config(level, 4, 2, before);
        assert_eq!(fabric.copy(bar(&nodes[1]), RAM, RAM + 64, 8), Ok(()), "{level}");
    }
}

#[test]
fn memory_space_is_needed_at_every_level() {
    let (mut fabric, nodes) = ready(Plan::default().cascade());
    let inner = nodes[1].bdf;
    let levels =
        [ROOT_PORT, Bdf::new(1, 0, 0), Bdf::new(2, 1, 0), Bdf::new(inner.bus() - 1, 0, 0), inner];
    for level in levels {
        let before = fabric.config(level, 4, 2);
        fabric.set_config(level, 4, 2, before & !u32::from(command::MEMORY_SPACE));
        assert_eq!(fabric.read(bar(&nodes[1]), 4), 0xffff_ffff, "{level}");
        assert_ne!(fabric.config(inner, 0, 4), !0, "configuration needs no memory space");
        fabric.set_config(level, 4, 2, before);
        assert_eq!(fabric.read(bar(&nodes[1]), 4), u64::from(MAGIC), "{level}");
    }
    assert_eq!(fabric.root().errors().completion_timeout, 0);
}

#[test]
fn borrowed_requester_ids_are_refused_and_counted() {
    let (mut fabric, nodes) = ready(Plan::default().with_script(2));
    let before = fabric.top().errors();
    for id in [nodes[1].bdf, Bdf::new(0, 0, 0), ROOT_PORT, Bdf::new(2, 0, 0), Bdf::new(1, 0, 0)] {
        fabric.script(0).send.push_back(write(id, RAM));
        fabric.script(0).send.push_back(read(id, RAM));
    }
    fabric.pass(Duration::from_ms(1));
    assert_eq!(grown(&fabric, 1, &before, |e| e.acs_violation), 10);
    assert_eq!(fabric.count(|h| matches!(h, Happened::Written(..))), 0);
    let refused = |tlp: &&Tlp| {
        matches!(
            tlp.packet,
            Packet::Completion(Completion { status: Status::UnsupportedRequest, .. })
        )
    };
    assert_eq!(fabric.script(0).received.iter().filter(refused).count(), 5);
    // Another function of its own bus, without bus mastering.
    fabric.script(0).send.push_back(write(Bdf::new(nodes[0].bdf.bus(), 0, 3), RAM));
    fabric.pass(Duration::from_ms(1));
    assert_eq!(fabric.count(|h| matches!(h, Happened::Written(..))), 0);
    // Its own ID is accepted.
    fabric.send(0, write(nodes[0].bdf, RAM));
    assert_eq!(fabric.count(|h| matches!(h, Happened::Written(..))), 1);
}

#[test]
fn a_device_cannot_answer_in_the_place_of_another() {
    let (mut fabric, nodes) = ready(Plan::default().with([script(), script()]));
    fabric.script(1).silent = true;
    let mut task = fabric.start_read(&fabric.bus, bar(&nodes[1]));
    fabric.pass(Duration::from_ms(1));
    let asked = fabric.script(1).received.last().unwrap().clone();
    let data = Bytes::from_static(&[0x66; 4]);
    let answer = |completer| Tlp {
        data: data.clone(),
        ..completion_for(completer, &asked, Status::Success)
    };
    // Tag and completer ID are plausible, so this is not detected.
    fabric.send(0, answer(nodes[0].bdf));
    assert_eq!(task.poll(fabric.now), None, "nobody has answered yet");
    assert_eq!(fabric.top().errors()[1].unexpected_completion, 1);
    fabric.send(1, answer(nodes[1].bdf));
    assert_eq!(task.poll(fabric.now), Some(0x6666_6666), "who was asked answers");
}

#[test]
fn devices_send_no_configuration_requests() {
    let (mut fabric, nodes) = ready(Plan::default().with_script(2));
    let before = fabric.top().errors();
    let request = ConfigRequest::whole(ConfigKind::Type1, nodes[0].bdf, nodes[1].bdf, 4);
    let tlp = Tlp::new(Packet::ConfigWrite(request), Bytes::from_static(&[0; 4]));
    fabric.send(0, tlp);
    assert_eq!(grown(&fabric, 1, &before, |e| e.malformed), 1);
    assert_eq!(fabric.read(bar(&nodes[1]), 4), u64::from(MAGIC));
}

#[test]
fn poisoned_writes_are_not_written() {
    let (mut fabric, nodes) = ready(Plan::default().with_script(1));
    let mut poisoned = write(nodes[0].bdf, RAM);
    poisoned.poisoned = true;
    fabric.send(0, poisoned);
    assert_eq!(fabric.count(|h| matches!(h, Happened::Written(..))), 0);
    assert_eq!(fabric.root().errors().poisoned, 1);
}

#[test]
fn a_digest_survives_the_way_and_guards_it() {
    let (mut fabric, nodes) = ready(Plan::default().with_script(1));
    fabric.links[0].up.tapped = Some(Vec::new());
    let mut guarded = write(nodes[0].bdf, RAM);
    guarded.digest = true;
    fabric.script(0).send.push_back(guarded.clone());
    fabric.pass(Duration::from_us(10));
    let sent = crate::fabric::tap::tlps(fabric.links[0].up.tapped.as_ref().unwrap());
    assert_eq!(sent, [guarded.clone()]);
    assert_eq!(fabric.memory(0, 4), [1, 2, 3, 4]);
    // A byte of the payload changes in transit.
    fabric.links[0].up.spoil = Some(12 + 12);
    fabric.script(0).send.push_back(guarded);
    fabric.pass(Duration::from_us(10));
    let digest = Cause::Tlp(wire::tlp::Malformed::Digest);
    assert_eq!(fabric.count(|h| *h == Happened::Down(0, digest.clone())), 1);
    assert_eq!(fabric.top().errors()[1].ecrc, 1);
    assert_eq!(fabric.memory(0, 4), [1, 2, 3, 4]);
}

#[test]
fn zero_length_reads_and_registers_of_every_size() {
    let (mut fabric, nodes) = ready(Plan::default().with_script(1));
    let mut flush = read(nodes[0].bdf, RAM);
    if let Packet::MemoryRead(request) = &mut flush.packet {
        request.first_be = 0;
    }
    fabric.send(0, flush);
    let Packet::Completion(c) = fabric.script(0).received.last().unwrap().packet else {
        panic!("no completion");
    };
    assert_eq!((c.status, c.byte_count, c.lower_address), (Status::Success, 1, 0));
    let at = bar(&nodes[0]) + register::RAM;
    fabric.bus.write(at, 8, 0x0807_0605_0403_0201);
    for (offset, size, value) in [(0, 1, 1), (3, 1, 4), (2, 2, 0x0403), (4, 4, 0x0807_0605)] {
        assert_eq!(fabric.read(at + offset, size), value);
    }
}
