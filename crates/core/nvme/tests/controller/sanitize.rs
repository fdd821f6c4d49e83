//! Sanitize operations.

use super::*;
use nvme::state::{SanitizePhase, State};
use pcie::Ready;
use wire::nvme::{AsyncEvent, SanitizeStatus, log_page, opcode::admin, sanitize_status};

const BLOCK_ERASE: u32 = 2;
const OVERWRITE: u32 = 3;
const UNRESTRICTED: u32 = 1 << 3;
const NO_DEALLOCATE: u32 = 1 << 9;

/// A drive with records and with data in both namespaces.
fn host() -> Host {
    let testbed = Testbed::with_records(&config());
    let mut host = Host::started(testbed);
    for bytes in host.testbed.media.namespaces.values_mut() {
        bytes.fill(0xda);
    }
    host
}

fn sanitize(cdw10: u32, pattern: u32) -> Command {
    Command { opcode: admin::SANITIZE, cdw10, cdw11: pattern, ..Command::default() }
}

/// Begins an operation. No media request is answered yet.
fn begin(host: &mut Host, cdw10: u32, pattern: u32) {
    host.put(0, sanitize(cdw10, pattern));
    host.fetch(0, false);
    while host.testbed.serve_store() {
        host.testbed.take_tlps(Ready::ALL);
    }
    host.reap(0)[0].expect_success();
}

/// Executes an admin command while no media request is answered.
fn admin_meanwhile(host: &mut Host, command: Command) -> Completion {
    let blocks = std::mem::take(&mut host.testbed.blocks);
    let done = host.admin(command);
    host.testbed.blocks = blocks;
    done
}

fn log(host: &mut Host) -> SanitizeStatus {
    admin_meanwhile(host, get_log(log_page::SANITIZE, 512, DATA)).expect_success();
    SanitizeStatus::decode(&host.testbed.load(DATA, 512).unwrap().try_into().unwrap())
}

/// The double word that fills each namespace.
fn words(host: &Host) -> Vec<u32> {
    let words = |bytes: &Vec<u8>| {
        let words: Vec<u32> =
            bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert!(words.iter().all(|word| *word == words[0]));
        words[0]
    };
    host.testbed.media.namespaces.values().map(words).collect()
}

#[test]
fn identify_reports_sanitize_capabilities() {
    let mut host = host();
    // SANICAP: BES and OWS, no CES; NODMMAS 01b (figure 247).
    assert_eq!(host.controller_data().sanitize, 0x4000_0006);
    let never = log(&mut host);
    assert_eq!((never.progress, never.status), (0xffff, sanitize_status::NEVER));
    assert_eq!(never.estimates, [[0xff; 4]; 6]);
}

#[test]
fn a_block_erase_leaves_zeroes() {
    let mut host = host();
    host.admin(sanitize(BLOCK_ERASE, 0)).expect_success();
    host.testbed.settle();
    assert_eq!(words(&host), [0, 0]);
    let done = log(&mut host);
    assert_eq!((done.progress, done.status, done.passes), (0xffff, sanitize_status::COMPLETED, 0));
    assert_eq!(done.command, BLOCK_ERASE);
    let log = &host.testbed.media.log;
    let names = ["write zeroes", "write zeroes", "discard", "discard", "flush", "flush"];
    assert_eq!(log.iter().map(|(_, name)| *name).collect::<Vec<_>>(), names);
    host.io(read(0, 8, DATA, 0)).expect_success();
}

#[test]
fn an_overwrite_leaves_its_last_pattern_unless_it_deallocates() {
    let invert = 1 << 8;
    for (cdw10, passes, expected) in [
        (OVERWRITE | 1 << 4 | NO_DEALLOCATE, 1, 0x1234_5678),
        (OVERWRITE | 2 << 4 | NO_DEALLOCATE | invert, 2, !0x1234_5678),
        (OVERWRITE | 3 << 4 | NO_DEALLOCATE | invert, 3, 0x1234_5678),
        (OVERWRITE | NO_DEALLOCATE, 16, 0x1234_5678),
        (OVERWRITE | 1 << 4, 1, 0),
    ] {
        let mut host = host();
        host.admin(sanitize(cdw10, 0x1234_5678)).expect_success();
        host.testbed.settle();
        assert_eq!(words(&host), [expected; 2], "{cdw10:#x}");
        assert_eq!(log(&mut host).passes, passes);
        // 4 MiB and 1 MiB, 128 KiB at a time.
        let writes = host.testbed.media.log.iter().filter(|(_, name)| *name == "write");
        assert_eq!(writes.count(), usize::from(passes) * (32 + 8));
    }
}

#[test]
fn sanitize_progress_and_completion_are_reported() {
    let mut host = host();
    host.request_event();
    begin(&mut host, OVERWRITE | 1 << 4 | NO_DEALLOCATE, 0);
    assert_eq!((log(&mut host).progress, log(&mut host).status), (0, 2));
    for _ in 0..10 {
        assert!(host.testbed.serve_block());
        host.testbed.take_tlps(Ready::ALL);
    }
    // 10 of 40 requests of the same size are complete.
    assert_eq!(log(&mut host).progress, 0x4000);
    assert_eq!(host.reap(0), []);
    host.testbed.settle();
    let events = host.reap(0);
    // Type 6, information 1, log page 81h (figures 146 and 150).
    assert_eq!(events.iter().map(|one| one.result).collect::<Vec<_>>(), [0x0081_0106]);
    assert_eq!(AsyncEvent::from_bits(events[0].result), AsyncEvent::SANITIZE_COMPLETED);
}

#[test]
fn few_commands_are_allowed_during_sanitize() {
    let mut host = host();
    // A command with an outstanding media request is aborted when the request ends.
    let cid = host.put(1, read(0, 8, DATA, 0));
    host.fetch(1, false);
    begin(&mut host, BLOCK_ERASE, 0);
    host.put(1, write(0, 1, DATA, 0));
    host.fetch(1, false);
    let busy = StatusCode::SANITIZE_IN_PROGRESS;
    let command = |opcode, cdw10| Command { opcode, cdw10, prp1: DATA, ..Command::default() };
    for (command, code) in [
        (command(admin::NAMESPACE_MANAGEMENT, 1), busy),
        (command(admin::NAMESPACE_ATTACHMENT, 1), busy),
        (command(admin::GET_LOG_PAGE, log_page::EFFECTS.into()), busy),
        (sanitize(BLOCK_ERASE, 0), busy),
        (command(admin::GET_LOG_PAGE, log_page::SMART.into()), StatusCode::SUCCESS),
        (command(admin::IDENTIFY, 1), StatusCode::SUCCESS),
        (get_feature(feature::ARBITRATION, 0), StatusCode::SUCCESS),
    ] {
        let done = admin_meanwhile(&mut host, command);
        assert_eq!(done.status.code, code, "{command:?}");
        assert!(!done.status.do_not_retry, "it may succeed later");
    }
    host.testbed.settle();
    let done = host.reap(1);
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|one| one.status.code == busy), "{done:?}");
    assert!(done.iter().any(|one| one.cid == cid));
    // Earlier requests to the media finish first.
    let first = host.testbed.media.log[0];
    assert_eq!(first, (1, "read"));
    assert_eq!(words(&host), [0, 0]);
}

#[test]
fn sanitize_continues_after_resets_and_power_cycle() {
    let mut host = host();
    begin(&mut host, OVERWRITE | 1 << 4 | NO_DEALLOCATE, 7);
    host.testbed.serve_block();
    host.configure(entry_sizes());
    host.testbed.hot_reset();
    host.testbed.enumerate(true);
    host.enable(32);
    while host.testbed.serve_store() {
        host.testbed.take_tlps(Ready::ALL);
    }
    assert_eq!(log(&mut host).status, sanitize_status::IN_PROGRESS);
    assert_eq!(
        State::decode(&host.testbed.store.records).unwrap().sanitize.unwrap().command,
        0x213
    );
    host.testbed.power_cycle(&config().settings);
    host.testbed.enumerate(true);
    host.testbed.settle();
    host.start();
    assert_eq!(words(&host), [7, 7]);
    assert_eq!(log(&mut host).status, sanitize_status::COMPLETED);
    host.testbed.power_cycle(&config().settings);
    host.testbed.enumerate(true);
    host.start();
    assert_eq!(log(&mut host).status, sanitize_status::COMPLETED, "it is done once");
    host.io(read(0, 8, DATA, 0)).expect_success();
}

/// Executes an operation whose media requests fail.
fn fail(host: &mut Host, cdw10: u32) {
    host.testbed.media.failure = Some(block::Error::Media);
    host.admin(sanitize(cdw10, 0)).expect_success();
    host.testbed.settle();
    host.testbed.media.failure = None;
    assert_eq!(log(host).status, sanitize_status::FAILED);
    host.io(read(0, 8, DATA, 0)).expect_failure(StatusCode::SANITIZE_FAILED);
}

#[test]
fn a_failure_without_restriction_can_be_left() {
    let mut host = host();
    host.admin(sanitize(1, 0)).expect_success();
    fail(&mut host, BLOCK_ERASE | UNRESTRICTED);
    host.testbed.power_cycle(&config().settings);
    host.testbed.enumerate(true);
    host.start();
    host.io(read(0, 8, DATA, 0)).expect_failure(StatusCode::SANITIZE_FAILED);
    host.admin(sanitize(1, 0)).expect_success();
    host.io(read(0, 8, DATA, 0)).expect_success();
    assert_eq!(log(&mut host).status, sanitize_status::FAILED, "of the most recent one");
    let phase = host.testbed.subsystem.state().sanitize.unwrap().phase;
    assert_eq!(phase, SanitizePhase::Left);
}

#[test]
fn a_restricted_failure_needs_another_restricted_operation() {
    let mut host = host();
    fail(&mut host, BLOCK_ERASE);
    for cdw10 in [1, BLOCK_ERASE | UNRESTRICTED] {
        host.admin(sanitize(cdw10, 0)).expect_failure(StatusCode::SANITIZE_FAILED);
    }
    host.admin(sanitize(BLOCK_ERASE, 0)).expect_success();
    host.testbed.settle();
    host.io(read(0, 8, DATA, 0)).expect_success();
}

#[test]
fn operations_that_are_not_offered_are_refused() {
    let mut host = host();
    for action in [0, 4, 5, 7] {
        host.admin(sanitize(action, 0)).expect_failure(StatusCode::INVALID_FIELD);
    }
    let now = host.testbed.now;
    host.testbed.subsystem.set_read_only(now, 2, true);
    let refused = host.admin(sanitize(BLOCK_ERASE, 0));
    refused.expect_failure(StatusCode::WRITE_TO_READ_ONLY_RANGE);
    host.testbed.subsystem.set_read_only(now, 2, false);
    host.testbed.store.failure = Some(block::Error::NoSpace);
    let refused = host.admin(sanitize(BLOCK_ERASE, 0));
    assert_eq!(refused.status.code, StatusCode::INTERNAL_ERROR);
    assert_eq!(words(&host), [0xdada_dada; 2]);
    let mut without = Host::new(config());
    without.admin(sanitize(BLOCK_ERASE, 0)).expect_failure(StatusCode::INVALID_OPCODE);
}
