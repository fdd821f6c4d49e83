//! Push against a random driver and an independent controller: the function always reads the bytes
//! in host memory, whatever was pushed.

mod clients;
mod driver;
mod ending;
mod hostile;
mod initiator;
mod store;
mod tunnel;
mod world;

use driver::Driver;
use ending::Ending;
use node::push::Mode;
use pcie::PushRoom;
use pcie::root::ROOT_PORT;
use proptest::prelude::*;
use stats::random::Random;
use testkit::controller::{DRIVE, Manners};
use wire::tlp::Packet;
use world::World;

fn manners(random: &mut Random) -> Manners {
    let mut pick = |all: &[u64]| all[random.below(all.len() as u64) as usize];
    Manners {
        batch: pick(&[1, 2, 8]) as u16,
        speculates: pick(&[0, 1, 1]) == 1,
        chunk: pick(&[64, 200, 512, 4096]) as usize,
        fails: pick(&[0, 10, 50]),
        lags: pick(&[0, 0, 1]) == 1,
        pieces: pick(&[0, 0, 0, 1]) == 1,
        dstrd: pick(&[0, 2]) as u8,
        shift: pick(&[9, 12]) as u8,
    }
}

/// A reset of one of four kinds; the driver starts again.
fn reset(world: &mut World, driver: &mut Driver, random: &mut Random) {
    match random.below(5) {
        // Controller reset.
        0 => world.write(0x14, 4, 0),
        // Shutdown, then controller reset.
        1 => {
            world.write(0x14, 4, 4 << 20 | 6 << 16 | 1 << 14 | 1);
            world.write(0x14, 4, 0);
        }
        // Function level reset.
        2 => {
            world.config(DRIVE, 0x48, 1 << 15);
            world.settle();
            world.place();
        }
        // Hot reset.
        3 => {
            world.config(ROOT_PORT, 0x3e, 1 << 6);
            world.config(ROOT_PORT, 0x3e, 0);
            world.enumerate();
        }
        // The function, or the root port, loses bus mastering while the function continues to read.
        _ => {
            let target = if random.below(2) == 0 { DRIVE } else { ROOT_PORT };
            world.config(target, 0x04, 2);
            world.settle_down();
            (world.refused, world.link().controller.nasty) = (true, true);
            for _ in 0..60 {
                world.link().controller.act(random);
                world.far_side();
                world.deliver_up();
                world.deliver_down();
            }
            world.link().controller.nasty = false;
            world.config(target, 0x04, 6);
            world.write(0x14, 4, 0);
        }
    }
    world.settle();
    driver.restart(world, random);
}

/// Runs a random world. Returns the failure, if any.
fn run(seed: u64, without: Option<Ending>) -> Option<String> {
    run_in(seed, without, None).fault
}

/// As `run`, in a fixed mode, with access to the final world.
fn run_in(seed: u64, without: Option<Ending>, fixed: Option<Mode>) -> World {
    let mut random = Random::new(seed);
    let mut manners = manners(&mut random);
    if without == Some(Ending::Doorbell) {
        // The SQ head pointer invalidates the slots before any doorbell does, and only a fetch of
        // more entries than were pushed leaves them in the store.
        (manners.lags, manners.speculates) = (true, true);
    }
    let mode = if random.below(4) == 0 { Mode::Entries } else { Mode::All };
    let mode = fixed.unwrap_or(mode);
    let bound = [1 << 12, 1 << 14, 1 << 18][random.below(3) as usize];
    let mut world = World::new(manners, mode, bound, without);
    let mut driver = Driver::new(manners.lags);
    world.enumerate();
    driver.start(&mut world, &mut random);
    for _ in 0..1500 {
        match random.below(400) {
            0..=29 => {
                let count = 1 + random.below(4);
                driver.submit(&mut world, &mut random, count);
            }
            30..=37 => {
                let payload = [128, 512, 4096][random.below(3) as usize];
                let headers = [0, 4, 40, 1000][random.below(4) as usize];
                let (data, capacity) = (headers * 60, 256 << 10);
                world.link().room = PushRoom { payload, headers, data, capacity };
            }
            38 => driver.abort(&mut world, &mut random),
            39 => driver.delete(&mut world, &mut random),
            40 => reset(&mut world, &mut driver, &mut random),
            41..=43 => driver.remap(&mut world, &mut random),
            44 if random.below(3) == 0 => driver.doorbell_buffers(&mut world, &mut random),
            _ => driver.progress(&mut world, &mut random),
        }
        if world.fault.is_some() {
            break;
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    #[test]
    fn pushed_bytes_are_never_stale(seed in any::<u64>()) {
        prop_assert_eq!(run(seed, None), None);
    }
}

#[test]
fn push_answers_reads_and_off_sends_no_message() {
    let messages = |world: &mut World| {
        let sent = &world.link().sent;
        sent.iter().filter(|tlp| matches!(tlp.packet, Packet::Message(_))).count()
    };
    let (mut hits, mut pushed) = (0, 0);
    for seed in 0..10 {
        let (mut all, mut off) = (run_in(seed, None, None), run_in(seed, None, Some(Mode::Off)));
        assert_eq!((&all.fault, &off.fault), (&None, &None));
        hits += all.link().store.counters().hits;
        pushed += messages(&mut all);
        assert_eq!(messages(&mut off), 0);
    }
    assert!(hits > 200 && pushed > 200, "{hits} hits of {pushed} messages");
}

/// The most random worlds needed to show that a cause of invalidation is necessary.
const WORLDS: u64 = 200;

#[test]
fn leaving_out_any_invalidation_makes_data_stale() {
    for ending in Ending::ALL {
        let found = (0..WORLDS).find(|seed| run(*seed, Some(ending)).is_some());
        assert!(found.is_some(), "without {ending:?} nothing is stale in {WORLDS} worlds");
    }
}
