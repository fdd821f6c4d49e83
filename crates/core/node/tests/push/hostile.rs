//! Host software and drives that violate every rule: the follower may push useless bytes, but must
//! not fail.

use super::driver::Driver;
use super::world::{RAM, RAM_BYTES, World};
use node::push::Mode;
use pcie::PushRoom;
use pcie::software::Request;
use proptest::prelude::*;
use stats::random::Random;
use testkit::controller::{DRIVE, Manners};
use wire::tlp::Tlp;

/// A register; in most cases one with an effect.
fn register(random: &mut Random) -> u64 {
    let known = [0, 0x14, 0x14, 0x20, 0x24, 0x28, 0x30];
    match random.below(20) {
        0..=3 => known[random.below(known.len() as u64) as usize],
        4 => random.below(0x4000 / 8) * 8,
        _ => 0x1000 + random.below(6) * 4,
    }
}

/// An address of host memory; sometimes one at the end of all addresses.
fn address(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => !0xfff,
        _ => RAM + random.below((RAM_BYTES / 4096) as u64) * 4096,
    }
}

/// An entry that looks like a command.
fn entry(random: &mut Random) -> Vec<u8> {
    let mut entry = random.bytes(64);
    entry[0] = [0, 1, 2, 4, 5, 6, 8, 9, 0x0d, 0x19, 0x7c, 0x80][random.below(12) as usize];
    entry[1] = [0, 0, 1 << 6, 2 << 6, 3 << 6][random.below(5) as usize];
    entry[4..8].copy_from_slice(&[1, 0, 0, 0]);
    for at in [24, 32] {
        let pointer = address(random) + random.below(2) * random.below(4096);
        entry[at..at + 8].copy_from_slice(&pointer.to_le_bytes());
    }
    if random.below(2) == 0 {
        // Small identifiers, lengths and flags.
        let small = random.below(256) as u32;
        for at in [40, 44, 48] {
            entry[at..at + 4].copy_from_slice(&(small << 16 | 1).to_le_bytes());
        }
    }
    entry
}

fn step(world: &mut World, random: &mut Random) {
    match random.below(10) {
        0..=3 => {
            let (offset, size) = (register(random), [4, 8][random.below(2) as usize]);
            let value = match (random.below(40), offset) {
                (0, _) => random.bits(),
                (1, _) | (_, 0x28 | 0x30) => address(random),
                (_, 0x24) => 7 << 16 | 7,
                // CC: enabled, with the usual entry sizes, or not.
                (_, 0x14) => (4 << 20 | 6 << 16) + random.below(2),
                _ => random.below(8),
            };
            let size = if offset % 8 == 0 { size } else { 4 };
            world.write(offset, size, value);
        }
        4..=6 => {
            let at = RAM + random.below((RAM_BYTES / 64) as u64) * 64;
            let bytes = entry(random);
            world.memory.put(at, &bytes);
        }
        7 | 8 => {
            // From the drive: often into the admin completion queue.
            let queue = if random.below(2) == 0 { RAM + 4096 } else { RAM };
            let length = [4, 16, 16, 16, 16, 16, 16, 32][random.below(8) as usize];
            let mut data = random.bytes(length);
            if length == 16 && random.below(2) == 0 {
                // Success of a command of queue 0.
                data[8..].copy_from_slice(&[random.below(10) as u8, 0, 0, 0, 1, 0, 1, 0]);
            }
            let at = queue + random.below(250) * 16;
            world.link().up.push_back(Tlp::write_bytes(DRIVE, at, &data.into()).unwrap());
            world.deliver_up();
        }
        _ => {
            let offset = random.below(64) as u16 * 4;
            let value = random.bits() as u32;
            let request = Request::ConfigWrite { target: DRIVE, offset, size: 4, value };
            let bar = offset == 0x10 || offset == 0x14;
            if offset != 4 && (!bar || random.below(8) == 0) && world.host.accepts(&request) {
                world.request(request);
            }
            world.host.remapped(address(random)..u64::MAX);
            let headers = random.below(20) as u32;
            let (payload, data, capacity) = (128, headers * 9, 1 << random.below(20));
            world.link().room = PushRoom { payload, headers, data, capacity };
        }
    }
}

/// A world after many steps.
fn run(seed: u64) -> World {
    let mut random = Random::new(seed);
    let mut world = World::new(Manners::default(), Mode::All, 1 << 16, None);
    world.enumerate();
    Driver::new(false).start(&mut world, &mut random);
    world.settle();
    for _ in 0..300 {
        step(&mut world, &mut random);
        // Bytes from the host are dropped; the link checks that messages are valid and fit.
        world.link().down.clear();
    }
    world
}

proptest! {
    #[test]
    fn hostile_software_with_push_keeps_all_invariants(seed in any::<u64>()) {
        prop_assert!(run(seed).link().sent.len() > 50);
    }
}

#[test]
fn random_traffic_causes_many_pushes() {
    let counters = (0..20).map(|seed| run(seed).host.push_counters());
    let (messages, bytes) =
        counters.fold((0, 0), |all, one| (all.0 + one.messages, all.1 + one.bytes));
    assert!(messages > 300 && bytes > 20_000, "{messages} messages, {bytes} bytes");
}
