//! The feature Host Identifier.

use super::*;
use wire::nvme::register::Configuration;

const NOT_INITIALIZED: StatusCode = StatusCode::HOST_IDENTIFIER_NOT_INITIALIZED;
const INCONSISTENT: StatusCode = StatusCode::HOST_IDENTIFIER_INCONSISTENT;

/// The current Host Identifier of 8 or 16 bytes.
fn identifier(host: &mut Host, length: usize) -> Vec<u8> {
    let command = get_feature(feature::HOST_IDENTIFIER, u32::from(length == 16));
    host.admin(Command { prp1: RESERVATION, ..command }).expect_success();
    host.testbed.load(RESERVATION, length).unwrap()
}

fn controller_reset(host: &mut Host) {
    host.configure(entry_sizes());
    host.testbed.settle();
    host.start();
}

#[test]
fn reservations_need_a_host_identifier() {
    let mut two = Two::new();
    let host = two.at(0);
    assert_eq!((identifier(host, 8), identifier(host, 16)), (vec![0; 8], vec![0; 16]));
    let report = Command { opcode: nvm::RESERVATION_REPORT, ..register(5) };
    for command in [register(0), acquire(0, 1), release(0, 1), report] {
        reserve(host, command, [0, 1]).expect_failure(NOT_INITIALIZED);
    }
    identify(host, &HOSTS[0]).expect_success();
    assert_eq!(identifier(host, 8), HOSTS[0]);
    // EXHID must be as it was set.
    host.admin(get_feature(feature::HOST_IDENTIFIER, 1)).expect_failure(INVALID);
    for value in [2, 1 << 31] {
        host.admin(set_feature(feature::HOST_IDENTIFIER, value)).expect_failure(INVALID);
    }
    reserve(host, register(0), [0, 1]).expect_success();
    // A reset of the controller removes the identifier, but not the registration.
    controller_reset(host);
    assert_eq!(identifier(host, 8), [0; 8]);
    reserve(host, register(0), [0, 1]).expect_failure(NOT_INITIALIZED);
    identify(two.at(1), &HOSTS[0]).expect_success();
    assert_eq!(summary(two.at(1)), (0, 1));
}

#[test]
fn registrations_stay_with_the_previous_identifier() {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 1), [KEYS[0], 0]).expect_success();
    identify(two.at(0), b"host-222").expect_success();
    two.at(0).io(write(0, 1, DATA, 0)).expect_conflict();
    reserve(two.at(0), release(0, 1), [KEYS[0], 0]).expect_conflict();
    // The other controller becomes a controller of the registered host.
    identify(two.at(1), &HOSTS[0]).expect_success();
    two.at(1).io(write(0, 1, DATA, 0)).expect_success();
    reserve(two.at(1), release(0, 1), [KEYS[0], 0]).expect_success();
}

#[test]
fn identifiers_of_64_and_128_bits_exclude_each_other() {
    let mut two = two();
    identify(two.at(0), &[1; 16]).expect_failure(INCONSISTENT);
    identify(two.at(1), &[0; 8]).expect_success();
    identify(two.at(0), &[1; 16]).expect_success();
    reserve(two.at(0), register(0), [0, 1]).expect_success();
    // The registration also excludes identifiers of 64 bits.
    identify(two.at(0), &[0; 16]).expect_success();
    identify(two.at(1), &HOSTS[1]).expect_failure(INCONSISTENT);
    identify(two.at(1), &[2; 16]).expect_success();
    assert_eq!(report(two.at(1), 128, true)[5], 1);
}

#[test]
fn bound_host_cannot_be_changed() {
    let mut two = Two::new();
    let identity = [7; 16];
    let host = two.at(0);
    host.testbed.port().bind_host(Some(identity));
    assert_eq!(identifier(host, 16), identity);
    for other in [&[8; 16][..], &[0; 16], &HOSTS[0]] {
        identify(host, other).expect_failure(INVALID);
    }
    identify(host, &identity).expect_success();
    reserve(host, register(0), [0, 1]).expect_success();
    reserve(host, acquire(0, 1), [1, 0]).expect_success();
    // Resets keep the binding.
    host.configure(Configuration::default());
    host.testbed.hot_reset();
    host.testbed.enumerate(true);
    host.start();
    host.io(write(0, 1, DATA, 0)).expect_success();
    assert_eq!(report(host, 128, true)[64..67], [1, 0, 1]);
    // Another host of the same port has no access.
    host.testbed.port().bind_host(Some([9; 16]));
    host.io(write(0, 1, DATA, 0)).expect_conflict();
    host.testbed.port().bind_host(None);
    assert_eq!(identifier(host, 16), [0; 16]);
}
