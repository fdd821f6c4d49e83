//! Get Log Page.

use super::*;
use wire::Duration;
use wire::nvme::{CommandsSupported, ErrorLogEntry, FirmwareSlots, SmartLog, log_page};

pub fn command(id: u8, length: usize, offset: u64) -> Command {
    let dwords = (length / 4 - 1) as u32;
    Command {
        opcode: opcode::admin::GET_LOG_PAGE,
        nsid: u32::MAX,
        prp1: DATA,
        prp2: DATA + 4096,
        cdw10: u32::from(id) | dwords << 16,
        cdw11: dwords >> 16,
        cdw12: offset as u32,
        cdw13: (offset >> 32) as u32,
        ..Command::default()
    }
}

#[test]
fn errors_are_logged_newest_first() {
    let mut host = Host::with_queue(config());
    let bad = Command { cdw12: 0, ..read(8192, 1, DATA, 0) };
    let failed = host.io(bad);
    failed.expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    host.admin(get_feature(0, 0)).expect_failure(StatusCode::INVALID_FIELD);
    let log: [u8; 128] = host.log(log_page::ERROR);
    let newest = ErrorLogEntry::decode(log[..64].try_into().unwrap());
    assert_eq!((newest.count, newest.sq_id, newest.parameter), (2, 0, 40));
    let older = ErrorLogEntry::decode(log[64..].try_into().unwrap());
    assert_eq!((older.count, older.sq_id, older.cid), (1, 1, failed.cid));
    assert_eq!((older.status, older.phase), (failed.status, failed.phase));
    assert_eq!((older.lba, older.nsid), (8192, 1));
}

#[test]
fn smart_counts() {
    let mut host = Host::with_queue(config());
    host.io(write(0, 8, DATA, 0)).expect_success();
    host.io(read(0, 16, DATA, DATA + 4096)).expect_success();
    host.io(Command { nsid: 2, ..read(0, 1, DATA, 0) }).expect_success();
    host.testbed.media.failure = Some(block::Error::Media);
    host.io(read(0, 1, DATA, 0));
    host.testbed.pass(Duration::from_ms(2 * 3_600_000));
    let smart = host.smart();
    assert_eq!((smart.host_reads, smart.host_writes), (3, 1));
    assert_eq!((smart.data_units_read, smart.data_units_written), (1, 1));
    assert_eq!((smart.media_errors, smart.error_log_entries), (1, 1));
    assert_eq!((smart.power_on_hours, smart.power_cycles, smart.busy_minutes), (2, 1, 0));
    assert_eq!((smart.temperature, smart.available_spare), (313, 100));
    host.admin(Command { nsid: 1, ..command(log_page::SMART, 512, 0) })
        .expect_failure(StatusCode::INVALID_FIELD);
    assert_eq!(smart.unsafe_shutdowns, 0);
}

#[test]
fn busy_time_is_time_with_commands_outstanding() {
    let mut host = Host::with_queue(config());
    host.put(1, flush(1));
    host.fetch(1, false);
    host.testbed.pass(Duration::from_ms(120_000));
    host.testbed.settle();
    host.testbed.pass(Duration::from_ms(120_000));
    let smart = host.smart();
    assert_eq!(smart.busy_minutes, 2);
}

#[test]
fn firmware_and_effects() {
    let mut host = Host::new(config());
    let firmware = FirmwareSlots::decode(&host.log(log_page::FIRMWARE));
    assert_eq!((firmware.active, firmware.next), (1, 0));
    assert_eq!(&firmware.revisions[0][..5], env!("CARGO_PKG_VERSION").as_bytes());
    let effects = CommandsSupported::decode(&host.log(log_page::EFFECTS));
    let supported = |opcodes: [wire::nvme::CommandEffects; 256]| {
        opcodes.iter().filter(|effects| effects.bits() & 1 != 0).count()
    };
    assert_eq!((supported(effects.admin), supported(effects.io)), (16, 8));
}

#[test]
fn offsets_and_lengths() {
    let mut host = Host::new(config());
    host.testbed.put(DATA, &[0xff; 512]);
    host.admin(command(log_page::FIRMWARE, 16, 8)).expect_success();
    let data = host.testbed.load(DATA, 20).unwrap();
    assert_eq!(&data[..5], env!("CARGO_PKG_VERSION").as_bytes());
    assert_eq!(data[16..], [0xff; 4]);
    host.admin(command(log_page::FIRMWARE, 16, 508)).expect_success();
    host.admin(command(log_page::FIRMWARE, 16, 516)).expect_failure(StatusCode::INVALID_FIELD);
    host.admin(command(log_page::FIRMWARE, 16, 6)).expect_failure(StatusCode::INVALID_FIELD);
    host.admin(command(log_page::FIRMWARE, 1 << 20, 0)).expect_failure(StatusCode::INVALID_FIELD);
    host.admin(command(0x7f, 16, 0)).expect_failure(StatusCode::INVALID_LOG_PAGE);
}

#[test]
fn telemetry_is_a_snapshot_that_a_host_takes() {
    use wire::nvme::{TELEMETRY_BLOCK, TelemetryHeader};
    let mut host = Host::new(config());
    let header = |host: &mut Host, id: u8, take: bool| {
        let read = command(id, TELEMETRY_BLOCK, 0);
        host.admin(Command { cdw10: read.cdw10 | u32::from(take) << 8, ..read }).expect_success();
        let page = host.testbed.load(DATA, TELEMETRY_BLOCK).unwrap();
        TelemetryHeader::decode(page[..].try_into().unwrap())
    };
    let (own, controller) = (log_page::TELEMETRY_HOST, log_page::TELEMETRY_CONTROLLER);
    let empty = TelemetryHeader { id: own, ..TelemetryHeader::default() };
    assert_eq!(header(&mut host, own, false), empty);
    host.admin(get_feature(0, 0)).expect_failure(StatusCode::INVALID_FIELD);
    // SMART in one block, the error log in 64 * 64 / 512 = 8.
    let taken = TelemetryHeader { last_blocks: [9; 3], ..empty };
    assert_eq!(header(&mut host, own, true), taken);
    host.admin(get_feature(0, 0)).expect_failure(StatusCode::INVALID_FIELD);
    assert_eq!(header(&mut host, own, false), taken);
    host.admin(command(own, 1024, 512)).expect_success();
    let data = host.testbed.load(DATA, 1024).unwrap();
    let smart = SmartLog::decode(data[..512].try_into().unwrap());
    let newest = ErrorLogEntry::decode(data[512..576].try_into().unwrap());
    assert_eq!((smart.error_log_entries, newest.count), (1, 1), "as it was taken");
    host.admin(command(own, 512, 4)).expect_failure(StatusCode::INVALID_FIELD);
    host.admin(command(own, 516, 0)).expect_failure(StatusCode::INVALID_FIELD);
    let empty = TelemetryHeader { id: controller, ..TelemetryHeader::default() };
    assert_eq!(header(&mut host, controller, false), empty);
}
