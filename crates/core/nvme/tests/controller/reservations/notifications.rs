//! The Reservation Notification log page, its asynchronous event, and masks.

use super::*;
use wire::nvme::{AsyncEvent, ReservationNotification, log_page};

const REGISTRATION_PREEMPTED: u8 = 1;
const RESERVATION_RELEASED: u8 = 2;
const RESERVATION_PREEMPTED: u8 = 3;

fn notification(host: &mut Host) -> ReservationNotification {
    ReservationNotification::decode(&host.log(log_page::RESERVATION))
}

/// The types of all unread notifications.
fn kinds(host: &mut Host) -> Vec<u8> {
    let next = || Some(notification(host).kind).filter(|kind| *kind != 0);
    std::iter::from_fn(next).take(100).collect()
}

fn mask(nsid: u32, value: u32) -> Command {
    Command { nsid, ..set_feature(feature::RESERVATION_MASK, value) }
}

#[test]
fn each_change_notifies_the_other_host() {
    // Reservation type of host 0, the command of host 0, and the notification of host 1.
    let cases = [
        (1, release(0, 1), None),
        (2, release(0, 2), None),
        (3, release(0, 3), Some(RESERVATION_RELEASED)),
        (4, release(0, 4), Some(RESERVATION_RELEASED)),
        (5, release(0, 5), Some(RESERVATION_RELEASED)),
        (1, register(1), None),
        (3, register(1), Some(RESERVATION_RELEASED)),
        (4, register(1), Some(RESERVATION_RELEASED)),
        (6, register(1), None),
        (1, release(1, 0), Some(RESERVATION_PREEMPTED)),
        // Host 0 preempts itself: the type changes, or not.
        (1, acquire(1, 3), Some(RESERVATION_RELEASED)),
        (1, acquire(1, 1), None),
        (3, register(2), None),
    ];
    for (kind, command, expected) in cases {
        let mut two = registered();
        reserve(two.at(0), acquire(0, kind), [KEYS[0], 0]).expect_success();
        reserve(two.at(0), command, [KEYS[0], KEYS[0]]).expect_success();
        assert_eq!(kinds(two.at(1)), Vec::from_iter(expected), "type {kind}, {command:?}");
        assert_eq!(kinds(two.at(0)), [0; 0], "the host of the command");
    }
    // Host 1 preempts host 0, which is a holder or not, or one of all holders.
    for (kind, key, expected) in [(1, KEYS[0], 1), (6, KEYS[0], 1), (6, 0, 1), (0, KEYS[0], 1)] {
        let mut two = registered();
        if kind != 0 {
            reserve(two.at(0), acquire(0, kind), [KEYS[0], 0]).expect_success();
        }
        reserve(two.at(1), acquire(1, 2), [KEYS[1], key]).expect_success();
        assert_eq!(kinds(two.at(0)), [REGISTRATION_PREEMPTED; 1][..expected]);
        assert_eq!(kinds(two.at(1)), [0; 0]);
    }
}

#[test]
fn log_pages_are_counted_and_announced() {
    let mut two = registered();
    let waiting = two.at(1).request_event();
    for _ in 0..2 {
        reserve(two.at(0), acquire(0, 3), [KEYS[0], 0]).expect_success();
        reserve(two.at(0), release(0, 3), [KEYS[0], 0]).expect_success();
    }
    let host = two.at(1);
    host.testbed.settle();
    let done = host.reap(0);
    assert_eq!(done.iter().map(|one| one.cid).collect::<Vec<_>>(), [waiting]);
    let event = AsyncEvent::from_bits(done[0].result);
    assert_eq!(event, AsyncEvent::RESERVATION_NOTIFICATION);
    assert_eq!(event.bits(), 0x80_0006);
    // With RAE the notification stays.
    let retained = Command {
        cdw10: get_log(log_page::RESERVATION, 64, DATA).cdw10 | 1 << 15,
        ..get_log(log_page::RESERVATION, 64, DATA)
    };
    host.admin(retained).expect_success();
    let mut golden = [0; 64];
    (golden[0], golden[8], golden[9], golden[12]) = (1, 2, 1, 1);
    assert_eq!(host.testbed.load(DATA, 64).unwrap(), golden);
    let seen = notification(host);
    assert_eq!((seen.count, seen.kind, seen.available, seen.nsid), (1, 2, 1, 1));
    let seen = notification(host);
    assert_eq!((seen.count, seen.available), (2, 0));
    assert_eq!(notification(host), ReservationNotification::default());
    // The next event follows the read.
    host.request_event();
    reserve(two.at(0), acquire(0, 4), [KEYS[0], 0]).expect_success();
    reserve(two.at(0), register(1), [KEYS[0], 0]).expect_success();
    two.at(1).testbed.settle();
    assert_eq!(two.at(1).reap(0).len(), 1);
    assert_eq!(notification(two.at(1)).count, 3);
}

#[test]
fn unread_log_pages_are_limited() {
    let mut two = registered();
    for _ in 0..70 {
        reserve(two.at(0), acquire(0, 3), [KEYS[0], 0]).expect_success();
        reserve(two.at(0), release(0, 3), [KEYS[0], 0]).expect_success();
    }
    assert_eq!(notification(two.at(1)).available, 63);
    assert_eq!(kinds(two.at(1)).len(), 63);
    // Lost notifications count too.
    reserve(two.at(0), release(1, 0), [KEYS[0], 0]).expect_success();
    let seen = notification(two.at(1));
    assert_eq!((seen.count, seen.kind), (71, RESERVATION_PREEMPTED));
}

#[test]
fn masked_notifications_do_not_occur() {
    let mut two = registered();
    let host = two.at(1);
    let get = |nsid| Command { nsid, ..get_feature(feature::RESERVATION_MASK, 0) };
    assert_eq!(host.admin(get(1)).expect_success(), 0);
    for value in [1, 1 << 4] {
        host.admin(mask(1, value)).expect_failure(INVALID);
    }
    host.admin(get(u32::MAX)).expect_failure(INVALID);
    let host = two.at(0);
    host.admin(mask(u32::MAX, 1 << 1)).expect_success();
    assert_eq!([1, 2].map(|nsid| host.admin(get(nsid)).expect_success()), [2, 2]);
    two.at(1).admin(mask(1, 1 << 2)).expect_success();
    assert_eq!(two.at(1).admin(get(1)).expect_success(), 4);
    // Host 1 does not learn of the release, but of the clearing.
    reserve(two.at(0), acquire(0, 3), [KEYS[0], 0]).expect_success();
    reserve(two.at(0), release(0, 3), [KEYS[0], 0]).expect_success();
    assert_eq!(kinds(two.at(1)), [0; 0]);
    // Host 0 does not learn that it was preempted.
    reserve(two.at(1), acquire(1, 3), [KEYS[1], KEYS[0]]).expect_success();
    assert_eq!(kinds(two.at(0)), [0; 0]);
    reserve(two.at(0), register(0), [0, KEYS[0]]).expect_success();
    reserve(two.at(0), release(1, 0), [KEYS[0], 0]).expect_success();
    assert_eq!(kinds(two.at(1)), [RESERVATION_PREEMPTED]);
}

#[test]
fn detached_namespace_causes_no_notification() {
    let mut two = registered();
    reserve(two.at(0), acquire(0, 3), [KEYS[0], 0]).expect_success();
    two.at(0).testbed.subsystem.detach(1, 2).unwrap();
    two.at(0).testbed.settle();
    reserve(two.at(0), release(0, 3), [KEYS[0], 0]).expect_success();
    assert_eq!(kinds(two.at(1)), [0; 0]);
}
