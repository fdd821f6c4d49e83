//! Compare, Verify and Copy.

use super::*;
use wire::nvme::CopyRange;
use wire::nvme::opcode::nvm;

fn log(host: &mut Host) -> Vec<(u32, &'static str)> {
    std::mem::take(&mut host.testbed.media.log)
}

fn compare(slba: u64, blocks: u32) -> Command {
    Command { opcode: nvm::COMPARE, ..read(slba, blocks, DATA, 0) }
}

fn verify(slba: u64, blocks: u32) -> Command {
    Command { opcode: nvm::VERIFY, ..read(slba, blocks, 0, 0) }
}

#[test]
fn compare_tells_equal_data_from_others() {
    let mut host = Host::with_queue(config());
    let mut data = pattern(4096, 1);
    host.testbed.put(DATA, &data);
    host.io(write(100, 8, DATA, 0)).expect_success();
    log(&mut host);
    host.io(compare(100, 8)).expect_success();
    assert_eq!(log(&mut host), [(1, "read")]);
    host.io(Command { cdw12: 7 | 1 << 30, ..compare(100, 8) }).expect_success();
    assert_eq!(log(&mut host), [(1, "flush"), (1, "read")]);
    data[4095] ^= 1;
    host.testbed.put(DATA, &data);
    host.io(compare(100, 8)).expect_failure(StatusCode::COMPARE_FAILURE);
    host.io(compare(100, 7)).expect_success();
    host.io(compare(8192, 1)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    host.io(compare(0, 257)).expect_failure(StatusCode::INVALID_FIELD);
    host.io(Command { nsid: 3, ..compare(0, 1) }).expect_failure(StatusCode::INVALID_NAMESPACE);
}

#[test]
fn compare_works_with_the_smallest_buffer() {
    let mut host = Host::with_queue(configured(|settings| settings.buffer = 128 << 10));
    let list = DATA + 0x20_0000;
    host.testbed.put_list(list, (1..32).map(page));
    for _ in 0..3 {
        host.put(1, Command { prp2: list, ..compare(0, 256) });
    }
    host.carry_out(1);
    assert!(host.reap(1).iter().all(|done| done.status.is_success()));
    host.testbed.subsystem.check_invariants();
}

#[test]
fn verify_reads_without_a_transfer() {
    let mut host = Host::with_queue(config());
    host.io(verify(0, 8192)).expect_success();
    assert_eq!(log(&mut host).len(), 32, "4 MiB in pieces of 128 KiB");
    host.io(verify(8191, 2)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    for (error, code) in [
        (block::Error::Media, StatusCode::UNRECOVERED_READ_ERROR),
        (block::Error::NotReady, StatusCode::NAMESPACE_NOT_READY),
    ] {
        host.testbed.media.failure = Some(error);
        assert_eq!(host.io(verify(0, 1)).status.code, code);
        assert_eq!(host.io(compare(0, 1)).status.code, code);
    }
}

fn copy(host: &mut Host, to: u64, ranges: &[(u64, u16)], cdw12: u32) -> Completion {
    let range = |(slba, blocks): &(u64, u16)| {
        CopyRange { slba: *slba, last: blocks.wrapping_sub(1), ..Default::default() }.encode()
    };
    let bytes: Vec<u8> = ranges.iter().flat_map(range).collect();
    host.testbed.put(DATA, &bytes);
    let cdw12 = (ranges.len() as u32 - 1) | cdw12;
    host.io(Command { opcode: nvm::COPY, cdw12, ..read(to, 1, DATA, 0) })
}

#[test]
fn copy_puts_ranges_one_after_the_other() {
    let mut host = Host::with_queue(config());
    let blocks = |host: &Host, slba: usize, count: usize| {
        host.testbed.media.namespaces[&1][slba * 512..][..count * 512].to_vec()
    };
    let data = pattern(64 * 512, 3);
    host.testbed.media.namespaces.get_mut(&1).unwrap()[..64 * 512].copy_from_slice(&data);
    assert_eq!(copy(&mut host, 1000, &[(9, 2), (3, 4), (0, 1)], 0).expect_success(), 0);
    let expected = [blocks(&host, 9, 2), blocks(&host, 3, 4), blocks(&host, 0, 1)].concat();
    assert_eq!(blocks(&host, 1000, 7), expected);
    assert_eq!(blocks(&host, 1007, 1), [0; 512]);
    // A destination that overlaps its source.
    copy(&mut host, 2, &[(0, 8)], 0).expect_success();
    assert_eq!(blocks(&host, 2, 8), data[..8 * 512]);
    log(&mut host);
    copy(&mut host, 2, &[(0, 8)], 1 << 30).expect_success();
    assert_eq!(log(&mut host), [(1, "read"), (1, "write"), (1, "flush")]);
}

#[test]
fn copy_checks_everything_before_it_copies() {
    let mut host = Host::with_queue(config());
    use StatusCode as Code;
    let good = (0, 1);
    for (to, second, code) in [
        (0, (8191, 2), Code::LBA_OUT_OF_RANGE),
        (u64::MAX, good, Code::LBA_OUT_OF_RANGE),
        (8191, good, Code::LBA_OUT_OF_RANGE),
        // MSSRL is 256: 128 KiB.
        (0, (0, 257), Code::COMMAND_SIZE_LIMIT_EXCEEDED),
        (0, (0, 0), Code::COMMAND_SIZE_LIMIT_EXCEEDED),
    ] {
        copy(&mut host, to, &[good, second], 0).expect_failure(code);
    }
    // MCL is 4096.
    let most = vec![(0, 256); 16];
    copy(&mut host, 4096, &most, 0).expect_success();
    log(&mut host);
    let exceeded = Code::COMMAND_SIZE_LIMIT_EXCEEDED;
    copy(&mut host, 4096, &[&most[..], &[good]].concat(), 0).expect_failure(exceeded);
    copy(&mut host, 0, &[good; 129], 0).expect_failure(exceeded);
    copy(&mut host, 0, &[good], 1 << 8).expect_failure(Code::INVALID_FIELD);
    host.testbed.subsystem.set_read_only(wire::Instant::ZERO, 1, true);
    copy(&mut host, 0, &[good], 0).expect_failure(Code::WRITE_TO_READ_ONLY_RANGE);
    assert_eq!(log(&mut host), []);
}

#[test]
fn copy_says_which_range_failed() {
    let mut host = Host::with_queue(config());
    for (fails, number, code) in [
        (0, 0, StatusCode::UNRECOVERED_READ_ERROR),
        (1, 0, StatusCode::WRITE_FAULT),
        (4, 2, StatusCode::UNRECOVERED_READ_ERROR),
    ] {
        host.testbed.put(DATA, &[0; 96]);
        host.put(1, Command { opcode: nvm::COPY, cdw12: 2, ..read(99, 1, DATA, 0) });
        host.fetch(1, false);
        let request = host.testbed.reads.pop_front().expect("the ranges are read");
        host.testbed.answer_read(request, false);
        for step in 0.. {
            host.testbed.take_tlps(pcie::Ready::ALL);
            host.testbed.media.failure = (step == fails).then_some(block::Error::Media);
            if !host.testbed.serve_block() {
                break;
            }
        }
        host.testbed.media.failure = None;
        host.testbed.settle();
        let done = host.reap(1)[0];
        assert_eq!((done.status.code, done.result), (code, number));
    }
}
