//! Read, Write, Flush, Write Zeroes, Dataset Management.

use super::*;
use wire::nvme::DsmRange;

const FUA: u32 = 1 << 30;

fn log(host: &mut Host) -> Vec<(u32, &'static str)> {
    std::mem::take(&mut host.testbed.media.log)
}

#[test]
fn read_returns_written_data() {
    let mut host = Host::with_queue(config());
    let data = pattern(4096, 1);
    host.testbed.put(DATA, &data);
    host.io(write(100, 8, DATA, 0)).expect_success();
    assert_eq!(host.testbed.media.namespaces[&1][51200..][..4096], data);
    host.io(read(100, 8, DATA + 0x8000, 0)).expect_success();
    assert_eq!(host.testbed.load(DATA + 0x8000, 4096).unwrap(), data);
    assert_eq!(log(&mut host), [(1, "write"), (1, "read")]);
}

#[test]
fn namespaces_are_apart_and_have_their_own_block_size() {
    let mut host = Host::with_queue(config());
    let data = pattern(8192, 2);
    host.testbed.put(DATA, &data);
    host.io(Command { nsid: 2, ..write(254, 2, DATA, DATA + 4096) }).expect_success();
    assert_eq!(host.testbed.media.namespaces[&2][254 * 4096..], data);
    let beyond = Command { nsid: 2, ..write(255, 2, DATA, DATA + 4096) };
    host.io(beyond).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    for nsid in [0, 3, u32::MAX] {
        for command in [read(0, 1, DATA, 0), write(0, 1, DATA, 0), flush(1)] {
            if command.opcode == opcode::nvm::FLUSH && nsid == u32::MAX {
                continue;
            }
            host.io(Command { nsid, ..command }).expect_failure(StatusCode::INVALID_NAMESPACE);
        }
    }
}

#[test]
fn ranges_and_sizes_are_checked() {
    let mut host = Host::with_queue(config());
    for (slba, blocks) in [(8192, 1), (8191, 2), (u64::MAX, 1), (u64::MAX - 1, 8)] {
        host.io(read(slba, blocks, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
        host.io(write(slba, blocks, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
        let zeroes = Command { opcode: opcode::nvm::WRITE_ZEROES, ..write(slba, blocks, 0, 0) };
        host.io(zeroes).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    }
    host.io(read(0, 257, DATA, DATA)).expect_failure(StatusCode::INVALID_FIELD);
    host.io(write(0, 257, DATA, DATA)).expect_failure(StatusCode::INVALID_FIELD);
    assert_eq!(log(&mut host), []);
}

#[test]
fn write_zeroes_has_no_transfer_limit() {
    let mut host = Host::with_queue(config());
    host.testbed.media.namespaces.get_mut(&1).unwrap().fill(7);
    let zeroes = Command { opcode: opcode::nvm::WRITE_ZEROES, ..write(1, 8191, 0, 0) };
    host.io(zeroes).expect_success();
    let media = &host.testbed.media.namespaces[&1];
    assert!(media[..512].iter().all(|byte| *byte == 7));
    assert!(media[512..].iter().all(|byte| *byte == 0));
}

#[test]
fn write_zeroes_may_deallocate() {
    let mut host = Host::with_queue(config());
    host.testbed.media.namespaces.get_mut(&1).unwrap().fill(7);
    let zeroes = Command { opcode: opcode::nvm::WRITE_ZEROES, ..write(1, 2, 0, 0) };
    host.io(Command { cdw12: 1 | 1 << 25 | FUA, ..zeroes }).expect_success();
    assert_eq!(log(&mut host), [(1, "write zeroes"), (1, "discard"), (1, "flush")]);
    assert_eq!(host.testbed.media.namespaces[&1][512..1536], [0; 1024]);
}

#[test]
fn forced_unit_access_and_a_disabled_cache_flush() {
    let mut host = Host::with_queue(config());
    let forced = |command: Command| Command { cdw12: command.cdw12 | FUA, ..command };
    host.io(forced(write(0, 1, DATA, 0))).expect_success();
    assert_eq!(log(&mut host), [(1, "write"), (1, "flush")]);
    host.io(forced(read(0, 1, DATA, 0))).expect_success();
    assert_eq!(log(&mut host), [(1, "flush"), (1, "read")]);
    host.admin(set_feature(feature::VOLATILE_WRITE_CACHE, 0)).expect_success();
    host.io(write(0, 1, DATA, 0)).expect_success();
    let zeroes = Command { opcode: opcode::nvm::WRITE_ZEROES, ..write(0, 1, 0, 0) };
    host.io(zeroes).expect_success();
    let through = [(1, "write"), (1, "flush"), (1, "write zeroes"), (1, "flush")];
    assert_eq!(log(&mut host), through);
    let mut host = Host::with_queue(configured(|settings| settings.volatile_write_cache = false));
    host.io(forced(write(0, 1, DATA, 0))).expect_success();
    assert_eq!(log(&mut host), [(1, "write")]);
}

#[test]
fn flush_takes_one_namespace_or_all() {
    let mut host = Host::with_queue(config());
    host.io(flush(2)).expect_success();
    host.io(flush(u32::MAX)).expect_success();
    assert_eq!(log(&mut host), [(2, "flush"), (1, "flush"), (2, "flush")]);
}

fn deallocate(host: &mut Host, ranges: &[(u64, u32)], cdw11: u32) -> Completion {
    let bytes: Vec<u8> = ranges
        .iter()
        .flat_map(|(slba, blocks)| {
            DsmRange { attributes: 0, blocks: *blocks, slba: *slba }.encode()
        })
        .collect();
    host.testbed.put(DATA, &bytes);
    host.io(Command {
        opcode: opcode::nvm::DATASET_MANAGEMENT,
        nsid: 1,
        prp1: DATA,
        cdw10: ranges.len() as u32 - 1,
        cdw11,
        ..Command::default()
    })
}

#[test]
fn deallocate_discards_every_range_or_none() {
    let mut host = Host::with_queue(config());
    host.testbed.media.namespaces.get_mut(&1).unwrap().fill(7);
    deallocate(&mut host, &[(0, 2), (9, 0), (8191, 1)], 4).expect_success();
    assert_eq!(log(&mut host), [(1, "discard"), (1, "discard")]);
    assert_eq!(host.testbed.media.namespaces[&1][..1024], [0; 1024]);
    deallocate(&mut host, &[(0, 2), (8191, 2)], 4).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    deallocate(&mut host, &[(0, 2); 256], 4).expect_success();
    assert_eq!(log(&mut host).len(), 256);
    deallocate(&mut host, &[(u64::MAX, 2)], 3).expect_success();
    assert_eq!(log(&mut host), [], "hints change nothing");
}

#[test]
fn write_protected_namespaces_refuse_changes() {
    let mut config = config();
    config.namespaces[0].read_only = true;
    let mut host = Host::with_queue(config);
    host.io(read(0, 1, DATA, 0)).expect_success();
    host.io(flush(1)).expect_success();
    log(&mut host);
    host.io(write(0, 1, DATA, 0)).expect_failure(StatusCode::NAMESPACE_WRITE_PROTECTED);
    let zeroes = Command { opcode: opcode::nvm::WRITE_ZEROES, ..write(0, 1, 0, 0) };
    host.io(zeroes).expect_failure(StatusCode::NAMESPACE_WRITE_PROTECTED);
    deallocate(&mut host, &[(0, 1)], 4).expect_failure(StatusCode::NAMESPACE_WRITE_PROTECTED);
    assert_eq!(log(&mut host), []);
}

#[test]
fn media_that_became_read_only_refuse_writes_and_are_read() {
    let mut host = Host::with_queue(config());
    let now = host.testbed.now;
    host.testbed.subsystem.set_read_only(now, 1, true);
    host.io(write(0, 1, DATA, 0)).expect_failure(StatusCode::WRITE_TO_READ_ONLY_RANGE);
    deallocate(&mut host, &[(0, 1)], 4).expect_failure(StatusCode::WRITE_TO_READ_ONLY_RANGE);
    assert_eq!(log(&mut host), [], "the media are not asked");
    host.io(read(0, 1, DATA, 0)).expect_success();
    let now = host.testbed.now;
    host.testbed.subsystem.set_read_only(now, 1, false);
    host.io(write(0, 1, DATA, 0)).expect_success();
}

#[test]
fn failed_media_have_their_status() {
    use block::Error;
    let mut host = Host::with_queue(config());
    for (error, on_read, on_write, retry) in [
        (Error::Media, StatusCode::UNRECOVERED_READ_ERROR, StatusCode::WRITE_FAULT, true),
        (
            Error::ReadOnly,
            StatusCode::WRITE_TO_READ_ONLY_RANGE,
            StatusCode::WRITE_TO_READ_ONLY_RANGE,
            false,
        ),
        (Error::NoSpace, StatusCode::CAPACITY_EXCEEDED, StatusCode::CAPACITY_EXCEEDED, false),
        (Error::NotReady, StatusCode::NAMESPACE_NOT_READY, StatusCode::NAMESPACE_NOT_READY, true),
        (Error::Internal, StatusCode::INTERNAL_ERROR, StatusCode::INTERNAL_ERROR, true),
    ] {
        host.testbed.media.failure = Some(error);
        for (command, code) in [(read(0, 1, DATA, 0), on_read), (write(0, 1, DATA, 0), on_write)] {
            let status = host.io(command).status;
            assert_eq!((status.code, status.do_not_retry, status.more), (code, !retry, true));
        }
    }
    host.testbed.media.failure = None;
    host.io(read(0, 1, DATA, 0)).expect_success();
}
