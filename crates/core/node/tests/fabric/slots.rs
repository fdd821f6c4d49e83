//! A host never reads other data than it wrote: random operations on slots, their clients, links
//! and drives, as in the fuzz target `slot`.

use crate::fabric::world::Plan;
use crate::fabric::world::slot_operations::{Reached, run_operations};
use node::link_state::RETRY_PAUSE;
use node::slot::Condition;
use stats::random::Random;
use wire::Duration;

#[test]
fn a_client_never_reads_other_data_than_it_wrote() {
    let mut all = Reached::default();
    for seed in 0..200 {
        let reached = run_operations(&Random::new(seed).bytes(600));
        all.known += reached.known;
        all.failed += reached.failed;
        all.kept += reached.kept;
        all.renewed += reached.renewed;
    }
    // The operations must reach all of these.
    let Reached { known, failed, kept, renewed } = all;
    assert!(known > 500 && failed > 500 && kept > 100 && renewed > 50, "{all:?}");
}

/// Each request of the slot's software starts when the previous one is answered, not at the next
/// timer.
#[test]
fn a_function_is_attached_within_1_ms_after_its_link_came_up() {
    let mut fabric = Plan::default().with_devices(1);
    let port = fabric.enumerate().root.children()[0].children()[0].clone();
    let node = port.children()[0].clone();
    let seat = fabric.seat(0, (port, node), 0);
    fabric.breaks(0);
    fabric.settle();
    assert_eq!(fabric.seats[seat].slot.condition(), Condition::LinkDown);
    fabric.pass(RETRY_PAUSE + Duration::from_ms(1));
    assert_eq!(fabric.seats[seat].slot.condition(), Condition::Attached);
}
