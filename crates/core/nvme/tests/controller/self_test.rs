//! Device Self-test.

use super::records::{found, power_cycle, start};
use super::*;
use wire::Duration;
use wire::nvme::{SelfTestLog, SelfTestResult, log_page};

fn test(code: u32, nsid: u32) -> Command {
    Command { opcode: opcode::admin::DEVICE_SELF_TEST, nsid, cdw10: code, ..Command::default() }
}

fn log(host: &mut Host) -> SelfTestLog {
    SelfTestLog::decode(&host.log(log_page::SELF_TEST))
}

/// Current operation, completion in percent, and (code, result) of each result.
fn summary(host: &mut Host) -> (u8, u8, Vec<(u8, u8)>) {
    let log = log(host);
    let used = log.results.iter().take_while(|one| **one != SelfTestResult::UNUSED);
    (log.current, log.completion, used.map(|one| (one.code, one.result)).collect())
}

#[test]
fn a_test_takes_its_time_and_leaves_a_result() {
    let mut host = Host::new(config());
    assert_eq!(summary(&mut host), (0, 0, vec![]));
    host.testbed.pass(Duration::from_ms(2 * 3_600_000));
    host.admin(test(1, 2)).expect_success();
    host.testbed.pass(Duration::from_ms(2_500));
    assert_eq!(summary(&mut host), (1, 25, vec![]));
    host.admin(test(2, 0)).expect_failure(StatusCode::SELF_TEST_IN_PROGRESS);
    host.testbed.pass(Duration::from_ms(7_500 + 3_600_000));
    assert_eq!(summary(&mut host), (0, 0, vec![(1, 0)]));
    let expected = SelfTestResult { result: 0, code: 1, valid: 1, hours: 2, nsid: 2 };
    assert_eq!(log(&mut host).results[0], expected);
    host.admin(test(2, u32::MAX)).expect_success();
    host.testbed.pass(Duration::from_ms(59_400));
    assert_eq!(summary(&mut host), (2, 99, vec![(1, 0)]));
    host.testbed.pass(Duration::from_ms(600));
    assert_eq!(summary(&mut host), (0, 0, vec![(2, 0), (1, 0)]));
}

#[test]
fn commands_abort_tests_and_resets_short_ones() {
    let mut host = Host::new(config());
    host.admin(test(0xf, 0)).expect_success();
    assert_eq!(summary(&mut host), (0, 0, vec![]), "nothing to abort");
    host.admin(test(2, 0)).expect_success();
    host.admin(test(0xf, 0)).expect_success();
    assert_eq!(summary(&mut host), (0, 0, vec![(2, 1)]));
    host.admin(test(1, 0)).expect_success();
    host.configure(entry_sizes());
    host.enable(32);
    assert_eq!(summary(&mut host), (0, 0, vec![(1, 2), (2, 1)]));
    host.admin(test(2, 0)).expect_success();
    host.testbed.pass(Duration::from_ms(30_000));
    host.configure(entry_sizes());
    host.enable(32);
    assert_eq!(summary(&mut host).1, 50, "an extended one goes on");
    host.admin(test(0xf, 0)).expect_success();
    for _ in 0..30 {
        host.admin(test(1, 0)).expect_success();
        host.admin(test(0xf, 0)).expect_success();
    }
    assert_eq!(summary(&mut host).2, vec![(1, 1); 20], "the newest 20");
}

#[test]
fn invalid_self_test_codes_are_refused() {
    let mut host = Host::new(config());
    for code in [0, 3, 0xe] {
        host.admin(test(code, 0)).expect_failure(StatusCode::INVALID_FIELD);
    }
    host.admin(test(1, 3)).expect_failure(StatusCode::INVALID_NAMESPACE);
}

#[test]
fn results_and_an_extended_test_outlive_power() {
    let mut host = found(Testbed::with_records(&config()));
    start(&mut host);
    host.admin(test(2, 1)).expect_success();
    host.admin(test(0xf, 0)).expect_success();
    host.admin(test(2, 1)).expect_success();
    let mut host = power_cycle(host);
    start(&mut host);
    assert_eq!(summary(&mut host), (2, 0, vec![(2, 1)]), "it begins again");
    host.testbed.pass(Duration::from_ms(60_000));
    assert_eq!(summary(&mut host), (0, 0, vec![(2, 0), (2, 1)]));
    host.testbed.settle();
    let mut host = power_cycle(host);
    start(&mut host);
    host.testbed.pass(Duration::from_ms(60_000));
    assert_eq!(summary(&mut host), (0, 0, vec![(2, 0), (2, 1)]));
}

#[test]
fn format_delete_and_sanitize_end_a_self_test() {
    use opcode::admin::{FORMAT, NAMESPACE_MANAGEMENT, SANITIZE};
    let command = |opcode, nsid, cdw10| Command { opcode, nsid, cdw10, ..Command::default() };
    let delete = |nsid| command(NAMESPACE_MANAGEMENT, nsid, 1);
    // Figure 203: 3h the namespace was removed, 4h Format NVM, 9h a sanitize operation.
    for (nsid, ends, result) in [
        (1, command(FORMAT, 1, 0), Some(4)),
        (1, command(FORMAT, u32::MAX, 0), Some(4)),
        (u32::MAX, command(FORMAT, 1, 0), Some(4)),
        (1, command(FORMAT, 2, 1), None),
        (0, command(FORMAT, 1, 0), None),
        (1, delete(1), Some(3)),
        (u32::MAX, delete(2), Some(3)),
        (1, delete(2), None),
        (0, delete(1), None),
        (1, command(SANITIZE, 0, 2), Some(9)),
        (u32::MAX, command(SANITIZE, 0, 2), Some(9)),
        (0, command(SANITIZE, 0, 2), Some(9)),
    ] {
        for code in [1, 2] {
            let mut host = found(Testbed::with_records(&config()));
            start(&mut host);
            host.admin(test(code, nsid)).expect_success();
            host.testbed.pass(Duration::from_ms(1_000));
            host.admin(ends).expect_success();
            host.testbed.settle();
            let results: Vec<_> = result.iter().map(|result| (code as u8, *result)).collect();
            let (current, _, found) = summary(&mut host);
            let running = if result.is_none() { code as u8 } else { 0 };
            assert_eq!((current, found), (running, results), "{nsid:#x}, {ends:?}");
            // The record contains the result too.
            let stored = nvme::state::State::decode(&host.testbed.store.records).unwrap();
            assert_eq!(stored.self_tests.extended.is_some(), running == 2);
            assert_eq!(stored.self_tests.results.first().map(|one| one.result), result);
        }
    }
}
