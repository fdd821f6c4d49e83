//! Firmware Image Download and Firmware Commit.

use super::records::{found, power_cycle, start};
use super::*;
use wire::nvme::{AsyncEvent, FirmwareSlots, feature_bits, log_page};

fn download(offset: u32, length: u32) -> Command {
    Command {
        opcode: opcode::admin::FIRMWARE_DOWNLOAD,
        prp1: DATA,
        prp2: page(1),
        cdw10: length / 4 - 1,
        cdw11: offset / 4,
        ..Command::default()
    }
}

fn commit(slot: u32, action: u32) -> Command {
    let opcode = opcode::admin::FIRMWARE_COMMIT;
    Command { opcode, cdw10: slot | action << 3, ..Command::default() }
}

/// Downloads an image of 6 KiB, the second half first.
fn send(host: &mut Host, revision: &[u8; 8]) {
    host.admin(download(4096, 2048)).expect_success();
    host.testbed.put(DATA, revision);
    host.admin(download(0, 4096)).expect_success();
}

/// The active slot, the slot after the next reset, the revisions of slots 2 and 3, and the revision
/// in Identify.
fn slots(host: &mut Host) -> (u8, u8, [String; 3]) {
    let log = FirmwareSlots::decode(&host.log(log_page::FIRMWARE));
    let shown = host.controller_data().firmware;
    let text = |bytes: [u8; 8]| String::from_utf8_lossy(&bytes).trim_matches('\0').to_owned();
    let [_, two, three, ..] = log.revisions;
    (log.active, log.next, [two, three, shown].map(text))
}

fn program() -> String {
    format!("{:8}", env!("CARGO_PKG_VERSION"))
}

#[test]
fn images_go_into_slots_and_become_active_as_asked() {
    let mut host = Host::new(config());
    let [a, b, c] = ["image-A ", "image-B ", "image-C "];
    send(&mut host, b"image-A ");
    host.admin(commit(2, 0)).expect_success();
    assert_eq!(slots(&mut host), (1, 0, [a.into(), "".into(), program()]), "not activated");
    send(&mut host, b"image-B ");
    host.admin(commit(3, 1)).expect_success();
    assert_eq!(slots(&mut host), (1, 3, [a.into(), b.into(), program()]), "at the next reset");
    host.configure(entry_sizes());
    host.enable(32);
    assert_eq!(slots(&mut host), (3, 0, [a.into(), b.into(), b.into()]));
    host.admin(commit(2, 2)).expect_success();
    assert_eq!(slots(&mut host).1, 2);
    host.admin(commit(2, 3)).expect_success();
    assert_eq!(slots(&mut host), (2, 0, [a.into(), b.into(), a.into()]), "at once");
    // The controller chooses the slot that is not active.
    send(&mut host, b"image-C ");
    host.admin(commit(0, 3)).expect_success();
    assert_eq!(slots(&mut host), (3, 0, [a.into(), c.into(), c.into()]));
    // Back to slot 1. The active revision does not change when its slot gets another image.
    send(&mut host, b"image-B ");
    host.admin(commit(3, 0)).expect_success();
    assert_eq!(slots(&mut host), (3, 0, [a.into(), b.into(), c.into()]));
    host.admin(commit(1, 3)).expect_success();
    assert_eq!(slots(&mut host), (1, 0, [a.into(), b.into(), program()]));
}

#[test]
fn invalid_firmware_image_or_slot_is_refused() {
    let mut host = Host::new(config());
    let bad_image = StatusCode::INVALID_FIRMWARE_IMAGE;
    host.admin(commit(2, 0)).expect_failure(bad_image);
    host.admin(commit(2, 2)).expect_failure(bad_image);
    host.admin(commit(3, 3)).expect_failure(bad_image);
    for action in 4..8 {
        host.admin(commit(2, action)).expect_failure(StatusCode::INVALID_FIELD);
    }
    send(&mut host, b"image-A ");
    host.admin(download(6140, 8)).expect_failure(StatusCode::OVERLAPPING_RANGE);
    host.admin(download(0, 4)).expect_failure(StatusCode::OVERLAPPING_RANGE);
    host.admin(download(1 << 20, 4)).expect_failure(StatusCode::INVALID_FIELD);
    host.admin(download(0, 132 << 10)).expect_failure(StatusCode::INVALID_FIELD);
    for (slot, action) in [(1, 0), (1, 1), (1, 3), (4, 0), (7, 2), (0, 2)] {
        host.admin(commit(slot, action)).expect_failure(StatusCode::INVALID_FIRMWARE_SLOT);
    }
    host.admin(commit(2, 0)).expect_success();
    // A gap, an image that is too short, and an image without a revision.
    host.admin(download(8, 8)).expect_success();
    host.admin(commit(2, 0)).expect_failure(bad_image);
    host.admin(download(0, 4)).expect_success();
    host.admin(commit(2, 0)).expect_failure(bad_image);
    send(&mut host, b"image\n\0\0");
    host.admin(commit(2, 0)).expect_failure(bad_image);
    // A reset discards downloaded data.
    send(&mut host, b"image-B ");
    host.configure(entry_sizes());
    host.enable(32);
    host.admin(commit(2, 0)).expect_failure(bad_image);
    assert_eq!(slots(&mut host).2[0], "image-A ");
}

#[test]
fn slots_outlive_power_and_what_cannot_be_stored_does_not_change() {
    let mut host = found(Testbed::with_records(&config()));
    start(&mut host);
    send(&mut host, b"image-A ");
    host.admin(commit(2, 1)).expect_success();
    let mut host = power_cycle(host);
    start(&mut host);
    let expected = (2, 0, ["image-A ".into(), "".into(), "image-A ".into()]);
    assert_eq!(slots(&mut host), expected);
    host.testbed.store.failure = Some(block::Error::NoSpace);
    send(&mut host, b"image-B ");
    let failed = host.admin(commit(3, 3)).status;
    assert_eq!((failed.code, failed.do_not_retry), (StatusCode::INTERNAL_ERROR, false));
    assert_eq!(slots(&mut host), expected);
}

#[test]
fn an_activation_without_reset_is_announced_to_those_who_ask() {
    for (asked, expected) in [(0, None), (feature_bits::FIRMWARE_ACTIVATION, Some(()))] {
        let mut host = Host::new(config());
        host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, asked)).expect_success();
        host.put(0, event_request());
        host.admin(commit(1, 3)).expect_success();
        let event = host.done.pop_front().or_else(|| host.reap(0).pop());
        let event = event.map(|done| AsyncEvent::from_bits(done.result));
        assert_eq!(event, expected.map(|()| AsyncEvent::FIRMWARE_ACTIVATION));
    }
}
