//! Write Uncorrectable, and the commands that remove marks.

use super::records::{found, power_cycle, start};
use super::*;
use nvme::state::{MAX_UNCORRECTABLE, State};
use pcie::Ready;
use wire::nvme::opcode::{admin, nvm};
use wire::nvme::{CopyRange, DsmRange};

const UNREADABLE: StatusCode = StatusCode::UNRECOVERED_READ_ERROR;

/// A drive with records and I/O queue 1.
fn host() -> Host {
    let mut host = found(Testbed::with_records(&config()));
    start(&mut host);
    host.create(1, 16);
    host
}

fn mark(slba: u64, blocks: u32) -> Command {
    Command { opcode: nvm::WRITE_UNCORRECTABLE, ..read(slba, blocks, 0, 0) }
}

/// The stored marks as JSON.
fn stored(host: &Host) -> String {
    let state = State::decode(&host.testbed.store.records).unwrap();
    assert_eq!(state.uncorrectable, host.testbed.subsystem.state().uncorrectable);
    serde_json::to_string(&state.uncorrectable).unwrap()
}

/// The LBA in the newest entry of the error log, after a command with this status.
fn lba(host: &mut Host, command: Command, code: StatusCode) -> u64 {
    host.io(command).expect_failure(code);
    let entry = host.last_error();
    assert_eq!((entry.status.code, entry.nsid), (code, 1));
    entry.lba
}

#[test]
fn marked_blocks_cannot_be_read() {
    let mut host = host();
    host.io(mark(8, 4)).expect_success();
    host.io(mark(12, 1)).expect_success();
    assert_eq!(stored(&host), "{\"1\":[[8,5]]}");
    for (slba, blocks, bad) in [(0, 16, 8), (10, 1, 10), (12, 4, 12)] {
        for opcode in [nvm::READ, nvm::COMPARE, nvm::VERIFY] {
            let command = Command { opcode, ..read(slba, blocks, DATA, DATA + 4096) };
            assert_eq!(lba(&mut host, command, UNREADABLE), bad);
        }
    }
    assert_eq!(host.testbed.media.log, [], "the media are not asked");
    for command in [read(0, 8, DATA, 0), read(13, 1, DATA, 0)] {
        host.io(command).expect_success();
    }
    host.io(Command { nsid: 2, ..read(8, 1, DATA, 0) }).expect_success();
    // A Copy of several ranges copies nothing. Dword 0 has the first range that was not copied: 0.
    host.testbed.media.log.clear();
    let ranges = [CopyRange::default(), CopyRange { slba: 9, ..CopyRange::default() }];
    host.testbed.put(DATA, &ranges.map(|range| range.encode()).concat());
    let copy = Command { opcode: nvm::COPY, cdw12: 1, ..read(100, 1, DATA, 0) };
    assert_eq!(lba(&mut host, copy, UNREADABLE), 9);
    assert_eq!(host.testbed.media.log, []);
    // Marks persist over power losses and resets.
    let mut host = power_cycle(host);
    start(&mut host);
    host.create(1, 16);
    assert_eq!(lba(&mut host, read(0, 9, DATA, DATA + 4096), UNREADABLE), 8);
    assert_eq!(stored(&host), "{\"1\":[[8,5]]}");
}

#[test]
fn write_uncorrectable_is_unsupported_without_records() {
    let oncs = |host: &mut Host| host.controller_data().nvm_commands >> 1 & 1;
    assert_eq!(oncs(&mut host()), 1);
    let mut host = Host::with_queue(config());
    assert_eq!(oncs(&mut host), 0);
    host.io(mark(0, 1)).expect_failure(StatusCode::INVALID_OPCODE);
}

#[test]
fn write_uncorrectable_of_invalid_range_is_refused() {
    let mut host = host();
    host.io(mark(8192, 1)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    host.io(mark(8191, 2)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    host.io(Command { nsid: 3, ..mark(0, 1) }).expect_failure(StatusCode::INVALID_NAMESPACE);
    let now = host.testbed.now;
    host.testbed.subsystem.set_read_only(now, 1, true);
    host.io(mark(0, 1)).expect_failure(StatusCode::WRITE_TO_READ_ONLY_RANGE);
    host.testbed.subsystem.set_read_only(now, 1, false);
    host.testbed.store.failure = Some(block::Error::NoSpace);
    assert_eq!(host.io(mark(0, 1)).status.code, StatusCode::INTERNAL_ERROR);
    host.testbed.store.failure = None;
    host.io(read(0, 1, DATA, 0)).expect_success();
    assert_eq!(stored(&host), "{}");
}

#[test]
fn the_number_of_marked_blocks_is_bounded() {
    let namespaces = vec![NamespaceConfig::new(MAX_UNCORRECTABLE + 2)];
    let mut host = found(Testbed::with_records(&Config::new("SN0001", namespaces)));
    start(&mut host);
    host.create(1, 16);
    host.io(mark(1, 65_536)).expect_success();
    host.io(mark(5, 100)).expect_success();
    host.io(mark(0, 1)).expect_failure(StatusCode::WRITE_FAULT);
    host.io(write(3, 1, DATA, 0)).expect_success();
    // Two commands at once, but there is room for the blocks of one.
    for slba in [0, 65_537] {
        host.put(1, mark(slba, 1));
    }
    host.carry_out(1);
    let codes: Vec<_> = host.reap(1).iter().map(|done| done.status.code).collect();
    assert_eq!(codes, [StatusCode::WRITE_FAULT, StatusCode::SUCCESS]);
    assert_eq!(stored(&host), "{\"1\":[[0,3],[4,65533]]}");
}

/// Deallocates ranges.
fn deallocate(host: &mut Host, ranges: &[(u64, u32)]) -> Command {
    let encode = |(slba, blocks): &(u64, u32)| {
        DsmRange { attributes: 0, blocks: *blocks, slba: *slba }.encode()
    };
    let bytes: Vec<u8> = ranges.iter().flat_map(encode).collect();
    host.testbed.put(DATA, &bytes);
    let cdw10 = ranges.len() as u32 - 1;
    Command { opcode: nvm::DATASET_MANAGEMENT, cdw10, cdw11: 4, ..read(0, 1, DATA, 0) }
}

#[test]
fn every_command_that_writes_blocks_makes_them_readable() {
    let mut host = host();
    let flushed = |first: &'static str| [(1, first), (1, "flush")];
    host.io(mark(0, 100)).expect_success();
    host.io(write(10, 2, DATA, 0)).expect_success();
    assert_eq!(host.testbed.media.log, flushed("write"));
    assert_eq!(stored(&host), "{\"1\":[[0,10],[12,88]]}");
    let forced = Command { cdw12: 1 << 30, ..write(12, 1, DATA, 0) };
    host.testbed.media.log.clear();
    host.io(forced).expect_success();
    assert_eq!(host.testbed.media.log, flushed("write"), "one flush does for both");
    host.io(Command { opcode: nvm::WRITE_ZEROES, ..write(90, 20, 0, 0) }).expect_success();
    let deallocate = deallocate(&mut host, &[(0, 5), (200, 8), (50, 10)]);
    host.io(deallocate).expect_success();
    assert_eq!(stored(&host), "{\"1\":[[5,5],[13,37],[60,30]]}");
    host.testbed.put(DATA, &CopyRange { last: 4, ..CopyRange::default() }.encode());
    host.io(Command { opcode: nvm::COPY, ..read(5, 1, DATA, 0) }).expect_success();
    assert_eq!(stored(&host), "{\"1\":[[13,37],[60,30]]}");
    host.testbed.media.log.clear();
    host.io(write(0, 8, DATA, 0)).expect_success();
    assert_eq!(host.testbed.media.log, [(1, "write")], "others cost nothing");
    // The write of a fused operation removes a mark.
    host.io(mark(0, 1)).expect_success();
    let compare = Command { opcode: nvm::COMPARE, fuse: 1, ..read(0, 1, DATA, 0) };
    host.put(1, compare);
    host.put(1, Command { fuse: 2, ..write(0, 1, DATA, 0) });
    host.carry_out(1);
    let codes: Vec<_> = host.reap(1).iter().map(|done| done.status.code).collect();
    assert_eq!(codes, [UNREADABLE, StatusCode::ABORTED_FAILED_FUSED]);
    host.testbed.subsystem.check_invariants();
}

#[test]
fn the_data_come_first_then_the_record_then_the_completion() {
    // Power is lost after each step of the write.
    for steps in 0..=4 {
        let mut host = host();
        host.testbed.media.namespaces.get_mut(&1).unwrap()[..512].fill(9);
        host.io(mark(0, 1)).expect_success();
        host.testbed.put(DATA, &[7; 512]);
        host.put(1, write(0, 1, DATA, 0));
        host.fetch(1, false);
        while let Some(read) = host.testbed.reads.pop_front() {
            host.testbed.answer_read(read, false);
            host.testbed.take_tlps(Ready::ALL);
        }
        let mut written = Vec::new();
        for step in 0..steps {
            written.push(host.testbed.blocks.front().map(|one| one.operation.kind()));
            let served = host.testbed.serve_block() || host.testbed.serve_store();
            assert_eq!(served, step < 3, "write, flush, record");
            host.testbed.take_tlps(Ready::ALL);
            assert_eq!(host.peek(1, 1).len(), usize::from(step == 2));
        }
        let unmarked = stored(&host) == "{}";
        assert_eq!(unmarked, steps >= 3);
        use wire::trace::MediaOperation::{Flush, Write};
        assert!(!unmarked || written[..2] == [Some(Write), Some(Flush)]);
        let mut host = power_cycle(host);
        start(&mut host);
        host.create(1, 16);
        let code = host.io(read(0, 1, DATA + 4096, 0)).status.code;
        assert_eq!(code, if unmarked { StatusCode::SUCCESS } else { UNREADABLE });
    }
}

#[test]
fn write_fails_if_uncorrectable_mark_cannot_be_removed() {
    let mut host = host();
    host.io(mark(0, 4)).expect_success();
    host.testbed.store.failure = Some(block::Error::Media);
    assert_eq!(host.io(write(0, 1, DATA, 0)).status.code, StatusCode::INTERNAL_ERROR);
    host.testbed.store.failure = None;
    host.testbed.media.failure = Some(block::Error::Media);
    assert_eq!(host.io(write(0, 1, DATA, 0)).status.code, StatusCode::WRITE_FAULT);
    host.testbed.media.failure = None;
    assert_eq!(lba(&mut host, read(0, 1, DATA, 0), UNREADABLE), 0);
    host.io(write(0, 1, DATA, 0)).expect_success();
    assert_eq!(stored(&host), "{\"1\":[[1,3]]}");
    // A reset before the record is stored: the mark stays.
    host.put(1, write(1, 1, DATA, 0));
    host.fetch(1, false);
    let data = host.testbed.reads.pop_front().unwrap();
    host.testbed.answer_read(data, false);
    for _ in 0..2 {
        host.testbed.take_tlps(Ready::ALL);
        assert!(host.testbed.serve_block());
    }
    host.configure(entry_sizes());
    start(&mut host);
    assert_eq!(stored(&host), "{\"1\":[[1,3]]}");
}

#[test]
fn formats_sanitize_operations_and_deletions_end_marks() {
    let both = |host: &mut Host| {
        host.io(mark(0, 4)).expect_success();
        host.io(Command { nsid: 2, ..mark(7, 2) }).expect_success();
        assert_eq!(stored(host), "{\"1\":[[0,4]],\"2\":[[7,2]]}");
    };
    for (command, left) in [
        (Command { opcode: admin::FORMAT, nsid: 1, ..Command::default() }, "{\"2\":[[7,2]]}"),
        (Command { opcode: admin::SANITIZE, cdw10: 2, ..Command::default() }, "{}"),
        (
            Command {
                opcode: admin::NAMESPACE_MANAGEMENT,
                nsid: 1,
                cdw10: 1,
                ..Command::default()
            },
            "{\"2\":[[7,2]]}",
        ),
    ] {
        let mut host = host();
        both(&mut host);
        host.admin(command).expect_success();
        host.testbed.settle();
        assert_eq!(stored(&host), left, "{command:?}");
    }
}
