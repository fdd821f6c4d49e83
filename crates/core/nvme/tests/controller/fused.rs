//! Fused operations: Compare and Write.

use super::*;
use pcie::Ready;
use testkit::nvme::Media;
use wire::nvme::opcode::nvm;
use wire::nvme::register::{Configuration, ShutdownNotice, ShutdownStatus};

const SUCCESS: StatusCode = StatusCode::SUCCESS;
const MISSING: StatusCode = StatusCode::ABORTED_MISSING_FUSED;
const FAILED: StatusCode = StatusCode::ABORTED_FAILED_FUSED;

/// Addresses of the expected data of Compare and of the data of Write.
const EXPECTED: u64 = DATA;
const WRITTEN: u64 = DATA + 0x10_0000;

/// Compare and Write of up to 8 blocks.
fn pair(slba: u64, blocks: u32) -> [Command; 2] {
    let compare = Command { opcode: nvm::COMPARE, fuse: 1, ..read(slba, blocks, EXPECTED, 0) };
    [compare, Command { fuse: 2, ..write(slba, blocks, WRITTEN, 0) }]
}

/// A host whose expected data are zeroes, and whose written data are bytes of 1.
fn host_with(config: Config) -> Host {
    let mut host = Host::with_queue(config);
    host.testbed.put(WRITTEN, &[1; 128 << 10]);
    host
}

/// Puts commands in a queue and returns their identifiers.
fn put<const N: usize>(host: &mut Host, queue: u16, commands: [Command; N]) -> [u16; N] {
    commands.map(|command| host.put(queue, command))
}

/// Executes commands in queue 1; returns their statuses in the same order.
fn run<const N: usize>(host: &mut Host, commands: [Command; N]) -> [StatusCode; N] {
    let cids = put(host, 1, commands);
    host.carry_out(1);
    codes(host, cids)
}

fn codes<const N: usize>(host: &mut Host, cids: [u16; N]) -> [StatusCode; N] {
    let done = host.reap(1);
    assert_eq!(done.len(), N, "{done:?}");
    host.testbed.subsystem.check_invariants();
    cids.map(|cid| done.iter().find(|one| one.cid == cid).expect("a completion").status.code)
}

fn block(media: &Media, slba: usize) -> u8 {
    media.namespaces[&1][slba * 512]
}

#[test]
fn blocks_are_compared_and_written() {
    let mut host = host_with(config());
    assert_eq!(run(&mut host, pair(8, 8)), [SUCCESS, SUCCESS]);
    assert_eq!(host.testbed.media.log, [(1, "read"), (1, "write")]);
    assert_eq!(host.testbed.media.namespaces[&1][4096..8192], [1; 4096]);
    // The blocks now differ from the expected data.
    host.testbed.put(WRITTEN, &[2; 4096]);
    assert_eq!(run(&mut host, pair(8, 8)), [StatusCode::COMPARE_FAILURE, FAILED]);
    assert_eq!(host.testbed.media.namespaces[&1][4096..8192], [1; 4096]);
    // The completions have the order of the commands. Both commands have FUA.
    let [compare, write] = pair(0, 1).map(|one| Command { cdw12: 1 << 30, ..one });
    host.testbed.media.log.clear();
    let cids = put(&mut host, 1, [compare, write]);
    host.carry_out(1);
    assert_eq!(host.reap(1).iter().map(|done| done.cid).collect::<Vec<_>>(), cids);
    let log = [(1, "flush"), (1, "read"), (1, "write"), (1, "flush")];
    assert_eq!(host.testbed.media.log, log);
}

#[test]
fn identify_says_how_large_a_pair_may_be() {
    for (commands, expected) in [(2, (1, 31)), (1, (0, 0))] {
        let mut host = host_with(configured(|settings| settings.commands = commands));
        let identify = host.controller_data();
        // 128 KiB in blocks of 4 KiB, 0's based.
        assert_eq!((identify.fused, identify.atomic_compare_and_write), expected);
        host.testbed.put(DATA, &[0; 4096]);
        let invalid = [StatusCode::INVALID_FIELD; 2];
        let codes = if commands == 2 { [SUCCESS; 2] } else { invalid };
        assert_eq!(run(&mut host, pair(0, 1)), codes);
    }
}

#[test]
fn a_pair_is_put_together_however_it_arrives() {
    // Fetch entry by entry around the end of the queue, and all entries at once.
    for batch in [1, 16] {
        let mut host = host_with(configured(|settings| settings.fetch_batch = batch));
        for slba in 0..17 {
            let [compare, write] = pair(slba, 1);
            let first = host.put(1, compare);
            if slba % 2 == 0 {
                host.carry_out(1);
                assert_eq!(host.reap(1), [], "it waits");
                host.testbed.subsystem.check_invariants();
            }
            let second = host.put(1, write);
            host.carry_out(1);
            assert_eq!(codes(&mut host, [first, second]), [SUCCESS; 2]);
            assert_eq!(block(&host.testbed.media, slba as usize), 1);
        }
        let [one, two] = pair(100, 1);
        let [three, four] = pair(101, 1);
        assert_eq!(run(&mut host, [flush(1), one, two, three, four]), [SUCCESS; 5]);
    }
}

#[test]
fn commands_that_form_no_fused_pair_fail() {
    let mut host = host_with(config());
    let [compare, write] = pair(0, 1);
    let invalid = StatusCode::INVALID_FIELD;
    assert_eq!(run(&mut host, [compare, flush(1)]), [MISSING, SUCCESS]);
    assert_eq!(run(&mut host, [compare, compare, write]), [MISSING, SUCCESS, SUCCESS]);
    host.testbed.media.namespaces.get_mut(&1).unwrap().fill(0);
    assert_eq!(run(&mut host, [write, flush(1)]), [MISSING, SUCCESS]);
    assert_eq!(run(&mut host, [Command { fuse: 1, ..flush(1) }]), [invalid]);
    let reserved = Command { fuse: 3, ..flush(1) };
    assert_eq!(run(&mut host, [compare, reserved, write]), [MISSING, invalid, MISSING]);
    let other = |command, opcode| Command { opcode, ..command };
    assert_eq!(run(&mut host, [other(compare, nvm::READ), write]), [invalid, MISSING]);
    assert_eq!(run(&mut host, [compare, other(write, nvm::WRITE_ZEROES)]), [FAILED, invalid]);
    for write in [
        Command { cdw10: 1, ..write },
        Command { cdw11: 1, ..write },
        Command { cdw12: 1, ..write },
        Command { nsid: 2, ..write },
    ] {
        assert_eq!(run(&mut host, [compare, write]), [invalid, invalid], "{write:?}");
    }
    let beyond = pair(8192, 1);
    assert_eq!(run(&mut host, beyond), [StatusCode::LBA_OUT_OF_RANGE; 2]);
    assert_eq!(
        run(&mut host, [compare, Command { prp1: 3, ..write }]),
        [FAILED, StatusCode::INVALID_PRP_OFFSET]
    );
    assert_eq!(host.testbed.media.log, [(1, "flush"), (1, "read"), (1, "write"), (1, "flush")]);
    host.admin(Command { fuse: 1, ..get_feature(1, 0) }).expect_failure(invalid);
    // The error log entry has the place of the fault: FUSE, and SLBA.
    let last = host.last_error();
    assert_eq!((last.status.code, last.parameter, last.sq_id), (invalid, 1, 0));
    run(&mut host, [compare, Command { cdw10: 1, ..write }]);
    assert_eq!(host.last_error().parameter, 40);
}

#[test]
fn media_and_memory_that_fail_end_both() {
    use StatusCode as Code;
    let nowhere = 0x5000_0000;
    let mut host = host_with(config());
    let [compare, write] = pair(0, 8);
    for (pair, expected) in [
        ([Command { prp1: nowhere, ..compare }, write], [Code::DATA_TRANSFER_ERROR, FAILED]),
        ([compare, Command { prp1: nowhere, ..write }], [FAILED, Code::DATA_TRANSFER_ERROR]),
    ] {
        assert_eq!(run(&mut host, pair), expected);
    }
    assert_eq!(host.testbed.media.log, [], "nothing begins without the data of both");
    // A failed comparison aborts the write. A failed write leaves the Compare successful.
    for (fails, expected) in
        [(0, [Code::UNRECOVERED_READ_ERROR, FAILED]), (1, [Code::SUCCESS, Code::WRITE_FAULT])]
    {
        let cids = put(&mut host, 1, [compare, write]);
        start(&mut host, 1);
        for step in 0..2 {
            host.testbed.media.failure = (step == fails).then_some(block::Error::Media);
            host.testbed.serve_block();
            host.testbed.take_tlps(Ready::ALL);
        }
        host.testbed.media.failure = None;
        host.testbed.settle();
        assert_eq!(codes(&mut host, cids), expected);
    }
}

/// Rings the doorbell, and answers all reads of host memory. No media request is answered.
fn start(host: &mut Host, queue: u16) {
    host.ring(queue);
    host.testbed.take_tlps(Ready::ALL);
    while let Some(read) = host.testbed.reads.pop_front() {
        host.testbed.answer_read(read, false);
        host.testbed.take_tlps(Ready::ALL);
    }
}

/// The outstanding media requests: operation and LBA.
fn begun(host: &Host) -> Vec<(&'static str, u64)> {
    let one = |request: &block::Request| match &request.operation {
        block::Operation::Read { offset, .. } => ("read", *offset / 512),
        block::Operation::Write { offset, .. } => ("write", *offset / 512),
        block::Operation::Discard { offset, .. } => ("discard", *offset / 512),
        _ => ("other", 0),
    };
    host.testbed.blocks.iter().map(one).collect()
}

/// Executes the oldest media request.
fn serve(host: &mut Host) {
    assert!(host.testbed.serve_block());
    host.testbed.take_tlps(Ready::ALL);
}

#[test]
fn nothing_comes_between_the_comparison_and_the_write() {
    let mut host = host_with(config());
    host.create(2, 16);
    let old = host.put(2, write(7, 2, DATA, 0));
    start(&mut host, 2);
    put(&mut host, 1, pair(8, 4));
    start(&mut host, 1);
    assert_eq!(begun(&host), [("write", 7)], "an older write ends first");
    // Later commands wait, unless they are for other blocks or another namespace.
    put(&mut host, 2, [write(11, 1, DATA, 0), read(8, 1, DATA + 0x8000, 0), write(12, 1, DATA, 0)]);
    put(&mut host, 2, [Command { nsid: 2, ..write(1, 1, DATA, 0) }]);
    // Another pair for the same blocks.
    put(&mut host, 2, pair(10, 4));
    start(&mut host, 2);
    assert_eq!(begun(&host), [("write", 7), ("write", 12), ("write", 8)]);
    serve(&mut host);
    assert_eq!(begun(&host), [("write", 12), ("write", 8), ("read", 8)]);
    serve(&mut host);
    serve(&mut host);
    serve(&mut host);
    assert_eq!(begun(&host), [("write", 8)], "equal: the write of the pair");
    assert!(host.reap(2).iter().any(|done| done.cid == old));
    serve(&mut host);
    // The other pair has held its blocks since before the write of block 11.
    assert_eq!(begun(&host), [("read", 8), ("read", 10)]);
    serve(&mut host);
    serve(&mut host);
    assert_eq!(begun(&host), [("write", 11)], "they are not equal any more");
    host.testbed.settle();
    assert_eq!((host.reap(1).len(), host.reap(2).len()), (2, 4));
}

#[test]
fn a_pair_is_atomic_for_other_controllers_too() {
    let mut testbed = Testbed::enumerated(config(), true);
    let second = testbed.beside();
    let mut one = Host::over(testbed);
    let mut other = Host::over(second);
    one.enable(32);
    one.create(1, 16);
    one.testbed.put(WRITTEN, &[1; 4096]);
    put(&mut one, 1, pair(8, 4));
    start(&mut one, 1);
    serve(&mut one);
    assert_eq!(begun(&one), [("write", 8)]);
    one.testbed.swap_drive(&mut other.testbed);
    other.testbed.enumerate(true);
    other.enable(32);
    let pending = std::mem::take(&mut other.testbed.blocks);
    other.create(1, 16);
    other.testbed.put(DATA, &[2; 512]);
    put(&mut other, 1, [write(8, 1, DATA, 0), write(12, 1, DATA, 0)]);
    start(&mut other, 1);
    assert_eq!(begun(&other), [("write", 12)]);
    serve(&mut other);
    // A reset of the first controller: the media still write for it.
    one.testbed.swap_drive(&mut other.testbed);
    one.testbed.blocks = pending;
    one.configure(entry_sizes());
    assert_eq!(begun(&one), [("write", 8)]);
    serve(&mut one);
    assert_eq!(begun(&one), [("write", 8)], "that of the other one");
    assert_eq!(block(&one.testbed.media, 8), 1);
    one.testbed.swap_drive(&mut other.testbed);
    other.testbed.settle();
    assert_eq!(other.reap(1).len(), 2);
    assert_eq!([8, 9, 11].map(|slba| block(&other.testbed.media, slba)), [2, 1, 1]);
}

#[test]
fn a_reset_between_the_two_leaves_the_blocks() {
    let mut host = host_with(config());
    put(&mut host, 1, pair(8, 4));
    start(&mut host, 1);
    host.configure(entry_sizes());
    host.testbed.settle();
    assert_eq!(host.testbed.media.log, [(1, "read")]);
    host.enable(32);
    host.create(1, 16);
    assert_eq!(run(&mut host, pair(8, 4)), [SUCCESS; 2], "nobody holds the blocks");
}

#[test]
fn a_first_command_that_waits_can_be_aborted() {
    let mut host = host_with(config());
    let [compare, write] = pair(0, 1);
    let cid = host.put(1, compare);
    host.carry_out(1);
    let abort = |cid: u16| abort(1, cid);
    assert_eq!(host.admin(abort(cid)).expect_success(), 0);
    assert_eq!(codes(&mut host, [cid]), [StatusCode::ABORT_REQUESTED]);
    assert_eq!(host.admin(abort(cid)).expect_success(), 1);
    assert_eq!(run(&mut host, [write]), [MISSING]);
    // Abort the first command while the second is being fetched.
    let cids = put(&mut host, 1, [compare]);
    host.fetch(1, false);
    let second = host.put(1, write);
    host.ring(1);
    host.testbed.take_tlps(Ready::ALL);
    let batch = host.testbed.reads.pop_front().expect("a fetch");
    assert_eq!(host.admin(abort(cids[0])).expect_success(), 0);
    host.testbed.answer_read(batch, false);
    host.testbed.settle();
    assert_eq!(codes(&mut host, [cids[0], second]), [StatusCode::ABORT_REQUESTED, MISSING]);
    // Abort both commands of a pair that waits for the buffer.
    let mut host = host_with(configured(|settings| settings.buffer = 128 << 10));
    host.testbed.put_list(DATA + 0x20_0000, (1..32).map(page));
    host.put(1, super::read(0, 256, DATA, DATA + 0x20_0000));
    let [first, second] = put(&mut host, 1, pair(0, 1));
    start(&mut host, 1);
    let blocks = std::mem::take(&mut host.testbed.blocks);
    assert_eq!(host.admin(abort(first)).expect_success(), 0);
    host.testbed.blocks = blocks;
    assert_eq!(codes(&mut host, [first, second]), [StatusCode::ABORT_REQUESTED, FAILED]);
}

#[test]
fn a_first_command_that_waits_holds_up_nothing() {
    let mut host = host_with(configured(|settings| settings.commands = 2));
    host.create(2, 16);
    host.create(3, 2);
    let first = [host.put(1, pair(0, 1)[0]), host.put(2, pair(1, 1)[0])];
    host.carry_out(1);
    host.carry_out(2);
    // Queue 3 has room for one completion.
    host.execute(3, flush(1)).expect_success();
    let done = host.execute(3, pair(2, 1)[0]);
    assert_eq!(done.status.code, MISSING, "there is no room for the second");
    host.execute(3, flush(1)).expect_success();
    // A shutdown and the deletion of a queue do not wait for a missing second command.
    host.admin(delete(opcode::admin::DELETE_SQ, 2)).expect_success();
    assert_eq!(host.reap(2), []);
    let second = host.put(1, pair(0, 1)[1]);
    host.carry_out(1);
    assert_eq!(codes(&mut host, [first[0], second]), [SUCCESS; 2]);
    host.put(1, pair(0, 1)[0]);
    host.carry_out(1);
    let shutdown = ShutdownNotice::Normal;
    host.configure(Configuration { enable: true, shutdown, ..entry_sizes() });
    host.testbed.settle();
    assert_eq!(host.status().shutdown, ShutdownStatus::Complete);
    assert!(host.testbed.subsystem.is_drained());
}

#[test]
fn a_queue_is_deleted_while_the_second_command_is_on_its_way() {
    let mut host = host_with(configured(|settings| settings.fetch_batch = 1));
    let cids = put(&mut host, 1, pair(0, 1));
    host.ring(1);
    host.testbed.take_tlps(Ready::ALL);
    let first = host.testbed.reads.pop_front().unwrap();
    let second = host.testbed.reads.pop_front().unwrap();
    host.testbed.answer_read(first, false);
    host.put(0, delete(opcode::admin::DELETE_SQ, 1));
    host.fetch(0, false);
    host.testbed.answer_read(second, false);
    host.testbed.settle();
    assert_eq!(codes(&mut host, cids), [StatusCode::ABORTED_SQ_DELETION; 2]);
    host.reap(0)[0].expect_success();
}
