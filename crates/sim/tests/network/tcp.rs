//! TCP over interface, cable and bridge.

use bytes::Bytes;
use sim::ethernet::{Random, Rate, bridge, port};
use wire::Instant;

use crate::world::{Plan, World};

fn data(length: usize) -> Bytes {
    let mut random = Random::new(length as u64);
    (0..length).map(|_| random.bits() as u8).collect()
}

/// Runs a transfer and checks that what arrived is what was sent.
fn transfer(plan: &Plan, length: usize, limit_ms: u64) -> World {
    let mut world = World::new(plan, data(length));
    world.run(Instant::from_ns(limit_ms * 1_000_000));
    assert_eq!(world.log.received.len(), length, "not everything arrived: {:?}", world.now);
    assert!(world.log.received == world.to_send, "other bytes arrived");
    assert_eq!(world.log.connected, 2);
    world
}

#[test]
fn throughput_is_near_the_limit_and_never_above() {
    for (rate, megabytes) in [(Rate::G1, 2), (Rate::G10, 8), (Rate::G100, 16)] {
        for plan in [Plan::new(rate), Plan::bridged(rate, bridge::Mode::StoreAndForward)] {
            let length = megabytes << 20;
            let world = transfer(&plan, length, 1_000);
            let ps = world.log.last.as_ps();
            let reached = (length as u128 * 1_000_000_000_000 / u128::from(ps)) as u64;
            let limit = port::goodput(rate, 1500, 1460);
            assert!(reached <= limit, "{rate}: {reached} above {limit}");
            assert!(reached * 10 >= limit * 9, "{rate}: {reached} of {limit}");
            assert_eq!(world.hosts[0].counters().retransmitted, 0);
        }
    }
}
