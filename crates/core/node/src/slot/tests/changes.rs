//! Functions that come back, unchanged or changed.

use super::*;

#[test]
fn the_same_device_is_prepared_with_bus_mastering_last() {
    let mut world = World::new();
    world.slot.set_msix(true);
    world.settle();
    world.lose();
    world.requests.clear();
    world.find(SAME);
    assert_eq!(world.slot.condition(), Condition::Preparing);
    assert_eq!((world.presence, world.ready), (Presence::Present, 1));
    world.settle();
    assert_eq!((world.slot.condition(), world.ready), (Condition::Attached, 2));
    assert_eq!(world.take_changes(), [Change::Reattached]);
    let writes = world.requests.iter().filter_map(|request| match request {
        Request::ConfigWrite { offset, value, .. } => Some((*offset, *value)),
        _ => None,
    });
    let writes: Vec<_> = writes.collect();
    assert_eq!(writes, [(0x11c, OWNER), (0x4a, 0x8000), (5, 4), (4, 6)]);
}

#[test]
fn new_contents_await_a_reset() {
    let mut world = World::new();
    world.returns(NEW);
    assert_eq!(
        (world.slot.condition(), world.presence),
        (Condition::NewContents, Presence::ConfigOnly)
    );
    assert_eq!(world.take_changes(), [Change::NewContents(LOST)]);
    world.reset();
    assert_eq!((world.slot.condition(), world.presence), (Condition::Attached, Presence::Present));
    assert_eq!(world.take_changes(), [Change::ReattachedWithNewContents(LOST)]);
    world.returns(NEW);
    assert_eq!(world.take_changes(), [Change::Reattached], "they are known now");
}

/// The cases in which the old contents are not known when the function is back.
#[test]
fn new_contents_that_nobody_expects_are_reset_and_attached() {
    let without_client = |world: &mut World| world.client.active = false;
    let after_reset = |world: &mut World| {
        world.reset();
        world.client.command = [None; 2];
    };
    let ways: [&dyn Fn(&mut World); 2] = [&without_client, &after_reset];
    for way in ways {
        let mut world = World::new();
        world.lose();
        way(&mut world);
        world.lose();
        world.requests.clear();
        world.find(NEW);
        world.settle();
        assert_eq!(world.slot.condition(), Condition::Attached);
        assert_eq!(world.take_changes(), [Change::ReattachedWithNewContents(LOST)]);
        let flr = |request: &Request| {
            matches!(request, Request::ConfigWrite { offset: 0x68, value: 0x8000, .. })
        };
        let command = |request: &Request| matches!(request, Request::ConfigWrite { offset: 4, value, .. } if value & 4 != 0);
        assert!(world.requests.iter().any(flr) && !world.requests.iter().any(command));
    }
}

#[test]
fn a_loss_of_data_is_not_undone_by_what_comes_later() {
    let mut world = World::new();
    // Another host used the drive, and then the drive restarted and lost that host's number.
    world.returns(NEW);
    for device in [SAME, ANOTHER, None, SAME] {
        world.returns(device);
    }
    assert_eq!(world.slot.condition(), Condition::NewContents);
    world.reset();
    assert_eq!(world.slot.condition(), Condition::Attached);
    assert_eq!(world.changes.last(), Some(&Change::ReattachedWithNewContents(LOST)));
}

#[test]
fn another_device_or_none_leaves_the_slot_empty() {
    for (device, why) in [
        (ANOTHER, "serial number 0000000000000006 instead of serial number 0000000000000005"),
        (None, "no device found"),
    ] {
        let mut world = World::new();
        world.returns(device);
        assert_eq!(
            (world.slot.condition(), world.presence),
            (Condition::Detached, Presence::Absent)
        );
        assert_eq!(world.take_changes(), [Change::Changed(why.to_owned())]);
        for _ in 0..2 {
            world.reset();
            assert_eq!(world.slot.condition(), Condition::Detached);
            assert_eq!(world.take_changes(), [], "it was reported");
        }
        world.returns(SAME);
        assert_eq!(
            (world.slot.condition(), world.presence),
            (Condition::Attached, Presence::Present)
        );
    }
}

#[test]
fn a_reset_identifies_the_device_that_is_there_now() {
    let mut world = World::new();
    // Replaced behind a switch node: no link of this host was lost.
    world.device = NEW;
    world.reset();
    assert_eq!(world.take_changes(), [Change::ReattachedWithNewContents(LOST)]);
    world.device = ANOTHER;
    world.reset();
    assert_eq!(world.slot.condition(), Condition::Detached);
    world.take_changes();
    world.device = NEW;
    world.reset();
    assert_eq!(world.take_changes(), [Change::Reattached]);
}

#[test]
fn a_reset_that_nobody_answers_does_not_count() {
    let mut world = World::new();
    world.device = None;
    world.reset();
    assert_eq!(world.slot.condition(), Condition::Attached);
    world.returns(NEW);
    assert_eq!(world.slot.condition(), Condition::NewContents);
}

#[test]
fn a_device_that_is_replaced_while_it_is_prepared_leaves_the_slot_empty() {
    for device in [NEW, ANOTHER, None] {
        let replaced = Change::Changed("the device was replaced meanwhile".to_owned());
        let mut world = World::new();
        world.lose();
        world.find(SAME);
        world.device = device;
        world.settle();
        assert_eq!(world.slot.condition(), Condition::Detached);
        assert_eq!(world.take_changes(), [Change::Reattached, replaced.clone()]);
        let mut world = World::new();
        world.slot.reset(1);
        let flr = |request: &Request| matches!(request, Request::ConfigWrite { offset: 0x68, .. });
        while !world.requests.iter().any(flr) {
            world.answer();
            world.turn();
        }
        world.device = device;
        world.settle();
        assert_eq!(world.take_changes(), [replaced]);
    }
}

#[test]
fn work_begun_before_link_loss_is_discarded() {
    for reset in [false, true] {
        let mut world = World::new();
        if reset {
            world.slot.reset(1);
        } else {
            world.lose();
            world.find(SAME);
        }
        world.turn();
        let ready = world.ready;
        world.lose();
        world.settle();
        assert_eq!((world.slot.condition(), world.ready), (Condition::LinkDown, ready));
        world.find(SAME);
        world.settle();
        assert_eq!((world.slot.condition(), world.ready), (Condition::Attached, ready + 1));
    }
}

#[test]
fn the_reset_event_comes_when_the_function_is_ready_unless_the_client_did_anything() {
    let event = ResetEvent { address: 0x5010, entry: [7; 16] };
    for written_registers in [false, true] {
        let mut world = World::new();
        world.slot.set_msix(true);
        world.settle();
        world.slot.link_down(Some(event), &world.client);
        world.find(SAME);
        assert!(world.client.memory.is_empty(), "the function is not ready");
        world.client.written_registers = written_registers;
        world.settle();
        let expected = if written_registers { vec![] } else { vec![(0x5010, vec![7; 16])] };
        assert_eq!(world.client.memory, expected);
        assert_eq!(world.client.signals.len(), usize::from(!written_registers));
    }
}

#[test]
fn a_port_enumerates_below_itself_and_an_own_driver_waits_for_its_function() {
    let bus = Bus::new();
    let port = enumerate::Port {
        port_type: 6,
        slot: None,
        link_up: true,
        secondary: 3,
        subordinate: 3,
        window: 0x8000..0x10_0000,
        children: Vec::new(),
    };
    let above = Node { bdf: Bdf::new(2, 0, 0), kind: Kind::Bridge(port), ..node() };
    let enumeration = enumerate::Settings { contents: true, ..enumerate::Settings::default() };
    let settings = Settings { enumeration, owner: 0 };
    let mut slot = OwnSlot::new(above, node(), bus.clone(), settings);
    let mut returns = |device: Option<(u64, u64)>| {
        slot.link_down();
        assert_eq!(slot.poll(Instant::ZERO), None);
        slot.link_up();
        loop {
            if let Some(ready) = slot.poll(Instant::ZERO) {
                return ready;
            }
            while let Some((id, request)) = bus.next_request() {
                let value = match (request, device) {
                    (Request::ConfigRead { offset, .. }, Some((serial, incarnation))) => {
                        // The capabilities of `node`: only MSI-X.
                        config(serial, incarnation)(offset).into()
                    }
                    (_, device) => device.map_or(u64::MAX, |_| 0),
                };
                bus.answer(id, value);
            }
        }
    };
    assert_eq!(returns(SAME), Ok(false));
    assert_eq!(returns(NEW), Ok(true));
    assert_eq!(returns(NEW), Ok(false));
    assert_eq!(returns(None), Err("no device found".to_owned()));
    assert!(returns(ANOTHER).is_err_and(|why| why.starts_with("serial number")));
}
