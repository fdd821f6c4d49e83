//! Reservations: two controllers with two hosts.

mod conflicts;
mod hosts;
mod model;
mod notifications;
mod persistence;
mod preemption;

use super::controllers::Two;
use super::*;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{ReservationKeys, ReservationStatus, ReservationType};

/// The Host Identifiers of the two hosts.
const HOSTS: [[u8; 8]; 2] = [*b"host-000", *b"host-111"];
/// The keys of the two hosts.
const KEYS: [u64; 2] = [0xaaaa_0000_1111_2222, 0xbbbb_3333_4444_5555];
/// Address of the data of reservation commands.
const RESERVATION: u64 = DATA + 0x20_0000;
/// IEKEY.
const IGNORE_KEY: u32 = 1 << 3;

const CONFLICT: StatusCode = StatusCode::RESERVATION_CONFLICT;
const INVALID: StatusCode = StatusCode::INVALID_FIELD;

trait ExpectConflict {
    /// Checks that a command failed with exactly Reservation Conflict, as Linux expects: without
    /// DNR and More.
    fn expect_conflict(&self);
}

impl ExpectConflict for Completion {
    fn expect_conflict(&self) {
        assert_eq!(self.status, Status::retry(CONFLICT));
    }
}

/// Sets the Host Identifier of a controller.
fn identify(host: &mut Host, identifier: &[u8]) -> Completion {
    host.testbed.put(RESERVATION, identifier);
    let extended = u32::from(identifier.len() == 16);
    let command = set_feature(feature::HOST_IDENTIFIER, extended);
    host.admin(Command { prp1: RESERVATION, ..command })
}

/// Sets the Host Identifiers of both controllers.
fn identify_both(two: &mut Two) {
    for (number, identifier) in HOSTS.iter().enumerate() {
        identify(two.at(number), identifier).expect_success();
    }
}

/// Two controllers whose hosts have identifiers.
fn two() -> Two {
    let mut two = Two::new();
    identify_both(&mut two);
    two
}

/// Two controllers whose hosts have registered their keys with namespace 1.
fn registered() -> Two {
    let mut two = two();
    for (number, key) in KEYS.into_iter().enumerate() {
        reserve(two.at(number), register(0), [0, key]).expect_success();
    }
    two
}

fn register(flags: u32) -> Command {
    Command { opcode: nvm::RESERVATION_REGISTER, nsid: 1, cdw10: flags, ..Command::default() }
}

fn acquire(action: u32, kind: u32) -> Command {
    let cdw10 = action | kind << 8;
    Command { opcode: nvm::RESERVATION_ACQUIRE, nsid: 1, cdw10, ..Command::default() }
}

fn release(action: u32, kind: u32) -> Command {
    Command { opcode: nvm::RESERVATION_RELEASE, ..acquire(action, kind) }
}

/// Rings the doorbell of queue 1, and answers reads of host memory, but no media requests and no
/// changes of records.
fn begin(host: &mut Host) {
    host.ring(1);
    host.testbed.take_tlps(pcie::Ready::ALL);
    while let Some(read) = host.testbed.reads.pop_front() {
        host.testbed.answer_read(read, false);
        host.testbed.take_tlps(pcie::Ready::ALL);
    }
}

/// Begins a command with these keys, up to its change of records.
fn begin_reserve(host: &mut Host, command: Command, [current, other]: [u64; 2]) {
    host.testbed.put(RESERVATION, &ReservationKeys { current, other }.encode());
    host.put(1, Command { prp1: RESERVATION, ..command });
    begin(host);
}

/// Sends a command with these keys.
fn reserve(host: &mut Host, command: Command, [current, other]: [u64; 2]) -> Completion {
    host.testbed.put(RESERVATION, &ReservationKeys { current, other }.encode());
    host.io(Command { prp1: RESERVATION, ..command })
}

/// The report of namespace 1: `length` bytes.
fn report(host: &mut Host, length: u32, extended: bool) -> Vec<u8> {
    let command = Command {
        opcode: nvm::RESERVATION_REPORT,
        nsid: 1,
        prp1: RESERVATION,
        cdw10: length / 4 - 1,
        cdw11: extended.into(),
        ..Command::default()
    };
    host.io(command).expect_success();
    host.testbed.load(RESERVATION, length as usize).unwrap()
}

/// The header of the report.
fn status(host: &mut Host) -> ReservationStatus {
    ReservationStatus::decode(report(host, 24, false)[..].try_into().unwrap())
}

/// The type of the reservation and the number of controllers of registrants.
fn summary(host: &mut Host) -> (u8, u16) {
    let status = status(host);
    (status.kind, status.controllers)
}

#[test]
fn both_hosts_register_acquire_and_release() {
    let mut two = two();
    assert_eq!(status(two.at(1)), ReservationStatus::default());
    // A host without registration cannot acquire, release, replace or unregister.
    for command in [acquire(0, 1), acquire(1, 1), release(0, 1), release(1, 0), register(1)] {
        reserve(two.at(0), command, [0, 0]).expect_conflict();
    }
    reserve(two.at(0), register(2), [0, KEYS[0]]).expect_conflict();
    reserve(two.at(0), register(0), [7, KEYS[0]]).expect_success();
    assert_eq!(summary(two.at(1)), (0, 1));
    // The same key again; another key is a conflict.
    reserve(two.at(0), register(0), [0, KEYS[0]]).expect_success();
    reserve(two.at(0), register(IGNORE_KEY), [0, KEYS[1]]).expect_conflict();
    reserve(two.at(1), register(0), [0, KEYS[1]]).expect_success();
    assert_eq!(status(two.at(0)).generation, 3);
    reserve(two.at(0), acquire(0, 1), [KEYS[1], 0]).expect_conflict();
    reserve(two.at(0), acquire(0, 1), [KEYS[0], 0]).expect_success();
    assert_eq!(summary(two.at(1)), (1, 2));
    for kind in 1..=6 {
        reserve(two.at(1), acquire(0, kind), [KEYS[1], 0]).expect_conflict();
    }
    // The holder acquires the same type again, not another one.
    reserve(two.at(0), acquire(0, 1), [KEYS[0], 0]).expect_success();
    reserve(two.at(0), acquire(0, 3), [KEYS[0], 0]).expect_conflict();
    two.at(1).io(write(0, 1, DATA, 0)).expect_conflict();
    two.at(1).io(read(0, 1, DATA, 0)).expect_success();
    // The release by another host has no effect, nor the release of another type.
    reserve(two.at(1), release(0, 1), [KEYS[1], 0]).expect_success();
    reserve(two.at(0), release(0, 2), [KEYS[0], 0]).expect_failure(INVALID);
    reserve(two.at(0), release(0, 1), [KEYS[1], 0]).expect_conflict();
    assert_eq!(summary(two.at(0)), (1, 2));
    reserve(two.at(0), release(0, 1), [KEYS[0], 0]).expect_success();
    assert_eq!(summary(two.at(1)), (0, 2));
    two.at(1).io(write(0, 1, DATA, 0)).expect_success();
    assert_eq!(status(two.at(0)).generation, 3, "neither acquire nor release count");
}

#[test]
fn keys_are_replaced_and_unregistered() {
    let mut two = registered();
    reserve(two.at(0), register(2), [1, 2]).expect_conflict();
    reserve(two.at(0), register(2), [KEYS[0], 5]).expect_success();
    reserve(two.at(0), acquire(0, 2), [KEYS[0], 0]).expect_conflict();
    reserve(two.at(0), acquire(0, 2), [5, 0]).expect_success();
    // The replacement keeps the reservation.
    reserve(two.at(0), register(2 | IGNORE_KEY), [0, 6]).expect_success();
    assert_eq!(summary(two.at(1)), (2, 2));
    reserve(two.at(0), register(1), [5, 0]).expect_conflict();
    reserve(two.at(0), register(1), [6, 0]).expect_success();
    assert_eq!(summary(two.at(1)), (0, 1), "the holder's reservation goes with it");
    // With IEKEY, a host without registration registers by a replacement.
    reserve(two.at(0), register(1 | IGNORE_KEY), [0, 0]).expect_success();
    assert_eq!(summary(two.at(1)), (0, 1));
    reserve(two.at(0), register(2 | IGNORE_KEY), [0, 8]).expect_success();
    reserve(two.at(0), acquire(0, 5), [8, 0]).expect_success();
    // All registrants hold the reservation, until the last one unregisters.
    reserve(two.at(0), register(1), [8, 0]).expect_success();
    assert_eq!(summary(two.at(1)), (5, 1));
    reserve(two.at(1), register(1), [KEYS[1], 0]).expect_success();
    assert_eq!(summary(two.at(1)), (0, 0));
}

#[test]
fn clear_removes_all_registrations() {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 4), [KEYS[0], 0]).expect_success();
    reserve(two.at(1), release(1, 0), [KEYS[0], 0]).expect_conflict();
    reserve(two.at(1), release(1, 0), [KEYS[1], 0]).expect_success();
    assert_eq!(
        status(two.at(0)),
        ReservationStatus { generation: 3, ..ReservationStatus::default() }
    );
}

#[test]
fn invalid_fields_of_reservation_commands() {
    let mut two = registered();
    let host = two.at(0);
    let keys = [KEYS[0], 0];
    for command in [
        register(3),
        register(1 << 30),
        acquire(3, 1),
        acquire(0, 0),
        acquire(0, 7),
        acquire(IGNORE_KEY, 1),
        release(2, 1),
        release(IGNORE_KEY, 1),
    ] {
        reserve(host, command, keys).expect_failure(INVALID);
        let invalid = Command { nsid: 9, ..command };
        reserve(host, invalid, keys).expect_failure(StatusCode::INVALID_NAMESPACE);
    }
    let report =
        Command { opcode: nvm::RESERVATION_REPORT, nsid: 1, cdw10: u32::MAX, ..Command::default() };
    host.io(report).expect_failure(INVALID);
    assert_eq!(status(host).generation, 2);
    // Other namespaces have other registrations.
    let other = Command { nsid: 2, ..acquire(0, 1) };
    reserve(host, other, keys).expect_conflict();
}

#[test]
fn report_has_a_structure_for_each_controller() {
    let mut two = registered();
    reserve(two.at(1), acquire(0, 3), [KEYS[1], 0]).expect_success();
    let mut golden = vec![0; 24 + 2 * 24 + 4];
    golden[0] = 2;
    (golden[4], golden[5]) = (3, 2);
    golden[24] = 1;
    golden[32..40].copy_from_slice(b"host-000");
    golden[40..48].copy_from_slice(&[0x22, 0x22, 0x11, 0x11, 0, 0, 0xaa, 0xaa]);
    (golden[48], golden[50]) = (2, 1);
    golden[56..64].copy_from_slice(b"host-111");
    golden[64..72].copy_from_slice(&[0x55, 0x55, 0x44, 0x44, 0x33, 0x33, 0xbb, 0xbb]);
    assert_eq!(report(two.at(0), 76, false), golden, "zeroes follow the structures");
    assert_eq!(report(two.at(1), 40, false), golden[..40], "a part of the report");
    // Both controllers get the same host: one registrant with two controllers.
    identify(two.at(0), &HOSTS[1]).expect_success();
    let report = report(two.at(0), 96, false);
    assert_eq!(report[5], 3);
    assert_eq!([24, 48, 72].map(|at| [report[at], report[at + 1]]), [[255, 255], [1, 0], [2, 0]]);
    assert_eq!([26, 50, 74].map(|at| report[at]), [0, 1, 1], "holders");
}

#[test]
fn extended_report_has_identifiers_of_128_bits() {
    let mut two = Two::new();
    for (number, key) in KEYS.into_iter().enumerate() {
        let identifier = [0x10 + number as u8; 16];
        identify(two.at(number), &identifier).expect_success();
        reserve(two.at(number), register(0), [0, key]).expect_success();
    }
    reserve(two.at(0), acquire(0, 6), [KEYS[0], 0]).expect_success();
    let mut golden = vec![0; 192];
    golden[0] = 2;
    (golden[4], golden[5]) = (6, 2);
    for (at, number) in [(64, 0), (128, 1)] {
        (golden[at], golden[at + 2]) = (number as u8 + 1, 1);
        golden[at + 8..at + 16].copy_from_slice(&KEYS[number].to_le_bytes());
        golden[at + 16..at + 32].copy_from_slice(&[0x10 + number as u8; 16]);
    }
    assert_eq!(report(two.at(1), 192, true), golden);
    let short = Command { opcode: nvm::RESERVATION_REPORT, ..register(5) };
    let done = two.at(0).io(short);
    assert_eq!(done.status, Status::retry(StatusCode::HOST_IDENTIFIER_INCONSISTENT));
}

#[test]
fn identify_reports_reservations_of_drives_with_records() {
    let mut two = Two::new();
    let host = two.at(0);
    let controller = host.controller_data();
    assert_eq!(controller.nvm_commands & 1 << 5, 1 << 5);
    assert_eq!(controller.attributes, 1 | 1 << 18);
    assert_eq!(host.namespace_data(1).reservations, 0xff);
    let independent = host.identify(wire::nvme::cns::INDEPENDENT_NAMESPACE, 1);
    assert_eq!(independent[2], 0xff);
    let mut host = Host::with_queue(config());
    let controller = host.controller_data();
    assert_eq!((controller.nvm_commands & 1 << 5, controller.attributes), (0, 0));
    assert_eq!(host.namespace_data(1).reservations, 0);
    let register = register(0);
    host.io(register).expect_failure(StatusCode::INVALID_OPCODE);
}
