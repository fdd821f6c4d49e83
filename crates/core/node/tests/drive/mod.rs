//! A drive whose namespaces are created and deleted while requests are outstanding.

mod faults;
mod model;
mod world;

use crate::software::page;
use node::drive::ContentsId;
use nvme::block::Error;
use nvme::state::State;
use nvme::{Config, NamespaceConfig};
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{Command, Completion, IdentifyNamespace, StatusCode, controller_list};
use world::World;

/// The address of the data of admin commands.
const ADMIN: u64 = 0;

/// A drive of 64 KiB for 3 namespaces, with namespace 1 of 16 KiB.
fn state() -> State {
    let mut state = Config::new("DRIVE", vec![NamespaceConfig::new(32)]).state();
    (state.drive.capacity, state.drive.max_namespaces) = (64 << 10, 3);
    state
}

/// Creates a namespace of `bytes` bytes in blocks of 512 bytes, or of 4096.
fn create(world: &mut World, bytes: u64, large: bool, stored: Result<(), Error>) -> Completion {
    let blocks = bytes >> if large { 12 } else { 9 };
    let formatted = large.into();
    let new = IdentifyNamespace { size: blocks, capacity: blocks, formatted, ..Default::default() };
    world.put(page(ADMIN), &new.encode_with(&[]));
    let opcode = admin::NAMESPACE_MANAGEMENT;
    world.admin(Command { opcode, prp1: page(ADMIN), ..Command::default() }, stored)
}

fn attach(world: &mut World, nsid: u32) {
    world.put(page(ADMIN), &controller_list([1]));
    let opcode = admin::NAMESPACE_ATTACHMENT;
    let command = Command { opcode, nsid, prp1: page(ADMIN), ..Command::default() };
    assert!(world.admin(command, Ok(())).status.is_success());
}

fn delete(world: &mut World, nsid: u32, stored: Result<(), Error>) -> Completion {
    let opcode = admin::NAMESPACE_MANAGEMENT;
    world.admin(Command { opcode, nsid, cdw10: 1, ..Command::default() }, stored)
}

/// Reads or writes a block, with its data at page `at`.
fn io(opcode: u8, nsid: u32, slba: u64, at: u64) -> Command {
    Command { opcode, nsid, prp1: page(at), cdw10: slba as u32, ..Command::default() }
}

fn contents(world: &World, nsid: u32) -> Option<ContentsId> {
    world.drive().contents().find(|(id, _)| *id == nsid).map(|(_, contents)| contents)
}

#[test]
fn requests_under_way_stay_with_the_contents_of_a_deleted_namespace() {
    let mut world = World::new(&state());
    world.put(page(1), &[7; 512]);
    for _ in 0..2 {
        world.submit(1, io(nvm::WRITE, 1, 0, 1));
    }
    let old = contents(&world, 1).unwrap();
    assert!(delete(&mut world, 1, Ok(())).status.is_success());
    assert_eq!(create(&mut world, 16 << 10, false, Ok(())).result, 1, "the NSID is used again");
    attach(&mut world, 1);
    let new = contents(&world, 1).unwrap();
    assert!(new != old && new.nsid() == 1);
    assert_eq!((world.pending.len(), world.closed), (2, 0));
    // The previous contents have become read-only, the new ones have not.
    world.serve(0, Some(Error::ReadOnly));
    assert_eq!(world.closed, 0, "another request is under way");
    world.serve(0, None);
    assert_eq!((world.closed, world.media.len()), (1, 1));
    for _ in 0..2 {
        assert!(!world.reap(1).expect("it has ended").status.is_success());
    }
    assert!(world.media[&new].iter().all(|byte| *byte == 0), "nothing was written to it");
    world.submit(1, io(nvm::WRITE, 1, 1, 1));
    world.serve(0, None);
    assert!(world.reap(1).unwrap().status.is_success());
    assert_eq!(world.media[&new][512..1024], [7; 512]);
}

#[test]
fn media_that_became_read_only_make_their_namespace_so() {
    let mut world = World::new(&state());
    world.submit(1, io(nvm::WRITE, 1, 0, 1));
    world.serve(0, Some(Error::ReadOnly));
    world.reap(1).unwrap();
    world.submit(1, io(nvm::WRITE, 1, 0, 1));
    assert!(world.pending.is_empty(), "the media are not asked again");
    assert_eq!(world.reap(1).unwrap().status.code, StatusCode::WRITE_TO_READ_ONLY_RANGE);
}
