//! Limits of a port's gate hardware.

use wire::Duration;

use super::{GateControlList, ListError};

/// Limits of a port's hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// Base time, cycle time and intervals must be multiples of this time, which is above zero
    /// (TickGranularity of IEEE 802.1Q-2022, table 12-29).
    pub grain: Duration,
    /// The most entries (SupportedListMax, 12.29.1.5).
    pub entries: usize,
}

impl GateControlList {
    /// Whether `hardware` can execute the list exactly.
    ///
    /// # Errors
    /// [`ListError::TooManyEntries`], or [`ListError::Grain`] with the first time that is not a
    /// multiple of the grain.
    pub fn fits(&self, hardware: &Hardware) -> Result<(), ListError> {
        let count = self.entries().len();
        if count > hardware.entries {
            return Err(ListError::TooManyEntries { entries: count, max: hardware.entries });
        }
        let check = |name: String, ps: u64| {
            let grain_ps = hardware.grain.as_ps();
            match ps.is_multiple_of(grain_ps) {
                true => Ok(()),
                false => Err(ListError::Grain { name, ps, grain_ps }),
            }
        };
        for (index, entry) in self.entries().iter().enumerate() {
            check(format!("entry {}: the interval", index + 1), entry.interval.as_ps())?;
        }
        check("cycle time".to_owned(), self.cycle_time().as_ps())?;
        check("base time".to_owned(), self.base_time().as_ps())
    }
}
