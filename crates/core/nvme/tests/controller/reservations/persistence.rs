//! Reservations after a loss of power, and after the end of a drive's process.

use super::*;
use nvme::Subsystem;
use nvme::state::{HostId, MAX_REGISTRANTS, Registrant, Reservation, State};
use pcie::endpoint::Unsent;

/// CPTPL: registrations persist.
const PERSIST: u32 = 3 << 30;
/// CPTPL: registrations do not persist.
const FORGET: u32 = 2 << 30;

/// Both hosts are registered, and host 0 has a reservation.
fn reserved(flags: u32) -> Two {
    let mut two = registered();
    reserve(two.at(0), register(flags), [0, KEYS[0]]).expect_success();
    reserve(two.at(0), acquire(0, 3), [KEYS[0], 0]).expect_success();
    two
}

fn persistence(host: &mut Host) -> u32 {
    host.admin(Command { nsid: 1, ..get_feature(feature::RESERVATION_PERSISTENCE, 0) })
        .expect_success()
}

#[test]
fn only_persistent_reservations_outlive_power() {
    for (flags, expected) in [(PERSIST, (3, 2)), (FORGET, (0, 0)), (0, (0, 0))] {
        let mut two = reserved(flags);
        assert_eq!(status(two.at(1)).persists, flags == PERSIST);
        two.restart(Subsystem::open);
        identify_both(&mut two);
        assert_eq!(summary(two.at(1)), expected);
        assert_eq!(persistence(two.at(0)), u32::from(flags == PERSIST));
        let conflict = two.at(1).io(write(0, 1, DATA, 0)).status.code == CONFLICT;
        assert!(!conflict, "host 1 is a registrant, or there is no reservation");
        identify(two.at(1), b"host-222").expect_success();
        let conflict = two.at(1).io(write(0, 1, DATA, 0)).status.code == CONFLICT;
        assert_eq!(conflict, flags == PERSIST);
    }
}

#[test]
fn registrants_without_controller_are_reported_after_power_on() {
    let mut two = reserved(PERSIST);
    two.restart(Subsystem::open);
    identify(two.at(1), b"host-222").expect_success();
    let report = report(two.at(1), 72, false);
    assert_eq!(
        (report[5], &report[24..27], &report[48..51]),
        (2, &[255, 255, 1][..], &[255, 255, 0][..])
    );
}

#[test]
fn feature_changes_persistence_of_namespaces() {
    let mut two = registered();
    let set = |nsid, value| {
        let command = set_feature(feature::RESERVATION_PERSISTENCE, value);
        Command { nsid, ..command }
    };
    let host = two.at(0);
    host.admin(set(1, 2)).expect_failure(INVALID);
    host.admin(Command { cdw10: 0x83 | 1 << 31, ..set(1, 1) })
        .expect_failure(StatusCode::FEATURE_NOT_SAVEABLE);
    host.admin(Command { opcode: admin::GET_FEATURES, ..set(u32::MAX, 0) }).expect_failure(INVALID);
    host.admin(set(u32::MAX, 1)).expect_success();
    assert_eq!(persistence(two.at(1)), 1);
    let state = two.at(0).testbed.subsystem.state();
    let all: Vec<bool> = state.reservations.namespaces.values().map(|one| one.persists).collect();
    assert_eq!(all, [true, true], "both namespaces");
    assert_eq!(status(two.at(0)).generation, 2, "no change of registrations");
    two.restart(Subsystem::open);
    identify_both(&mut two);
    assert_eq!(summary(two.at(0)), (0, 2));
    two.at(0).admin(set(1, 0)).expect_success();
    two.restart(Subsystem::open);
    identify_both(&mut two);
    assert_eq!((summary(two.at(0)), persistence(two.at(0))), ((0, 0), 0));
}

#[test]
fn all_reservations_outlive_the_process() {
    for flags in [PERSIST, FORGET] {
        let mut two = reserved(flags);
        let before = status(two.at(0));
        two.restart(Subsystem::reopen);
        identify_both(&mut two);
        assert_eq!(status(two.at(0)), before);
        two.restart(Subsystem::open);
        identify_both(&mut two);
        assert_eq!(summary(two.at(0)).1, if flags == PERSIST { 2 } else { 0 });
    }
}

#[test]
fn number_of_registrants_is_limited() {
    let mut two = registered();
    let mut state = two.at(0).testbed.subsystem.state();
    let hosts = (1..MAX_REGISTRANTS as u128).map(|number| number.to_be_bytes());
    let registrants: Vec<Registrant> =
        hosts.map(|host| Registrant { host: HostId::new(&host).unwrap(), key: 1 }).collect();
    let full = Reservation { persists: true, registrants, ..Reservation::default() };
    state.reservations.namespaces = [(2, full)].into();
    two.at(0).testbed.store.records = state.encode();
    two.restart(Subsystem::open);
    let identifiers = [[0xff; 16], [0xfe; 16]];
    for (number, identifier) in identifiers.iter().enumerate() {
        identify(two.at(number), identifier).expect_success();
    }
    reserve(two.at(0), register(0), [0, 1]).expect_success();
    reserve(two.at(1), register(0), [0, 1]).expect_failure(StatusCode::OPERATION_DENIED);
    reserve(two.at(0), register(2), [1, 2]).expect_success();
    reserve(two.at(0), register(1), [2, 0]).expect_success();
    reserve(two.at(1), register(0), [0, 1]).expect_success();
}

#[test]
fn failed_store_changes_nothing() {
    let mut two = registered();
    let host = two.at(0);
    host.testbed.store.failure = Some(block::Error::NoSpace);
    let done = reserve(host, acquire(0, 1), [KEYS[0], 0]);
    assert_eq!(done.status.code, StatusCode::INTERNAL_ERROR);
    host.testbed.store.failure = None;
    assert_eq!(summary(two.at(0)), (0, 2));
    reserve(two.at(1), acquire(0, 2), [KEYS[1], 0]).expect_success();
}

#[test]
fn completion_waits_for_the_record() {
    let mut two = registered();
    let host = two.at(0);
    begin_reserve(host, acquire(0, 1), [KEYS[0], 0]);
    assert_eq!((host.reap(1).len(), host.testbed.store.commits.len()), (0, 1));
    let keys: Vec<&str> =
        host.testbed.store.commits[0].changes.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["reservations"]);
    // A reset drops the command, not the change, which later commands may depend on.
    host.configure(entry_sizes());
    host.testbed.settle();
    assert_eq!(summary(two.at(1)), (1, 2));
}

/// A process that is killed after the store of a registration goes on with its saved state, in
/// which the command is under way.
#[test]
fn stored_registration_is_not_repeated() {
    let config = config();
    let mut host = Host::over(Testbed::with_records(&config));
    host.testbed.subsystem.keep();
    host.testbed.enumerate(true);
    host.start();
    identify(&mut host, &HOSTS[0]).expect_success();
    begin_reserve(&mut host, register(0), [0, KEYS[0]]);
    assert!(host.testbed.store.commits.is_empty() && host.testbed.subsystem.waits_for_save(1));
    let saved = host.testbed.subsystem.save(1, &Unsent::default());
    host.testbed.take_tlps(pcie::Ready::ALL);
    assert!(host.testbed.serve_store());
    let state = State::decode(&host.testbed.store.records).unwrap();
    assert_eq!(state.done.commands.len(), 1);
    let now = host.testbed.now;
    let records = &host.testbed.store.records;
    let mut again = Subsystem::reopen(now, config.settings.clone(), records).unwrap();
    again.keep();
    again.restore(now, 1, &saved).unwrap();
    host.testbed.subsystem = again;
    host.testbed.settle();
    let done = host.reap(1);
    assert_eq!(done.len(), 1);
    done[0].expect_success();
    // The Host Identifier is part of the saved state.
    let status = status(&mut host);
    assert_eq!((status.generation, status.controllers), (1, 1), "one registration, once");
}

/// The two commands have the same number, each in its controller. Only the first one is stored.
#[test]
fn stored_registration_of_another_controller_is_not_mistaken() {
    let mut two = Two::kept();
    identify_both(&mut two);
    for (number, key) in KEYS.into_iter().enumerate() {
        begin_reserve(two.at(number), register(0), [0, key]);
    }
    let states = [two.save(0), two.save(1)];
    let testbed = &mut two.at(0).testbed;
    testbed.take_tlps(pcie::Ready::ALL);
    assert!(testbed.serve_store());
    two.kill(&[(0, &states[0]), (1, &states[1])]);
    for number in 0..2 {
        let testbed = &mut two.at(number).testbed;
        testbed.settle();
        assert_eq!([1, 2].map(|id| testbed.subsystem.waits_for_save(id)), [false, number == 1]);
        two.save(number);
        two.at(number).testbed.settle();
        let done = two.at(number).reap(1);
        assert_eq!(done.len(), 1, "host {number}");
        done[0].expect_success();
    }
    let status = status(two.at(0));
    assert_eq!((status.generation, status.controllers), (2, 2));
}
