//! The order of accesses, and a client that accepts none.

use super::*;
use crate::slot::client::MAX_DEFERRED;

fn write(world: &mut World, address: u64, length: usize) {
    let data = vec![3; length];
    world.slot.memory_write(Instant::ZERO, &mut world.client, address, &data);
}

#[test]
fn reads_overlap_other_accesses_and_config_write_runs_alone() {
    let mut world = World::new();
    world.slot.bar_read(Instant::ZERO, 1, 0, (0x100, 8));
    world.slot.bar_write(0, 0x1000, &[0; 4]);
    world.requests.clear();
    world.turn();
    let order = [
        Request::MemoryRead { address: 0x8100, size: 8 },
        Request::MemoryWrite { address: 0x9000, size: 4, value: 0 },
    ];
    assert_eq!(world.requests, order);
    assert!(world.slot.accepts());
    world.slot.config_write(2, 4, 2, 6);
    assert!(!world.slot.accepts(), "it runs alone");
    world.settle();
    assert!(world.slot.accepts());
    assert_eq!(world.replies, [(1, vec![0; 8]), (2, vec![])]);
    while world.slot.accepts() {
        world.slot.bar_write(0, 0x1000, &[0; 4]);
    }
    assert_eq!(world.bus.queued(), MAX_QUEUED, "the bus takes no more");
}

#[test]
fn accesses_that_a_full_client_defers_keep_their_order() {
    let mut world = World::new();
    world.client.full = true;
    write(&mut world, 0x1000, 4);
    assert_eq!(read(&mut world, 0x2000), ReadOutcome::Pending);
    world.slot.interrupt(&mut world.client, 1);
    let mut out = BytesMut::new();
    world.client.full = false;
    assert!(!world.slot.peek(&mut world.client, (0, 4), &mut out), "a write is before it");
    write(&mut world, 0x3000, 4);
    assert!(world.client.memory.is_empty() && world.client.signals.is_empty());
    world.turn();
    let places: Vec<u64> = world.client.memory.iter().map(|(address, _)| *address).collect();
    assert_eq!((places, &world.client.signals[..]), (vec![0x1000, 0x3000], &[1][..]));
    assert_eq!(world.host_data, [Some(Bytes::from_static(&[1; 4]))]);
    assert!(world.slot.peek(&mut world.client, (0, 4), &mut out));
}

#[test]
fn deferred_writes_stop_the_function_and_a_reset_drops_them() {
    let mut world = World::new();
    world.client.full = true;
    write(&mut world, 0x1000, MAX_DEFERRED - 1);
    assert!(world.slot.takes_writes());
    write(&mut world, 0x1000, 1);
    assert!(!world.slot.takes_writes());
    assert_eq!(read(&mut world, 0x2000), ReadOutcome::Pending);
    world.client.full = false;
    world.reset();
    assert!(world.slot.takes_writes() && world.client.memory.is_empty());
    assert_eq!(world.host_data, [None], "the function gets an answer");
}

#[test]
fn accesses_outside_the_clients_memory_are_counted() {
    let mut world = World::new();
    assert_eq!(read(&mut world, END), ReadOutcome::Done(None));
    write(&mut world, END, 4);
    assert_eq!(world.slot.faults, 2);
}
