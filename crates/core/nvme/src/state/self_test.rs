//! The record `self-test`: results of device self-tests.

use super::MAX_CONTROLLER;
use super::check::{self, Check, Problem};
use serde::{Deserialize, Serialize};

/// The maximum number of results in the log page (NVMe 1.4, section 5.14.1.6).
pub(crate) const MAX_RESULTS: usize = 20;

/// Results of device self-tests, and an extended test that continues after a power-on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTests {
    /// The extended test under way.
    pub extended: Option<ExtendedTest>,
    /// The results, newest first, at most 20.
    pub results: Vec<TestResult>,
}

/// An extended device self-test under way (NVMe 1.4, section 8.11.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtendedTest {
    /// CNTLID of the controller that runs the test.
    pub controller: u16,
    /// NSID of the tested namespace; FFFFFFFFh for all namespaces, 0 for none.
    pub nsid: u32,
}

/// The result of a device self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestResult {
    /// Whether the test was an extended test.
    pub extended: bool,
    /// Result (NVMe 1.4, figure 203): 0 for no error; aborted by a command (1), by a reset (2), by
    /// the removal of the namespace (3), by Format NVM (4), or by a sanitize operation (9).
    pub result: u8,
    /// NSID of the tested namespace; FFFFFFFFh for all namespaces, 0 for none.
    pub nsid: u32,
    /// Power on hours at the end of the test.
    pub hours: u64,
}

impl Check for SelfTests {
    fn check(&self) -> Result<(), Problem> {
        check::range("results", self.results.len(), 0, MAX_RESULTS)?;
        if let Some(test) = &self.extended {
            check::range("controller", test.controller, 1, MAX_CONTROLLER)?;
        }
        self.results.iter().try_for_each(|one| check::range("result", one.result, 0, 9))
    }
}
