//! Preempt, and preempt and abort.

use super::*;

const ABORTED: StatusCode = StatusCode::ABORTED_PREEMPTED;

#[test]
fn preempt_takes_the_reservation_of_the_holder() {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 1), [KEYS[0], 0]).expect_success();
    reserve(two.at(1), acquire(1, 2), [KEYS[1], 0]).expect_failure(INVALID);
    reserve(two.at(1), acquire(1, 2), [KEYS[0], KEYS[0]]).expect_conflict();
    // A key without registrants preempts nobody.
    reserve(two.at(1), acquire(1, 2), [KEYS[1], 9]).expect_success();
    assert_eq!(summary(two.at(1)), (1, 2));
    reserve(two.at(1), acquire(1, 2), [KEYS[1], KEYS[0]]).expect_success();
    assert_eq!(summary(two.at(1)), (2, 1));
    assert_eq!(status(two.at(1)).generation, 4);
    two.at(0).io(read(0, 1, DATA, 0)).expect_conflict();
    two.at(1).io(write(0, 1, DATA, 0)).expect_success();
}

#[test]
fn preempt_removes_registrants_by_key() {
    // The reservation of a third host stays; a host may preempt its own registration.
    let mut two = registered();
    reserve(two.at(0), acquire(0, 4), [KEYS[0], 0]).expect_success();
    reserve(two.at(0), acquire(1, 1), [KEYS[0], KEYS[1]]).expect_success();
    assert_eq!(summary(two.at(0)), (4, 1));
    reserve(two.at(1), register(0), [0, KEYS[1]]).expect_success();
    reserve(two.at(1), acquire(1, 1), [KEYS[1], KEYS[1]]).expect_success();
    assert_eq!(summary(two.at(0)), (4, 1));
    // All registrants hold the reservation: a key without registrants is a conflict.
    let mut two = registered();
    reserve(two.at(0), acquire(0, 5), [KEYS[0], 0]).expect_success();
    reserve(two.at(1), acquire(1, 2), [KEYS[1], 9]).expect_conflict();
    reserve(two.at(1), acquire(1, 2), [KEYS[1], KEYS[0]]).expect_success();
    assert_eq!(summary(two.at(1)), (5, 1), "key other than 0: the reservation stays");
    reserve(two.at(0), register(0), [0, KEYS[0]]).expect_success();
    reserve(two.at(1), acquire(1, 2), [KEYS[1], 0]).expect_success();
    assert_eq!(summary(two.at(1)), (2, 1), "key 0: all others are removed");
    // Without a reservation, preempt only removes registrations.
    let mut two = registered();
    reserve(two.at(1), acquire(1, 2), [KEYS[1], KEYS[0]]).expect_success();
    assert_eq!(summary(two.at(1)), (0, 1));
}

/// Host 0 has a write under way on the media, and a read whose data wait for the host. Host 1
/// preempts host 0.
fn preempting(action: u32) -> Two {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 3), [KEYS[0], 0]).expect_success();
    let host = two.at(0);
    host.testbed.media.log.clear();
    host.put(1, write(0, 1, DATA, 0));
    host.put(1, Command { nsid: 2, ..read(0, 1, DATA, 0) });
    begin(host);
    assert_eq!(host.testbed.blocks.len(), 2);
    let host = two.at(1);
    begin_reserve(host, acquire(action, 3), [KEYS[1], KEYS[0]]);
    assert!(host.testbed.serve_store());
    host.testbed.take_tlps(pcie::Ready::ALL);
    two
}

#[test]
fn preempt_leaves_commands_under_way() {
    let mut two = preempting(1);
    assert!(two.at(1).reap(1)[0].status.is_success());
    two.at(0).testbed.settle();
    assert!(two.at(0).reap(1).iter().all(|done| done.status.is_success()));
    two.at(0).io(write(0, 1, DATA, 0)).expect_conflict();
}

#[test]
fn preempt_and_abort_ends_commands_of_the_preempted_host_first() {
    let mut two = preempting(2);
    assert_eq!(two.at(1).reap(1), [], "the write is still under way");
    two.at(0).testbed.settle();
    let mut done = two.at(0).reap(1);
    done.sort_by_key(|one| one.cid);
    let codes: Vec<StatusCode> = done.iter().map(|one| one.status.code).collect();
    assert_eq!(codes, [ABORTED, StatusCode::SUCCESS], "namespace 2 is not affected");
    two.at(1).testbed.settle();
    assert!(two.at(1).reap(1)[0].status.is_success());
    assert_eq!(summary(two.at(1)), (3, 1));
    two.at(1).testbed.subsystem.check_invariants();
}

#[test]
fn reset_of_the_preempted_controller_ends_its_commands() {
    let mut two = preempting(2);
    two.at(0).configure(entry_sizes());
    two.at(1).testbed.settle();
    assert!(two.at(1).reap(1)[0].status.is_success());
}

#[test]
fn simultaneous_preemptions_take_effect_in_order() {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 1), [KEYS[0], 0]).expect_success();
    for number in [1, 0] {
        begin_reserve(two.at(number), acquire(2, 1), [KEYS[number], KEYS[1 - number]]);
    }
    // The command of host 0 waits for the store of the other command, which aborts it.
    for number in [0, 1] {
        two.at(number).testbed.settle();
    }
    assert_eq!(two.at(0).reap(1)[0].status.code, ABORTED);
    assert!(two.at(1).reap(1)[0].status.is_success());
    assert_eq!(summary(two.at(1)), (1, 1));
}

#[test]
fn waiting_commands_see_the_effects_of_earlier_ones() {
    let mut two = two();
    let host = two.at(0);
    host.testbed.put(RESERVATION, &ReservationKeys { current: 0, other: 0 }.encode());
    let commands = [register(0), acquire(0, 1), register(1), acquire(0, 1)];
    for command in commands {
        host.put(1, Command { prp1: RESERVATION, ..command });
    }
    host.carry_out(1);
    let done = host.reap(1);
    let codes: Vec<StatusCode> = done.iter().map(|one| one.status.code).collect();
    let success = StatusCode::SUCCESS;
    assert_eq!(codes, [success, success, success, CONFLICT]);
    assert_eq!(status(host).generation, 2);
}

#[test]
fn reset_does_not_drop_a_change_that_others_wait_for() {
    let mut two = registered();
    // The record of uncorrectable blocks is being stored.
    two.at(0).put(1, Command { opcode: nvm::WRITE_UNCORRECTABLE, ..read(0, 1, 0, 0) });
    begin(two.at(0));
    begin_reserve(two.at(1), acquire(0, 1), [KEYS[1], 0]);
    begin_reserve(two.at(0), acquire(0, 1), [KEYS[0], 0]);
    assert_eq!(two.at(0).testbed.store.commits.len(), 1);
    two.at(1).configure(entry_sizes());
    two.at(0).testbed.settle();
    let done = two.at(0).reap(1);
    assert!(done[0].status.is_success());
    done[1].expect_conflict();
}
