//! The Persistent Event log.

use super::records::{found, power_cycle, start};
use super::*;
use nvme::state::State;
use wire::nvme::opcode::admin;
use wire::nvme::{
    BROADCAST_NSID, ChangeNamespaceEvent, FirmwareCommitEvent, FormatCompletionEvent,
    FormatStartEvent, IdentifyNamespace, PersistentEventHeader, PersistentEventLog,
    PersistentEventType, PowerOnEvent, SanitizeCompletionEvent, SanitizeStartEvent,
    SetFeatureEvent, SmartLog, ThermalExcursionEvent, TimestampChangeEvent, ascii, log_page,
    sanitize_status, thermal_threshold,
};
use wire::{Duration, Instant};

const READ: u32 = 0;
const ESTABLISH: u32 = 1;
const RELEASE: u32 = 2;
/// The maximum number of bytes of the log page.
const MOST: u32 = 32 << 10;

fn host() -> Host {
    let mut host = found(Testbed::with_records(&config()));
    start(&mut host);
    host
}

/// A Get Log Page command for `length` bytes from `offset` on.
fn get(action: u32, offset: u32, length: u32) -> Command {
    Command {
        opcode: admin::GET_LOG_PAGE,
        nsid: BROADCAST_NSID,
        prp1: DATA,
        prp2: DATA + 0x1000,
        cdw10: u32::from(log_page::PERSISTENT_EVENT) | action << 8 | (length / 4 - 1) << 16,
        cdw12: offset,
        ..Command::default()
    }
}

/// The whole log page of the reporting context, read in pieces.
fn page(host: &mut Host) -> Vec<u8> {
    let piece = |host: &mut Host, offset: u32| {
        host.admin(get(READ, offset, 4096)).expect_success();
        host.testbed.load(DATA, 4096).unwrap()
    };
    let first = piece(host, 0);
    let header = PersistentEventLog::decode(first[..512].try_into().unwrap());
    let length = header.length as usize;
    let rest = (1..length.div_ceil(4096)).flat_map(|at| piece(host, at as u32 * 4096));
    let mut page: Vec<u8> = first.into_iter().chain(rest).collect();
    page.truncate(length);
    page
}

/// The events of a page with their data, newest first.
fn events(page: &[u8]) -> Vec<(PersistentEventHeader, Vec<u8>)> {
    let header = PersistentEventLog::decode(page[..512].try_into().unwrap());
    let mut at = 512;
    let mut events = Vec::new();
    for _ in 0..header.events {
        let event = PersistentEventHeader::decode(page[at..at + 24].try_into().unwrap());
        at += usize::from(event.header_length) + 3;
        let end = at + usize::from(event.length);
        events.push((event, page[at..end].to_vec()));
        at = end;
    }
    assert_eq!(at.next_multiple_of(4), page.len(), "TLL");
    events
}

/// The current entries of the log, newest first.
fn logged(host: &mut Host) -> Vec<(PersistentEventHeader, Vec<u8>)> {
    host.admin(get(ESTABLISH, 0, 512)).expect_success();
    let page = page(host);
    host.admin(get(RELEASE, 0, 512)).expect_success();
    events(&page)
}

/// The data of the newest event, which must have this type.
fn newest<const N: usize>(host: &mut Host, kind: PersistentEventType) -> [u8; N] {
    let (header, data) = logged(host).remove(0);
    assert_eq!(header.kind, kind as u8, "{header:?}");
    data.try_into().unwrap()
}

#[test]
fn the_log_is_read_in_a_context() {
    let mut host = host();
    host.admin(get(READ, 0, 512)).expect_failure(StatusCode::COMMAND_SEQUENCE_ERROR);
    host.admin(get(RELEASE, 0, 512)).expect_success();
    host.admin(get(3, 0, 512)).expect_failure(StatusCode::INVALID_FIELD);
    host.admin(get(ESTABLISH, 0, 512)).expect_success();
    let header = host.testbed.load(DATA, 512).unwrap();
    let header = PersistentEventLog::decode(header[..].try_into().unwrap());
    assert_eq!((header.id, header.revision, header.header_length), (0x0d, 1, 492));
    assert_eq!((header.serial, header.power_cycles), (ascii("SN0001"), 1));
    assert_eq!(header.supported[..3], [0b1101_1110, 0b0010_1111, 0]);
    // Power-on, then a SMART snapshot.
    assert_eq!((header.events, header.length), (2, 512 + 24 + 44 + 24 + 512));
    host.admin(get(ESTABLISH, 0, 512)).expect_failure(StatusCode::COMMAND_SEQUENCE_ERROR);
    // Later events are not in the context.
    let before = page(&mut host);
    host.testbed.put(DATA, &8u64.to_le_bytes());
    host.admin(Command { prp1: DATA, ..set_feature(feature::TIMESTAMP, 0) }).expect_success();
    assert_eq!(page(&mut host), before);
    host.admin(get(RELEASE, 0, 512)).expect_success();
    host.admin(get(READ, 0, 512)).expect_failure(StatusCode::COMMAND_SEQUENCE_ERROR);
    assert_eq!(logged(&mut host).len(), 3);
    // A reset releases the context too.
    host.admin(get(ESTABLISH, 0, 512)).expect_success();
    host.configure(entry_sizes());
    start(&mut host);
    host.admin(get(READ, 0, 512)).expect_failure(StatusCode::COMMAND_SEQUENCE_ERROR);
}

#[test]
fn only_drives_with_records_have_the_log() {
    let identify = |host: &mut Host| {
        let identify = host.controller_data();
        (identify.log_page_attributes >> 4 & 1, identify.persistent_log)
    };
    assert_eq!(identify(&mut host()), (1, 1), "up to 64 KiB");
    let mut host = Host::new(config());
    assert_eq!(identify(&mut host), (0, 0));
    for action in [READ, ESTABLISH, RELEASE] {
        host.admin(get(action, 0, 512)).expect_failure(StatusCode::INVALID_LOG_PAGE);
    }
}

#[test]
fn power_resets_and_another_timestamp_are_events() {
    let mut host = host();
    let found = logged(&mut host);
    let kinds: Vec<u8> = found.iter().map(|(header, _)| header.kind).collect();
    assert_eq!(kinds, [1, 4]);
    let smart = SmartLog::decode(found[0].1[..].try_into().unwrap());
    assert_eq!((smart.power_cycles, smart.temperature), (1, 313));
    host.testbed.pass(Duration::from_ms(20));
    host.configure(entry_sizes());
    start(&mut host);
    let reset = PowerOnEvent::decode(&newest(&mut host, PersistentEventType::PowerOn));
    let expected = PowerOnEvent {
        firmware: ascii(env!("CARGO_PKG_VERSION")),
        controller: 1,
        power_cycle: 1,
        milliseconds: 20,
        timestamp: 20,
        ..PowerOnEvent::default()
    };
    assert_eq!(reset, expected);
    host.testbed.pass(Duration::from_ms(5));
    host.testbed.put(DATA, &1_700_000_000_000u64.to_le_bytes());
    host.admin(Command { prp1: DATA, ..set_feature(feature::TIMESTAMP, 0) }).expect_success();
    let (header, data) = logged(&mut host).remove(0);
    let change = TimestampChangeEvent::decode(&data.try_into().unwrap());
    assert_eq!(change, TimestampChangeEvent { previous: 25, since_reset: 5 });
    // The host has set the timestamp: origin 1 in bits 51:49.
    assert_eq!(header.timestamp, 1_700_000_000_000 | 1 << 49);
    assert_eq!((header.controller, header.vendor_length), (1, 0));
}

#[test]
fn changes_of_namespaces_are_stored_with_their_events() {
    let mut state = config().state();
    state.drive.capacity = 8 << 20;
    state.drive.max_namespaces = 4;
    let mut host = found(Testbed::from_records(&config(), state.encode()));
    start(&mut host);
    let new = IdentifyNamespace { size: 256, capacity: 256, formatted: 1, ..Default::default() };
    let create = Command { opcode: admin::NAMESPACE_MANAGEMENT, prp1: DATA, ..Command::default() };
    host.testbed.store.failure = Some(block::Error::NoSpace);
    host.testbed.put(DATA, &new.encode());
    host.admin(create).expect_failure(StatusCode::INSUFFICIENT_CAPACITY);
    assert_eq!(logged(&mut host)[0].0.kind, PersistentEventType::Smart as u8, "it has failed");
    host.testbed.store.failure = None;
    host.testbed.put(DATA, &new.encode());
    host.admin(create).expect_success();
    assert_eq!(host.testbed.store.log.last().unwrap(), &["namespace/3", "created", "events"]);
    let created = ChangeNamespaceEvent {
        size: 256,
        capacity: 256,
        formatted: 1,
        nsid: 3,
        ..Default::default()
    };
    let event = newest(&mut host, PersistentEventType::ChangeNamespace);
    assert_eq!(ChangeNamespaceEvent::decode(&event), created);
    host.admin(Command { nsid: 3, cdw10: 1, ..create }).expect_success();
    let event = newest(&mut host, PersistentEventType::ChangeNamespace);
    let deleted = ChangeNamespaceEvent { command: 1, nsid: 3, ..Default::default() };
    assert_eq!(ChangeNamespaceEvent::decode(&event), deleted);
    // Without a command of a host there is no event.
    let events = logged(&mut host).len();
    host.testbed.subsystem.delete_namespace(2).unwrap();
    host.testbed.settle();
    assert_eq!(logged(&mut host).len(), events);
}

#[test]
fn formats_begin_and_end() {
    let mut host = host();
    host.admin(Command { opcode: admin::FORMAT, nsid: 1, cdw10: 0x201, ..Command::default() })
        .expect_success();
    let found = logged(&mut host);
    let end = FormatCompletionEvent::decode(found[0].1[..].try_into().unwrap());
    assert_eq!(end, FormatCompletionEvent { nsid: 1, ..Default::default() });
    let begin = FormatStartEvent::decode(found[1].1[..].try_into().unwrap());
    assert_eq!(begin, FormatStartEvent { nsid: 1, attributes: 0, command: 0x201 });
    assert_eq!([found[0].0.kind, found[1].0.kind], [8, 7]);
    host.testbed.media.failure = Some(block::Error::Media);
    let failed =
        host.admin(Command { opcode: admin::FORMAT, nsid: 2, cdw10: 1, ..Command::default() });
    assert_eq!(failed.status.code, StatusCode::WRITE_FAULT);
    host.testbed.media.failure = None;
    let end =
        FormatCompletionEvent::decode(&newest(&mut host, PersistentEventType::FormatCompletion));
    let status = failed.status.bits() << 1;
    assert_eq!(end, FormatCompletionEvent { nsid: 2, result: 1, status, ..Default::default() });
    // A rejected Format NVM logs no event.
    host.admin(Command { opcode: admin::FORMAT, nsid: 1, cdw10: 9, ..Command::default() })
        .expect_failure(StatusCode::INVALID_FORMAT);
    assert_eq!(logged(&mut host).len(), 6);
}

#[test]
fn sanitize_operations_begin_and_end() {
    let mut host = host();
    let command = Command { opcode: admin::SANITIZE, cdw10: 0x23, cdw11: 7, ..Command::default() };
    host.admin(command).expect_success();
    host.testbed.settle();
    let found = logged(&mut host);
    assert_eq!([found[0].0.kind, found[1].0.kind], [10, 9]);
    let end = SanitizeCompletionEvent::decode(found[0].1[..].try_into().unwrap());
    let status = sanitize_status::COMPLETED;
    assert_eq!(end, SanitizeCompletionEvent { progress: u16::MAX, status, passes: 2 });
    assert_eq!([found[0].0.controller, found[1].0.controller], [0xffff, 1]);
    let begin = SanitizeStartEvent::decode(found[1].1[..].try_into().unwrap());
    assert_eq!(begin, SanitizeStartEvent { capabilities: 0x4000_0006, command: 0x23, pattern: 7 });
}

#[test]
fn firmware_commits_are_events_whether_they_succeed_or_not() {
    let mut host = host();
    let old = ascii(env!("CARGO_PKG_VERSION"));
    let commit = |cdw10| Command { opcode: admin::FIRMWARE_COMMIT, cdw10, ..Command::default() };
    host.admin(commit(2 << 3 | 2)).expect_failure(StatusCode::INVALID_FIRMWARE_IMAGE);
    let event = newest(&mut host, PersistentEventType::FirmwareCommit);
    let failed = FirmwareCommitEvent {
        old,
        action: 2,
        slot: 2,
        status_type: 1,
        status: 7,
        ..FirmwareCommitEvent::default()
    };
    assert_eq!(FirmwareCommitEvent::decode(&event), failed);
    host.testbed.put(DATA, b"image  1");
    let cdw10 = 1;
    let opcode = admin::FIRMWARE_DOWNLOAD;
    host.admin(Command { opcode, prp1: DATA, cdw10, ..Command::default() }).expect_success();
    host.admin(commit(1 << 3)).expect_success();
    let event = newest(&mut host, PersistentEventType::FirmwareCommit);
    let done = FirmwareCommitEvent { old, new: *b"image  1", action: 1, ..Default::default() };
    assert_eq!(FirmwareCommitEvent::decode(&event), done);
    host.configure(entry_sizes());
    start(&mut host);
    let reset = PowerOnEvent::decode(&newest(&mut host, PersistentEventType::PowerOn));
    assert_eq!((reset.firmware, reset.activation), (*b"image  1", 1));
}

#[test]
fn features_that_change_are_events() {
    let mut host = host();
    let feature_set = |host: &mut Host| {
        SetFeatureEvent::decode(&newest(host, PersistentEventType::SetFeature)).command
    };
    host.admin(set_feature(feature::VOLATILE_WRITE_CACHE, 0)).expect_success();
    assert_eq!(feature_set(&mut host), [6, 0]);
    let events = logged(&mut host).len();
    // An unchanged value, and features that hosts change often, log no event.
    host.admin(set_feature(feature::VOLATILE_WRITE_CACHE, 0)).expect_success();
    host.admin(set_feature(feature::POWER_MANAGEMENT, 1)).expect_success();
    host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, 1)).expect_success();
    assert_eq!(logged(&mut host).len(), events);
    let protect = Command { nsid: 1, ..set_feature(feature::WRITE_PROTECTION, 1) };
    host.admin(protect).expect_success();
    assert_eq!(host.testbed.store.log.last().unwrap(), &["namespace/1", "events"]);
    assert_eq!(feature_set(&mut host), [0x84, 1]);
}

#[test]
fn temperatures_that_cross_thresholds_are_events() {
    let mut host = host();
    let now = host.testbed.now;
    let heat = |host: &mut Host, kelvin: u16| {
        let before = logged(host).len();
        host.testbed.subsystem.set_temperature(now, kelvin);
        let mut found = logged(host);
        found.truncate(found.len() - before);
        let event = |(_, data): &(_, Vec<u8>)| {
            let event = ThermalExcursionEvent::decode(data[..].try_into().unwrap());
            (event.threshold, event.difference)
        };
        found.iter().map(event).collect::<Vec<_>>()
    };
    // WCTEMP 343, CCTEMP 353.
    assert_eq!(heat(&mut host, 342), []);
    assert_eq!(heat(&mut host, 344), [(thermal_threshold::WARNING, 1)]);
    assert_eq!(heat(&mut host, 345), []);
    assert_eq!(heat(&mut host, 353), [(thermal_threshold::CRITICAL, 0)]);
    assert_eq!(heat(&mut host, 344), []);
    assert_eq!(heat(&mut host, 300), [(thermal_threshold::NORMAL, 43)]);
    let both = [(thermal_threshold::CRITICAL, 255), (thermal_threshold::WARNING, 255)];
    assert_eq!(heat(&mut host, 900), both);
}

#[test]
fn events_outlive_power_and_the_oldest_go() {
    let mut host = host();
    host.admin(Command { opcode: admin::FORMAT, nsid: 1, cdw10: 1, ..Command::default() })
        .expect_success();
    let before = logged(&mut host);
    let mut host = power_cycle(host);
    start(&mut host);
    let after = logged(&mut host);
    assert_eq!(after[2..], before, "power and SMART are new");
    // A temperature event has 24 + 2 bytes: 32 KiB without the header have room for 1240.
    let now = host.testbed.now;
    for _ in 0..700 {
        host.testbed.subsystem.set_temperature(now, 344);
        host.testbed.subsystem.set_temperature(now, 300);
    }
    host.testbed.settle();
    let full = logged(&mut host);
    assert_eq!(full.len() as u32, (MOST - 512) / 26);
    let kind = PersistentEventType::ThermalExcursion as u8;
    assert!(full.iter().all(|(header, _)| header.kind == kind));
    let stored = State::decode(&host.testbed.store.records).unwrap();
    assert_eq!(stored.events, host.testbed.subsystem.state().events);
    assert_eq!(stored.events.0.len(), full.len());
}

#[test]
fn unstored_events_are_stored_with_next_change() {
    let mut host = host();
    let events = |host: &Host| State::decode(&host.testbed.store.records).unwrap().events.0.len();
    assert_eq!(events(&host), 2);
    host.testbed.store.failure = Some(block::Error::NoSpace);
    host.testbed.subsystem.set_temperature(Instant::ZERO, 350);
    host.testbed.settle();
    host.testbed.store.failure = None;
    assert_eq!((events(&host), logged(&mut host).len()), (2, 3));
    host.admin(Command { cdw10: 1 << 31 | 4, ..set_feature(4, 343) }).expect_success();
    assert_eq!(events(&host), 3);
    assert_eq!(host.testbed.store.log.last().unwrap(), &["features", "events"]);
}
