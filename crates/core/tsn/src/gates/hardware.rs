//! What the hardware of a port can execute.

use wire::Duration;

use super::{GateControlList, ListError};

/// Limits of a port's hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// Base time, cycle time and intervals are multiples of this, which is not zero (TickGranularity
    /// of IEEE 802.1Q-2022, table 12-29).
    pub grain: Duration,
    /// The most entries (SupportedListMax, 12.29.1.5).
    pub entries: usize,
}

impl GateControlList {
    /// Whether `hardware` can execute the list exactly.
    ///
    /// # Errors
    /// [`ListError::TooManyEntries`] or, for the first time that is no multiple of the grain,
    /// [`ListError::Grain`].
    pub fn fits(&self, hardware: &Hardware) -> Result<(), ListError> {
        let count = self.entries().len();
        if count > hardware.entries {
            return Err(ListError::TooManyEntries { entries: count, max: hardware.entries });
        }
        let check = |what: String, ps: u64| {
            let grain_ps = hardware.grain.as_ps();
            match ps.is_multiple_of(grain_ps) {
                true => Ok(()),
                false => Err(ListError::Grain { what, ps, grain_ps }),
            }
        };
        for (index, entry) in self.entries().iter().enumerate() {
            check(format!("entry {}: the interval", index + 1), entry.interval.as_ps())?;
        }
        check("cycle time".to_owned(), self.cycle_time().as_ps())?;
        check("base time".to_owned(), self.base_time().as_ps())
    }
}
