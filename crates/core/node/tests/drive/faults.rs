//! Faults of a drive: what the host sees of each.

use super::world::World;
use super::{io, state};
use crate::software::page;
use node::faults::Faults;
use wire::Duration;
use wire::nvme::opcode::nvm;
use wire::nvme::{Status, StatusCode};

fn world(faults: &[&str]) -> World {
    let faults: Faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    World::with_faults(&state(), faults)
}

/// Executes a read or a write of a block; the media answer at once. `None` without a completion.
fn run(world: &mut World, opcode: u8, block: u64) -> Option<Status> {
    world.submit(1, io(opcode, 1, block, 1));
    while !world.pending.is_empty() {
        world.serve(0, None);
    }
    world.reap(1).map(|done| done.status)
}

#[test]
fn an_error_reaches_the_host_and_not_the_media() {
    let mut world = world(&["error=media,lba=4+2", "error=no-space,lba=9+1,count=1"]);
    for (opcode, block, code) in [
        (nvm::READ, 3, StatusCode::SUCCESS),
        (nvm::READ, 4, StatusCode::UNRECOVERED_READ_ERROR),
        (nvm::WRITE, 5, StatusCode::WRITE_FAULT),
        (nvm::WRITE, 9, StatusCode::CAPACITY_EXCEEDED),
        (nvm::WRITE, 9, StatusCode::SUCCESS),
    ] {
        let status = run(&mut world, opcode, block).expect("it has ended");
        assert_eq!(status.code, code, "block {block}");
    }
    assert_eq!(world.begun(), ["error=media,lba=4+2", "error=no-space,lba=9+1,count=1"]);
    let written = world.media.values().next().expect("the contents");
    assert!(written[5 * 512..6 * 512].iter().all(|byte| *byte == 0), "the failed write");
}

#[test]
fn a_late_access_starts_later_and_others_pass_it() {
    let mut world = world(&["late=5ms,lba=4+1,count=1", "error=media,lba=4+1,count=1"]);
    let start = world.now();
    world.submit(1, io(nvm::READ, 1, 4, 1));
    assert!(world.pending.is_empty() && world.reap(1).is_none(), "the access is held");
    assert!(run(&mut world, nvm::READ, 0).expect("it passes").is_success());
    world.pass(Duration::from_ms(4));
    assert!(world.reap(1).is_none());
    world.pass(Duration::from_ms(5) - (world.now() - start));
    let status = world.reap(1).expect("it has ended").status;
    assert_eq!(status.code, StatusCode::UNRECOVERED_READ_ERROR, "late, and then failed");
    assert!(run(&mut world, nvm::READ, 4).expect("its count is used up").is_success());
}

#[test]
fn a_lost_completion_hides_later_ones_of_its_queue() {
    let mut world = world(&["lost-completion"]);
    assert_eq!(run(&mut world, nvm::READ, 0), None);
    assert_eq!(run(&mut world, nvm::READ, 1), None, "the host waits at the lost entry");
    assert_eq!(world.begun(), ["lost-completion"]);
    // Admin commands work, so the host can reset the controller.
    let command = wire::nvme::Command { opcode: 0x18, ..Default::default() };
    assert!(world.admin(command, Ok(())).status.is_success());
}

#[test]
fn the_root_complex_drops_poisoned_data_and_counts_it() {
    let mut world = world(&["poison"]);
    world.put(page(1), &[7; 512]);
    assert!(run(&mut world, nvm::READ, 0).expect("the entry is not poisoned").is_success());
    assert_eq!((world.load(page(1)), world.poisoned()), ([7; 512], 1), "not written");
    assert!(run(&mut world, nvm::READ, 0).expect("it has ended").is_success());
    assert_eq!((world.load(page(1)), world.poisoned()), ([0; 512], 1));
}
