//! Error counters of a port or function.

use std::fmt;

/// Counters of PCIe errors, with the names of PCIe Base 4.0, section 6.2.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Requests that ended as Unsupported Request: received requests, dropped if posted, and own
    /// requests.
    pub unsupported_request: u64,
    /// Own requests whose completion has the status Completer Abort.
    pub completer_abort: u64,
    /// Own requests whose completion did not arrive in time.
    pub completion_timeout: u64,
    /// Completions received without an outstanding request.
    pub unexpected_completion: u64,
    /// Malformed packets, and completions that contradict their request.
    pub malformed: u64,
    /// Packets with a wrong ECRC.
    pub ecrc: u64,
    /// Packets with the EP bit set.
    pub poisoned: u64,
    /// Requester or completer IDs that cannot come from this port (ACS source
    /// validation, section 6.12.1.1).
    pub acs_violation: u64,
    /// Upstream requests that were dropped or rejected because bus mastering is off.
    pub bus_master_off: u64,
    /// Posted packets dropped because the link is down.
    pub dropped_link_down: u64,
}

impl Errors {
    /// Name and value of each counter, in a fixed order.
    pub fn list(&self) -> [(&'static str, u64); 10] {
        [
            ("unsupported_request", self.unsupported_request),
            ("completer_abort", self.completer_abort),
            ("completion_timeout", self.completion_timeout),
            ("unexpected_completion", self.unexpected_completion),
            ("malformed", self.malformed),
            ("ecrc", self.ecrc),
            ("poisoned", self.poisoned),
            ("acs_violation", self.acs_violation),
            ("bus_master_off", self.bus_master_off),
            ("dropped_link_down", self.dropped_link_down),
        ]
    }

    /// The sum of all counters.
    pub fn total(&self) -> u64 {
        self.list().iter().map(|(_, n)| n).sum()
    }
}

impl fmt::Display for Errors {
    /// Names and values of the counters that are not zero, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, n) in self.list().iter().filter(|(_, n)| *n > 0) {
            write!(f, "{separator}{name} {n}")?;
            separator = ", ";
        }
        if separator.is_empty() { f.write_str("none") } else { Ok(()) }
    }
}
