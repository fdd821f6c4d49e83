//! Format NVM.

use super::*;
use nvme::state::State;
use wire::nvme::BROADCAST_NSID;
use wire::nvme::opcode::{admin, nvm};

/// A drive with records and an I/O queue pair.
fn host() -> Host {
    let testbed = Testbed::with_records(&config());
    Host::started(testbed)
}

fn format(nsid: u32, cdw10: u32) -> Command {
    Command { opcode: admin::FORMAT, nsid, cdw10, ..Command::default() }
}

#[test]
fn blocks_get_another_size_and_read_as_zeroes() {
    let mut host = host();
    host.testbed.media.namespaces.get_mut(&1).unwrap().fill(7);
    let before = host.namespace_data(1);
    assert_eq!((before.size, before.formatted, before.lba_formats), (8192, 0, 3));
    host.admin(format(1, 1)).expect_success();
    let after = host.namespace_data(1);
    assert_eq!((after.size, after.formatted, after.lba_format.data_shift), (1024, 1, 12));
    assert_eq!(after.nguid, before.nguid);
    assert!(host.testbed.media.namespaces[&1].iter().all(|byte| *byte == 0));
    // The old data no longer exist, and a loss of power cannot restore them.
    let log = std::mem::take(&mut host.testbed.media.log);
    assert_eq!(log, [(1, "write zeroes"), (1, "discard"), (1, "flush")]);
    host.io(read(1023, 1, DATA, 0)).expect_success();
    host.io(read(1024, 1, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    let state = State::decode(&host.testbed.store.records).unwrap();
    assert_eq!((state.namespaces[&1].blocks, state.namespaces[&1].block_shift), (1024, 12));
    // Format again with the old format and user data erase.
    host.admin(format(1, 1 << 9)).expect_success();
    assert_eq!(host.namespace_data(1), before);
}

#[test]
fn all_namespaces_at_once() {
    let mut host = host();
    host.testbed.media.namespaces.values_mut().for_each(|bytes| bytes.fill(7));
    host.admin(format(BROADCAST_NSID, 1)).expect_success();
    assert_eq!([host.namespace_data(1).size, host.namespace_data(2).size], [1024, 256]);
    assert!(host.testbed.media.namespaces.values().flatten().all(|byte| *byte == 0));
}

#[test]
fn unsupported_formats_are_refused() {
    let mut host = host();
    for (cdw10, code) in [
        (4, StatusCode::INVALID_FORMAT),
        (15, StatusCode::INVALID_FORMAT),
        // LBAFU, the upper bits of the format in NVMe 2.0.
        (1 << 12, StatusCode::INVALID_FORMAT),
        // Protection information without metadata.
        (1 << 5, StatusCode::INVALID_FORMAT),
        // A reserved type of protection.
        (2 | 4 << 5, StatusCode::INVALID_FORMAT),
        // Cryptographic erase, and a reserved erase.
        (2 << 9, StatusCode::INVALID_FIELD),
        (3 << 9, StatusCode::INVALID_FIELD),
    ] {
        host.admin(format(1, cdw10)).expect_failure(code);
    }
    host.admin(format(0, 0)).expect_failure(StatusCode::INVALID_NAMESPACE);
    host.admin(format(3, 0)).expect_failure(StatusCode::INVALID_NAMESPACE);
    let now = host.testbed.now;
    host.testbed.subsystem.set_read_only(now, 1, true);
    host.admin(format(1, 0)).expect_failure(StatusCode::WRITE_TO_READ_ONLY_RANGE);
    assert_eq!(host.testbed.media.log, []);
    // A drive without records cannot store a format.
    Host::new(config()).admin(format(1, 0)).expect_failure(StatusCode::INVALID_OPCODE);
}

/// Executes everything except media requests.
fn store(host: &mut Host) {
    for _ in 0..8 {
        host.testbed.take_tlps(pcie::Ready::ALL);
        while let Some(request) = host.testbed.reads.pop_front() {
            host.testbed.answer_read(request, false);
        }
        host.testbed.serve_store();
    }
}

#[test]
fn format_runs_only_without_other_commands() {
    let mut host = host();
    host.put(1, write(0, 1, DATA, 0));
    host.ring(1);
    store(&mut host);
    assert_eq!(host.testbed.blocks.len(), 1, "a write is under way");
    host.put(0, format(1, 1));
    host.ring(0);
    store(&mut host);
    let refused = host.reap(0)[0].status;
    let sequence = StatusCode::COMMAND_SEQUENCE_ERROR;
    assert_eq!((refused.code, refused.do_not_retry), (sequence, false));
    host.testbed.settle();
    assert!(host.reap(1)[0].status.is_success());

    host.put(0, format(1, 1));
    host.ring(0);
    store(&mut host);
    assert_eq!(host.testbed.blocks.len(), 1, "the blocks are being deallocated");
    // Another Format NVM fails, and does not end the first.
    host.put(0, format(1, 0));
    host.ring(0);
    store(&mut host);
    host.testbed.put(DATA, &[0; 32]);
    let opcodes = [nvm::READ, nvm::WRITE, nvm::COMPARE, nvm::WRITE_ZEROES, nvm::VERIFY];
    let hint = [nvm::DATASET_MANAGEMENT, nvm::COPY];
    for opcode in opcodes.into_iter().chain(hint) {
        host.put(1, Command { opcode, cdw12: 0, ..read(0, 1, DATA, 0) });
    }
    host.ring(1);
    store(&mut host);
    let code = StatusCode::FORMAT_IN_PROGRESS;
    let done = [host.reap(0), host.reap(1)].concat();
    assert_eq!(done.len(), 8);
    for done in done {
        assert_eq!((done.status.code, done.status.do_not_retry), (code, false));
    }
    host.testbed.settle();
    assert!(host.reap(0)[0].status.is_success());
    host.io(read(0, 1, DATA, 0)).expect_success();
}

#[test]
fn reset_or_failure_ends_format() {
    let mut host = host();
    host.testbed.media.failure = Some(block::Error::Media);
    let failed = host.admin(format(1, 1)).status.code;
    assert_eq!(failed, StatusCode::WRITE_FAULT);
    host.testbed.media.failure = None;
    host.io(read(0, 1, DATA, 0)).expect_success();
    host.put(0, format(1, 0));
    host.ring(0);
    store(&mut host);
    host.configure(entry_sizes());
    host.testbed.settle();
    host.start();
    host.io(read(0, 1, DATA, 0)).expect_success();
    assert_eq!(host.namespace_data(1).size, 8192);
    // A format whose record cannot be stored.
    host.testbed.store.failure = Some(block::Error::NoSpace);
    let failed = host.admin(format(1, 1)).status.code;
    assert_eq!(failed, StatusCode::INTERNAL_ERROR);
    host.testbed.store.failure = None;
    assert_eq!(host.namespace_data(1).size, 8192);
    host.io(read(0, 1, DATA, 0)).expect_success();
}

#[test]
fn effects_log_of_format_requires_exclusion_and_rescan() {
    let mut host = host();
    let effects = host.effects();
    // CSUPP, LBCC, NCC; CSE 001b.
    assert_eq!(effects.admin[usize::from(admin::FORMAT)].bits(), 0x1_0007);
}
