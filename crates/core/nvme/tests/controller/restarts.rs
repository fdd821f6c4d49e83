//! A drive with two controllers whose process is killed, and the next process.

use super::controllers::Two;
use super::*;
use wire::Instant;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{ErrorLogEntry, log_page};

const WRITTEN: u64 = DATA + 0x10_0000;
/// Address of metadata, which are zeroes.
const METADATA: u64 = DATA + 0x18_0000;

/// The statuses of all completions of queue 1, after the drive has done everything that needs no
/// save.
fn statuses(host: &mut Host) -> Vec<StatusCode> {
    host.testbed.settle();
    host.testbed.subsystem.check_invariants();
    host.reap(1).iter().map(|done| done.status.code).collect()
}

/// Compare and Write of block 5, which has this byte before.
fn compare_and_write(host: &mut Host, before: u8, after: u8) {
    host.testbed.put(DATA, &[before; 512]);
    host.testbed.put(WRITTEN, &[after; 512]);
    let mptr = METADATA;
    host.put(1, Command { opcode: nvm::COMPARE, fuse: 1, mptr, ..read(5, 1, DATA, 0) });
    host.put(1, Command { fuse: 2, mptr, ..write(5, 1, WRITTEN, 0) });
}

#[test]
fn commands_of_both_controllers_go_on_after_a_kill() {
    for order in [[0, 1], [1, 0]] {
        let mut two = Two::kept();
        two.at(0).testbed.media.namespaces.get_mut(&1).unwrap().fill(7);
        two.at(0).testbed.put(DATA, &[9; 512]);
        for (number, command) in [write(0, 1, DATA, 0), read(8, 1, DATA, 0)].iter().enumerate() {
            two.at(number).put(1, *command);
            two.at(number).fetch(1, false);
        }
        let states = [two.save(0), two.save(1)];
        assert!(two.at(0).testbed.subsystem.restore(Instant::ZERO, 2, &states[0]).is_err());
        two.kill(&order.map(|number| (number, &states[number])));
        for number in 0..2 {
            assert_eq!(statuses(two.at(number)), [StatusCode::SUCCESS], "host {number}");
        }
        assert_eq!(two.at(1).testbed.load(DATA, 512).unwrap(), [7; 512]);
        assert_eq!(two.at(0).testbed.media.namespaces[&1][..512], [9; 512]);
        // Both go on with new commands, each with its own state.
        two.at(0).io(read(8192, 1, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
        two.at(1).io(read(0, 1, DATA, 0)).expect_success();
        let logs = [0, 1].map(|number| two.at(number).log::<128>(log_page::ERROR));
        let count = |log: &[u8; 128]| ErrorLogEntry::decode(log.first_chunk().unwrap()).count;
        assert_eq!(logs.each_ref().map(count), [1, 0]);
    }
}

/// The bytes of version 1 of the file `session` ended before CNTLID, access and changes.
#[test]
fn states_of_the_version_before_are_read() {
    let mut two = Two::kept();
    two.at(0).testbed.put(DATA, &[9; 512]);
    two.at(0).put(1, write(0, 1, DATA, 0));
    two.at(0).fetch(1, false);
    let state = two.save(0);
    let (before, added) = (state.slice(..state.len() - 3), &state[state.len() - 3..]);
    assert_eq!(added, [1, 0, 0]);
    two.kill(&[(0, &before)]);
    assert_eq!(statuses(two.at(0)), [StatusCode::SUCCESS]);
    assert_eq!(two.at(0).testbed.media.namespaces[&1][..512], [9; 512]);
}

/// A controller with no work, or without a saved state, does not disturb the other one.
#[test]
fn commands_of_the_second_controller_go_on_alone() {
    for idle_is_saved in [true, false] {
        let mut two = Two::kept();
        compare_and_write(two.at(1), 0, 1);
        two.at(1).carry_out(1);
        let subsystem = &two.at(0).testbed.subsystem;
        assert_eq!([1, 2].map(|id| subsystem.waits_for_save(id)), [false, true]);
        let idle = two.save(0);
        assert!(two.at(0).testbed.subsystem.waits_for_save(2), "another state was saved");
        two.at(0).testbed.settle();
        assert_eq!(two.at(0).testbed.media.namespaces[&1][5 * 512], 0);
        let state = two.save(1);
        assert!(!two.at(0).testbed.subsystem.waits_for_save(2));
        let saved = [(1, &state), (0, &idle)];
        two.kill(&saved[..if idle_is_saved { 2 } else { 1 }]);
        assert_eq!(statuses(two.at(1)), [StatusCode::SUCCESS; 2]);
        assert_eq!(two.at(0).testbed.media.namespaces[&1][5 * 512], 1);
        let host = two.at(0);
        if !idle_is_saved {
            host.testbed.enumerate(true);
            assert!(!host.status().ready);
            host.start();
        }
        host.io(read(0, 1, DATA, 0)).expect_success();
    }
}

/// The write of the second controller comes before commands of the first one, because its comparison
/// was successful before the kill.
#[test]
fn restored_write_of_a_fused_pair_holds_its_blocks() {
    const SUCCESS: StatusCode = StatusCode::SUCCESS;
    for (metadata, kills) in [(false, 1), (false, 2), (true, 1)] {
        let mut two = Two::kept();
        if metadata {
            let format = Command { opcode: admin::FORMAT, nsid: 1, cdw10: 2, ..Command::default() };
            two.at(0).admin(format).expect_success();
        }
        compare_and_write(two.at(1), 0, 2);
        match metadata {
            false => compare_and_write(two.at(0), 0, 1),
            true => drop(two.at(0).put(1, Command { mptr: METADATA, ..write(5, 1, WRITTEN, 0) })),
        }
        for number in [1, 0] {
            two.at(number).carry_out(1);
        }
        for _ in 0..kills {
            let states = [two.save(0), two.save(1)];
            two.kill(&[(0, &states[0]), (1, &states[1])]);
        }
        two.at(0).testbed.settle();
        assert_eq!(statuses(two.at(1)), [SUCCESS; 2], "metadata: {metadata}, kills: {kills}");
        two.save(0);
        let (expected, block) = match metadata {
            false => (vec![StatusCode::COMPARE_FAILURE, StatusCode::ABORTED_FAILED_FUSED], 2),
            true => (vec![SUCCESS], 0),
        };
        assert_eq!(statuses(two.at(0)), expected, "metadata: {metadata}, kills: {kills}");
        assert_eq!(two.at(0).testbed.media.namespaces[&1][5 * 512], block);
    }
}

#[test]
fn persistent_events_keep_the_time_that_a_host_has_set() {
    let mut two = Two::kept();
    let host = two.at(0);
    host.testbed.put(DATA, &1_700_000_000_000u64.to_le_bytes());
    host.admin(Command { prp1: DATA, ..set_feature(feature::TIMESTAMP, 0) }).expect_success();
    let states = [two.save(0), two.save(1)];
    two.kill(&[(0, &states[0]), (1, &states[1])]);
    let host = two.at(1);
    host.configure(entry_sizes());
    host.testbed.settle();
    let events = host.testbed.subsystem.state().events;
    assert_eq!(events.0.back().unwrap().timestamp & ((1 << 48) - 1), 1_700_000_000_000);
}

/// The other controller has a command under way for another namespace, which began later.
#[test]
fn restored_format_does_not_fail_because_of_other_controllers() {
    let mut two = Two::kept();
    let host = two.at(0);
    host.put(0, Command { opcode: admin::FORMAT, nsid: 2, ..Command::default() });
    host.fetch(0, false);
    two.at(1).put(1, read(0, 1, DATA, 0));
    two.at(1).fetch(1, false);
    let states = [two.save(0), two.save(1)];
    two.kill(&[(1, &states[1]), (0, &states[0])]);
    assert_eq!(statuses(two.at(1)), [StatusCode::SUCCESS]);
    two.at(0).testbed.settle();
    assert!(two.at(0).reap(0)[0].status.is_success());
    assert_eq!(two.at(0).namespace_data(2).size, 2048);
}
