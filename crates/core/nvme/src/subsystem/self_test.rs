//! Device self-tests (NVMe 1.4, sections 5.8 and 8.11): one at a time in the subsystem (DSTO bit
//! 0).
//!
//! A self-test could find no faults that reads and writes do not find. So a test only takes time
//! and ends without error. There is no timer: the next query ends a test whose time has passed.

use super::{Change, NamespaceChange, Shared};
use crate::failure::Failure;
use crate::state::{ExtendedTest, MAX_RESULTS, SanitizePhase, SelfTests, TestResult};
use wire::nvme::{BROADCAST_NSID, SelfTestLog, SelfTestResult, StatusCode};
use wire::{Duration, Instant};

/// Duration of a short test: at most two minutes (section 8.11.1).
const SHORT: Duration = Duration::from_ms(10_000);
/// EDSTT: duration of an extended test, in minutes.
pub(crate) const EXTENDED_MINUTES: u16 = 1;
const EXTENDED: Duration = Duration::from_ms(EXTENDED_MINUTES as u64 * 60_000);

/// Result of a test without error (figure 203).
const PASSED: u8 = 0;
/// Aborted by a Device Self-test command.
const ABORTED: u8 = 1;
/// Aborted by a controller level reset.
const RESET: u8 = 2;
/// Aborted because the namespace was removed.
const REMOVED: u8 = 3;
/// Aborted by Format NVM.
const FORMATTED: u8 = 4;
/// Aborted by a sanitize operation.
const SANITIZED: u8 = 9;

/// A test under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    extended: bool,
    controller: u16,
    nsid: u32,
    since: Instant,
}

/// The test under way and the results.
#[derive(Debug)]
pub(crate) struct Tests {
    running: Option<Running>,
    /// Results, newest first.
    results: Vec<TestResult>,
}

impl Tests {
    /// The tests after a power-on at `now`, which restarts an extended test.
    pub(crate) fn new(now: Instant, state: SelfTests) -> Self {
        let SelfTests { extended, results } = state;
        let running = extended.map(|ExtendedTest { controller, nsid }| Running {
            extended: true,
            controller,
            nsid,
            since: now,
        });
        Self { running, results }
    }

    /// The persistent state: the results, and an extended test under way.
    pub(crate) fn state(&self) -> SelfTests {
        let extended = self.running.filter(|test| test.extended);
        let extended =
            extended.map(|test| ExtendedTest { controller: test.controller, nsid: test.nsid });
        SelfTests { extended, results: self.results.clone() }
    }
}

impl Shared {
    /// Starts a test by a controller: of namespace `nsid`, of all namespaces (FFFFFFFFh), or of
    /// none (0).
    pub(crate) fn start_test(
        &mut self,
        now: Instant,
        controller: u16,
        nsid: u32,
        extended: bool,
    ) -> Result<(), Failure> {
        self.note_test(now);
        if self.tests.running.is_some() {
            return Err(Failure::permanent(StatusCode::SELF_TEST_IN_PROGRESS));
        }
        self.tests.running = Some(Running { extended, controller, nsid, since: now });
        self.store_tests();
        Ok(())
    }

    /// Aborts the test under way, if any, for a Device Self-test command.
    pub(crate) fn abort_test(&mut self, now: Instant) {
        self.note_test(now);
        self.end_test(now, now, ABORTED);
    }

    /// Ends a short test of a controller that was reset.
    pub(crate) fn reset_test(&mut self, now: Instant, controller: u16) {
        self.note_test(now);
        if self.tests.running.is_some_and(|one| !one.extended && one.controller == controller) {
            self.end_test(now, now, RESET);
        }
    }

    /// Ends a test of namespaces that a stored change affects (section 8.11).
    pub(super) fn end_test_by(&mut self, now: Instant, change: &Change) {
        let (nsids, result) = match change {
            Change::Namespaces { change: NamespaceChange::Delete(nsids), .. } => (nsids, REMOVED),
            Change::Namespaces { change: NamespaceChange::Format { nsids, .. }, .. } => {
                (nsids, FORMATTED)
            }
            Change::Sanitize { sanitize, .. } if sanitize.phase == SanitizePhase::Running => {
                self.note_test(now);
                return self.end_test(now, now, SANITIZED);
            }
            _ => return,
        };
        self.note_test(now);
        let ends = |test: Running| test.nsid == BROADCAST_NSID || nsids.contains(&test.nsid);
        if self.tests.running.is_some_and(ends) {
            self.end_test(now, now, result);
        }
    }

    /// Ends a test whose time has passed.
    fn note_test(&mut self, now: Instant) {
        let Some(test) = self.tests.running else { return };
        if test.since + duration(test) <= now {
            self.end_test(now, test.since + duration(test), PASSED);
        }
    }

    /// Ends the test under way at time `at` with `result`.
    fn end_test(&mut self, now: Instant, at: Instant, result: u8) {
        let Some(test) = self.tests.running.take() else { return };
        let hours = self.health.power_on_hours(now, at);
        let results = &mut self.tests.results;
        results.truncate(MAX_RESULTS - 1);
        results.insert(0, TestResult { extended: test.extended, result, nsid: test.nsid, hours });
        self.store_tests();
    }

    fn store_tests(&mut self) {
        if let Some(store) = &mut self.store {
            store.push(Change::SelfTests);
        }
    }

    /// The log page.
    pub(crate) fn test_log(&mut self, now: Instant) -> SelfTestLog {
        self.note_test(now);
        let mut results = [SelfTestResult::UNUSED; MAX_RESULTS];
        for (entry, one) in results.iter_mut().zip(&self.tests.results) {
            let TestResult { extended, result, nsid, hours } = *one;
            // NSID is valid if a namespace was tested.
            let valid = u8::from(nsid != 0);
            *entry = SelfTestResult { result, code: code(extended), valid, hours, nsid };
        }
        let current = self.tests.running.map_or(0, |test| code(test.extended));
        let completion = self.tests.running.map_or(0, |test| {
            let passed = now.since(test.since).as_ps();
            (u128::from(passed) * 100 / u128::from(duration(test).as_ps())) as u8
        });
        SelfTestLog { current, completion, results }
    }
}

fn duration(test: Running) -> Duration {
    if test.extended { EXTENDED } else { SHORT }
}

/// Self-test code (figure 203).
fn code(extended: bool) -> u8 {
    if extended { 2 } else { 1 }
}
