//! Log pages.

use super::golden;
use crate::nvme::*;

#[test]
fn an_error_log_entry() {
    let entry = ErrorLogEntry {
        count: 3,
        sq_id: 1,
        cid: 0x22,
        status: Status::fail(StatusCode::INVALID_FIELD),
        phase: true,
        parameter: 0x0128,
        lba: 0x77,
        nsid: 5,
        command_specific: 0x0102,
    };
    there_and_back!(
        ErrorLogEntry,
        entry,
        golden(&[
            (0, &[3]),
            (8, &[1, 0, 0x22, 0, 0x05, 0x80, 0x28, 0x01, 0x77]),
            (24, &[5]),
            (32, &[2, 1])
        ])
    );
}

#[test]
fn the_smart_log() {
    let log = SmartLog {
        critical_warning: critical_warning::TEMPERATURE,
        temperature: 0x0139,
        available_spare: 100,
        spare_threshold: 10,
        percentage_used: 1,
        data_units_read: 1,
        data_units_written: 2,
        host_reads: 3,
        host_writes: 4,
        busy_minutes: 5,
        power_cycles: 6,
        power_on_hours: 7,
        unsafe_shutdowns: 8,
        media_errors: 9,
        error_log_entries: 10,
        warning_minutes: 11,
        critical_minutes: 12,
    };
    there_and_back!(
        SmartLog,
        log,
        golden(&[
            (0, &[2, 0x39, 0x01, 100, 10, 1]),
            (32, &[1]),
            (48, &[2]),
            (64, &[3]),
            (80, &[4]),
            (96, &[5]),
            (112, &[6]),
            (128, &[7]),
            (144, &[8]),
            (160, &[9]),
            (176, &[10]),
            (192, &[11, 0, 0, 0, 12]),
        ])
    );
}

#[test]
fn the_firmware_log() {
    let mut slots = FirmwareSlots { active: 1, next: 2, ..FirmwareSlots::default() };
    slots.revisions[0] = ascii("0.1");
    there_and_back!(FirmwareSlots, slots, golden(&[(0, &[0x21]), (8, b"0.1     ")]));
}

#[test]
fn the_sanitize_log() {
    let log = SanitizeStatus {
        progress: 0x8000,
        status: sanitize_status::IN_PROGRESS,
        passes: 3,
        erased: true,
        command: 0x43,
        estimates: [[0xff; 4]; 6],
    };
    there_and_back!(SanitizeStatus, log, golden(&[(1, &[0x80, 0x1a, 1, 0x43]), (8, &[0xff; 24])]));
}

#[test]
fn the_effects_log() {
    let mut log = CommandsSupported::default();
    log.admin[6] = CommandEffects::SUPPORTED;
    log.io[1] = CommandEffects::CHANGES_BLOCKS;
    there_and_back!(CommandsSupported, log, golden(&[(24, &[1]), (1028, &[3])]));
}

#[test]
fn the_self_test_log() {
    let mut results = [SelfTestResult::UNUSED; 20];
    results[1] = SelfTestResult { result: 2, code: 1, valid: 1, hours: 0x0102, nsid: 0x0304 };
    let log = SelfTestLog { current: 2, completion: 99, results };
    let mut bytes: [u8; 564] =
        golden(&[(0, &[2, 99]), (32, &[0x12, 0, 1, 0, 2, 1]), (44, &[4, 3])]);
    for unused in (0..20).filter(|index| *index != 1) {
        bytes[4 + unused * 28] = 0x0f;
    }
    there_and_back!(SelfTestLog, log, bytes);
}

#[test]
fn the_telemetry_header() {
    let mut reason = [0; 128];
    reason[127] = 9;
    let header = TelemetryHeader {
        id: 7,
        ieee: [1, 2, 3],
        last_blocks: [0x0102, 4, 5],
        controller_data: 1,
        controller_generation: 6,
        reason,
    };
    there_and_back!(
        TelemetryHeader,
        header,
        golden(&[(0, &[7, 0, 0, 0, 0, 1, 2, 3, 2, 1, 4, 0, 5, 0]), (382, &[1, 6]), (511, &[9])])
    );
}

#[test]
fn the_access_log() {
    let header = AccessLogHeader { change_count: 0x0102, groups: 3 };
    there_and_back!(AccessLogHeader, header, golden(&[(0, &[2, 1]), (8, &[3])]));
    let state = AccessState::Change as u8;
    let group = AccessGroup { group: 1, namespaces: 2, change_count: 0x0103, state };
    let bytes = golden(&[(0, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 1]), (16, &[0x0f])]);
    there_and_back!(AccessGroup, group, bytes);
    assert_eq!(AsyncEvent::NAMESPACE_ACCESS_CHANGED.bits(), 0x0c_0302);
}
