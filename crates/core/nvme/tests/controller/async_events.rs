//! Asynchronous events.

use super::*;
use nvme::block;
use wire::nvme::register::Doorbell;
use wire::nvme::{AsyncEvent, StatusCode, critical_warning, log_page};

fn events(host: &mut Host) -> Vec<(u16, AsyncEvent)> {
    host.testbed.settle();
    let done = host.reap(0);
    done.iter().map(|done| (done.cid, AsyncEvent::from_bits(done.expect_success()))).collect()
}

fn read_log(host: &mut Host, id: u8, retain: bool) {
    let log = get_log(id, 64, DATA);
    host.admin(Command { cdw10: log.cdw10 | u32::from(retain) << 15, ..log }).expect_success();
}

#[test]
fn bad_doorbells_are_reported_until_the_log_is_read() {
    let mut host = Host::with_queue(config());
    let (first, second) = (host.request_event(), host.request_event());
    host.doorbell(Doorbell::SubmissionTail(9), 1);
    assert_eq!(events(&mut host), [(first, AsyncEvent::INVALID_DOORBELL_REGISTER)]);
    host.doorbell(Doorbell::SubmissionTail(1), 16);
    assert_eq!(events(&mut host), [], "masked until the log was read");
    read_log(&mut host, log_page::ERROR, true);
    host.doorbell(Doorbell::CompletionHead(1), 3);
    assert_eq!(events(&mut host), []);
    read_log(&mut host, log_page::ERROR, false);
    host.doorbell(Doorbell::CompletionHead(1), 3);
    assert_eq!(events(&mut host), [(second, AsyncEvent::INVALID_DOORBELL_VALUE)]);
    host.io(flush(1)).expect_success();
}

#[test]
fn events_wait_for_a_request() {
    let mut host = Host::new(config());
    host.doorbell(Doorbell::CompletionHead(0), 31);
    assert_eq!(events(&mut host), []);
    let cid = host.request_event();
    assert_eq!(events(&mut host), [(cid, AsyncEvent::INVALID_DOORBELL_VALUE)]);
}

#[test]
fn an_event_waits_once_and_masks_those_of_its_log_page_alone() {
    let mut host = Host::new(config());
    let set = set_feature(feature::ASYNC_EVENT_CONFIG, 0x02);
    host.admin(set).expect_success();
    for _ in 0..2 {
        host.doorbell(Doorbell::SubmissionTail(9), 1);
    }
    host.doorbell(Doorbell::CompletionHead(0), 31);
    let now = host.testbed.now;
    host.testbed.subsystem.set_temperature(now, 351);
    let cids = [(); 4].map(|()| host.request_event());
    let expected = [AsyncEvent::INVALID_DOORBELL_REGISTER, AsyncEvent::TEMPERATURE_THRESHOLD];
    let expected: Vec<_> = cids.into_iter().zip(expected).collect();
    assert_eq!(events(&mut host), expected);
    read_log(&mut host, log_page::ERROR, false);
    assert_eq!(events(&mut host), [], "the other of that page is gone as well");
}

#[test]
fn requests_are_limited_and_can_be_aborted() {
    let mut host = Host::new(config());
    let cids: Vec<u16> = (0..4).map(|_| host.request_event()).collect();
    host.admin(event_request()).expect_failure(StatusCode::ASYNC_EVENT_LIMIT_EXCEEDED);
    assert_eq!(host.admin(abort(0, cids[2])).expect_success(), 0);
    let aborted = host.done.pop_front().unwrap();
    assert_eq!(aborted.cid, cids[2]);
    assert_eq!(aborted.status, Status::retry(StatusCode::ABORT_REQUESTED));
    assert_eq!(host.admin(abort(0, cids[2])).expect_success(), 1);
    host.request_event();
    host.doorbell(Doorbell::SubmissionTail(9), 1);
    assert_eq!(events(&mut host)[0].0, cids[0], "the oldest request reports");
}

#[test]
fn requests_do_not_use_up_a_small_admin_queue() {
    let mut host = Host::over(Testbed::enumerated(config(), true));
    host.enable(2);
    for _ in 0..4 {
        host.request_event();
    }
    host.admin(get_feature(feature::ARBITRATION, 0)).expect_success();
}

#[test]
fn temperatures_cross_thresholds() {
    let mut host = Host::new(config());
    host.request_event();
    let event = feature::ASYNC_EVENT_CONFIG;
    host.admin(set_feature(feature::TEMPERATURE_THRESHOLD, 300)).expect_success();
    assert_eq!(events(&mut host), [], "not asked for");
    host.admin(set_feature(feature::TEMPERATURE_THRESHOLD, 350)).expect_success();
    host.admin(set_feature(event, 0x02)).expect_success();
    let now = host.testbed.now;
    host.testbed.subsystem.set_temperature(now, 351);
    assert_eq!(events(&mut host)[0].1, AsyncEvent::TEMPERATURE_THRESHOLD);
    read_log(&mut host, log_page::SMART, false);
    host.request_event();
    host.testbed.subsystem.set_temperature(now, 352);
    assert_eq!(events(&mut host), [], "it was too hot before");
    host.testbed.subsystem.set_temperature(now, 310);
    let under = set_feature(feature::TEMPERATURE_THRESHOLD, 1 << 20 | 312);
    host.admin(under).expect_success();
    let done = host.done.pop_front().or_else(|| host.reap(0).pop()).unwrap();
    assert_eq!(AsyncEvent::from_bits(done.result), AsyncEvent::TEMPERATURE_THRESHOLD);
}

#[test]
fn media_that_become_read_only_are_reported() {
    let mut host = Host::new(config());
    host.request_event();
    host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, 0x08)).expect_success();
    let now = host.testbed.now;
    host.testbed.subsystem.set_read_only(now, 1, true);
    assert_eq!(events(&mut host), []);
    host.testbed.subsystem.set_read_only(now, 2, true);
    assert_eq!(events(&mut host)[0].1, AsyncEvent::RELIABILITY);
}

#[test]
fn first_media_error_is_reported() {
    let mut host = Host::with_queue(config());
    host.request_event();
    host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, 0x04)).expect_success();
    assert_eq!(host.smart().critical_warning, 0);
    host.testbed.media.failure = Some(block::Error::Media);
    let failed = host.io(read(0, 1, DATA, 0)).status.code;
    assert_eq!(failed, StatusCode::UNRECOVERED_READ_ERROR);
    assert_eq!(events(&mut host)[0].1, AsyncEvent::RELIABILITY);
    let smart = host.smart();
    assert_eq!((smart.critical_warning, smart.media_errors), (critical_warning::RELIABILITY, 1));
    host.request_event();
    let failed = host.io(read(0, 1, DATA, 0)).status.code;
    assert_eq!(failed, StatusCode::UNRECOVERED_READ_ERROR);
    assert_eq!(events(&mut host), [], "it is reported once");
}
