//! The Persistent Event log: offsets of section 5.14.1.13.

use super::golden;
use crate::nvme::*;

#[test]
fn the_header_of_the_page() {
    let mut nqn = [0; 256];
    nqn[255] = 7;
    let header = PersistentEventLog {
        id: log_page::PERSISTENT_EVENT,
        events: 0x0102,
        length: 0x0304,
        revision: PersistentEventLog::REVISION,
        header_length: PersistentEventLog::HEADER_LENGTH,
        timestamp: 0x0002_1122_3344_5566,
        hours: 5,
        power_cycles: 6,
        vendor: 0x1234,
        subsystem_vendor: 0x5678,
        serial: ascii("SN1"),
        model: ascii("farlane"),
        subsystem_nqn: nqn,
        supported: PersistentEventLog::all_types(),
    };
    there_and_back!(
        PersistentEventLog,
        header,
        golden(&[
            (0, &[0x0d, 0, 0, 0, 2, 1, 0, 0, 4, 3]),
            // 512 - 20 = 1ECh bytes follow byte 19.
            (16, &[1, 0, 0xec, 0x01, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 2]),
            (28, &[5]),
            (44, &[6]),
            (52, &[0x34, 0x12, 0x78, 0x56]),
            (56, b"SN1                 "),
            (76, b"farlane                                 "),
            (371, &[7]),
            // Types 1 to 4, 6 and 7; 8 to 11 and 13.
            (480, &[0b1101_1110, 0b0010_1111]),
        ])
    );
}

#[test]
fn the_header_of_an_event() {
    let header = PersistentEventHeader {
        kind: PersistentEventType::PowerOn as u8,
        revision: PersistentEventHeader::REVISION,
        header_length: PersistentEventHeader::HEADER_LENGTH,
        controller: 0x0102,
        timestamp: 0x0002_1122_3344_5566,
        vendor_length: 3,
        length: 44,
    };
    // 24 - 3 = 15h bytes follow byte 2.
    there_and_back!(
        PersistentEventHeader,
        header,
        golden(&[
            (0, &[4, 1, 0x15, 0, 2, 1, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 2]),
            (20, &[3, 0, 44, 0])
        ])
    );
}

#[test]
fn the_data_of_events() {
    let firmware = FirmwareCommitEvent {
        old: ascii("0.1"),
        new: ascii("0.2"),
        action: 3,
        slot: 2,
        status_type: 1,
        status: 7,
    };
    there_and_back!(
        FirmwareCommitEvent,
        firmware,
        golden(&[(0, b"0.1     0.2     "), (16, &[3, 2, 1, 7])])
    );
    let timestamp = TimestampChangeEvent { previous: 0x0102, since_reset: 0x0304 };
    there_and_back!(TimestampChangeEvent, timestamp, golden(&[(0, &[2, 1]), (8, &[4, 3])]));
    let power = PowerOnEvent {
        firmware: ascii("0.1"),
        controller: 0x0102,
        activation: 1,
        operation: 2,
        power_cycle: 0x0304,
        milliseconds: 5,
        timestamp: 6,
    };
    there_and_back!(
        PowerOnEvent,
        power,
        golden(&[(0, b"0.1     \x02\x01\x01\x02"), (24, &[4, 3]), (28, &[5]), (36, &[6])])
    );
    let namespace = ChangeNamespaceEvent {
        command: 1,
        size: 0x0102,
        capacity: 0x0304,
        formatted: 5,
        protection: 6,
        sharing: 7,
        access_group: 8,
        nvm_set: 9,
        nsid: 10,
    };
    there_and_back!(
        ChangeNamespaceEvent,
        namespace,
        golden(&[
            (0, &[1]),
            (8, &[2, 1]),
            (16, &[4, 3]),
            (32, &[5, 6, 7]),
            (36, &[8]),
            (40, &[9]),
            (44, &[10])
        ])
    );
}

#[test]
fn the_data_of_formats_sanitize_operations_and_temperatures() {
    let start = FormatStartEvent { nsid: 1, attributes: 2, command: 0x0304 };
    there_and_back!(FormatStartEvent, start, golden(&[(0, &[1, 0, 0, 0, 2]), (8, &[4, 3])]));
    let end = FormatCompletionEvent { nsid: 1, progress: 2, result: 3, status: 0x0504 };
    there_and_back!(FormatCompletionEvent, end, golden(&[(0, &[1, 0, 0, 0, 2, 3]), (8, &[4, 5])]));
    let start = SanitizeStartEvent { capabilities: 1, command: 2, pattern: 3 };
    there_and_back!(SanitizeStartEvent, start, golden(&[(0, &[1]), (4, &[2]), (8, &[3])]));
    let end = SanitizeCompletionEvent { progress: 0xffff, status: 1, passes: 3 };
    there_and_back!(SanitizeCompletionEvent, end, golden(&[(0, &[0xff, 0xff, 0x19])]));
    let feature = SetFeatureEvent { count: 2, command: [0x8000_0006, 1] };
    let bytes = golden(&[(0, &[2, 0, 0, 0, 6, 0, 0, 0x80, 1])]);
    there_and_back!(SetFeatureEvent, feature, bytes);
    let heat = ThermalExcursionEvent { difference: 9, threshold: thermal_threshold::NORMAL };
    there_and_back!(ThermalExcursionEvent, heat, golden(&[(0, &[9, 0x88])]));
}

#[test]
fn every_type_has_its_length() {
    let lengths = PersistentEventType::ALL.map(PersistentEventType::length);
    assert_eq!(lengths, [512, 22, 16, 44, 48, 12, 12, 12, 8, 12, 2]);
}
