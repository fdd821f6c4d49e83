//! Reservations.

use super::golden;
use crate::nvme::*;

#[test]
fn the_keys() {
    let keys = ReservationKeys { current: 0x0807_0605_0403_0201, other: 0x1817_1615_1413_1211 };
    there_and_back!(
        ReservationKeys,
        keys,
        golden(&[
            (0, &[1, 2, 3, 4, 5, 6, 7, 8]),
            (8, &[0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18])
        ])
    );
}

#[test]
fn the_status_and_its_controllers() {
    let status =
        ReservationStatus { generation: 0x0403_0201, kind: 6, controllers: 0x0908, persists: true };
    there_and_back!(ReservationStatus, status, golden(&[(0, &[1, 2, 3, 4, 6, 8, 9]), (9, &[1])]));
    let one = RegisteredController { controller: 0x0201, holds: true, host: *b"12345678", key: 5 };
    there_and_back!(
        RegisteredController,
        one,
        golden(&[(0, &[1, 2, 1]), (8, b"12345678"), (16, &[5])])
    );
    let host = *b"0123456789abcdef";
    let one = RegisteredControllerExtended { controller: 0xffff, holds: false, key: 5, host };
    there_and_back!(
        RegisteredControllerExtended,
        one,
        golden(&[(0, &[0xff, 0xff]), (8, &[5]), (16, b"0123456789abcdef")])
    );
}

#[test]
fn the_notification_log() {
    let kind = ReservationNotice::ReservationPreempted as u8;
    let log = ReservationNotification { count: 0x0201, kind, available: 4, nsid: 0x0605 };
    there_and_back!(
        ReservationNotification,
        log,
        golden(&[(0, &[1, 2]), (8, &[3, 4]), (12, &[5, 6])])
    );
}

#[test]
fn the_event() {
    assert_eq!(AsyncEvent::RESERVATION_NOTIFICATION.bits(), 0x0080_0006);
}
