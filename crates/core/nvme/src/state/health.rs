//! The record `health`: the lifetime counters of a drive.

use super::check::{self, Check, Problem};
use serde::{Deserialize, Serialize};

/// The lifetime counters of a drive (NVMe 1.4, section 5.14.1.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Number of 512-byte units read.
    pub units_read: u128,
    /// Number of 512-byte units written.
    pub units_written: u128,
    /// Number of completed read commands.
    pub reads: u128,
    /// Number of completed write commands.
    pub writes: u128,
    /// Picoseconds with at least one outstanding I/O command.
    pub busy_ps: u128,
    /// Picoseconds with power.
    pub power_on_ps: u128,
    /// Number of power-ons.
    pub power_cycles: u128,
    /// Number of power losses without a shutdown of every controller in use.
    pub unsafe_shutdowns: u128,
    /// Number of media and data integrity errors.
    pub media_errors: u128,
    /// Number of error log entries.
    pub errors: u64,
    /// Picoseconds at or above the warning temperature, but below the critical temperature.
    pub warning_ps: u128,
    /// Picoseconds at or above the critical temperature.
    pub critical_ps: u128,
    /// Whether a controller is in use; at a power-on this means that the shutdown was unsafe.
    pub running: bool,
}

/// The largest value of a stored counter, so that further counting cannot overflow.
const MOST: u128 = u128::MAX >> 1;

impl Check for History {
    fn check(&self) -> Result<(), Problem> {
        let counters = [
            ("units_read", self.units_read),
            ("units_written", self.units_written),
            ("reads", self.reads),
            ("writes", self.writes),
            ("busy_ps", self.busy_ps),
            ("power_on_ps", self.power_on_ps),
            ("power_cycles", self.power_cycles),
            ("unsafe_shutdowns", self.unsafe_shutdowns),
            ("media_errors", self.media_errors),
            ("warning_ps", self.warning_ps),
            ("critical_ps", self.critical_ps),
        ];
        counters.into_iter().try_for_each(|(field, value)| check::range(field, value, 0, MOST))?;
        check::range("errors", self.errors, 0, u64::MAX >> 1)
    }
}
