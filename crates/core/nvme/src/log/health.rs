//! The SMART / Health Information log (NVMe 1.4, section 5.14.1.2).

use crate::state::History;
use wire::Instant;
use wire::nvme::{SmartLog, critical_warning};

/// WCTEMP in kelvin.
pub(crate) const WARNING_TEMPERATURE: u16 = 343;
/// CCTEMP in kelvin.
pub(crate) const CRITICAL_TEMPERATURE: u16 = 353;

const MINUTE: u64 = 60_000_000_000_000;
const HOUR: u64 = 60 * MINUTE;

/// The counters of a running drive.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    history: History,
    /// Time of the first unstored change; changes of time counters do not count.
    changed: Option<Instant>,
    /// Time of the last update of the time counters.
    counted: Instant,
    /// Number of controllers with outstanding I/O commands.
    busy: u16,
    temperature: u16,
    /// Whether there was a media error since the power-on.
    degraded: bool,
}

impl Health {
    /// The counters after a power-on, continued from `history`.
    pub(crate) fn power_on(now: Instant, mut history: History, temperature: u16) -> Self {
        history.power_cycles += 1;
        // Power was lost without a shutdown (section 5.14.1.2).
        history.unsafe_shutdowns += u128::from(history.running);
        history.running = false;
        Self::new(now, history, temperature)
    }

    /// The counters of a drive that has power, continued from `history`.
    pub(crate) fn new(now: Instant, history: History, temperature: u16) -> Self {
        Self { history, changed: None, counted: now, busy: 0, temperature, degraded: false }
    }

    /// The counters for a change, with the time counters updated to `now`.
    pub(crate) fn count(&mut self, now: Instant) -> &mut History {
        self.changed.get_or_insert(now);
        self.pass(now)
    }

    /// The counters to store, with the time counters updated to `now`.
    pub(crate) fn record(&mut self, now: Instant) -> History {
        self.changed = None;
        self.pass(now).clone()
    }

    /// The counters as of the last update.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Time of the first unstored change; changes of time counters do not count.
    pub(crate) fn changed(&self) -> Option<Instant> {
        self.changed
    }

    /// Updates the time counters to `now`; returns all counters.
    fn pass(&mut self, now: Instant) -> &mut History {
        let span = now.ps_since(self.counted);
        self.counted = now.max(self.counted);
        let history = &mut self.history;
        history.power_on_ps += span;
        history.busy_ps += if self.busy > 0 { span } else { 0 };
        if self.temperature >= CRITICAL_TEMPERATURE {
            history.critical_ps += span;
        } else if self.temperature >= WARNING_TEMPERATURE {
            history.warning_ps += span;
        }
        history
    }

    /// Counts that a controller has outstanding I/O commands from `now` on, or has none any more.
    pub(crate) fn set_busy(&mut self, now: Instant, busy: bool) {
        self.pass(now);
        self.busy = if busy { self.busy + 1 } else { self.busy - 1 };
    }

    /// Whether any controller has outstanding I/O commands.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy > 0
    }

    /// Counts a media and data integrity error.
    pub(crate) fn add_media_error(&mut self, now: Instant) {
        self.count(now).media_errors += 1;
        self.degraded = true;
    }

    /// Removes the counters of commands and media errors; returns them.
    pub(crate) fn take_activity(&mut self) -> History {
        let History { units_read, units_written, reads, writes, media_errors, .. } =
            std::mem::take(&mut self.history);
        History { units_read, units_written, reads, writes, media_errors, ..History::default() }
    }

    /// Adds [`take_activity`](Self::take_activity) of a part.
    pub(crate) fn add_activity(&mut self, now: Instant, activity: &History) {
        self.degraded |= activity.media_errors > 0;
        let history = self.count(now);
        history.units_read += activity.units_read;
        history.units_written += activity.units_written;
        history.reads += activity.reads;
        history.writes += activity.writes;
        history.media_errors += activity.media_errors;
    }

    /// Whether there was a media error since the power-on.
    pub(crate) fn is_degraded(&self) -> bool {
        self.degraded
    }

    /// Counts an entry of an error log; returns its number.
    pub(crate) fn add_error(&mut self, now: Instant) -> u64 {
        let history = self.count(now);
        history.errors += 1;
        history.errors
    }

    /// Sets the composite temperature in kelvin from `now` on. Returns the former temperature.
    pub(crate) fn set_temperature(&mut self, now: Instant, kelvin: u16) -> u16 {
        self.pass(now);
        std::mem::replace(&mut self.temperature, kelvin)
    }

    /// Power on hours at time `at`, rounded down. The power must have been on from `at` to `now`.
    pub(crate) fn power_on_hours(&mut self, now: Instant, at: Instant) -> u64 {
        let later = now.ps_since(at);
        (self.pass(now).power_on_ps.saturating_sub(later) / u128::from(HOUR)) as u64
    }

    /// The log page, with the time counters updated to `now`.
    pub(crate) fn page(&mut self, now: Instant, warning: u8) -> SmartLog {
        let temperature = self.temperature;
        let history = self.pass(now);
        let minutes = |ps: u128| ps / u128::from(MINUTE);
        SmartLog {
            critical_warning: warning,
            temperature,
            available_spare: 100,
            spare_threshold: 10,
            percentage_used: 0,
            data_units_read: history.units_read.div_ceil(1000),
            data_units_written: history.units_written.div_ceil(1000),
            host_reads: history.reads,
            host_writes: history.writes,
            busy_minutes: minutes(history.busy_ps),
            power_cycles: history.power_cycles,
            power_on_hours: history.power_on_ps / u128::from(HOUR),
            unsafe_shutdowns: history.unsafe_shutdowns,
            media_errors: history.media_errors,
            error_log_entries: history.errors.into(),
            warning_minutes: u32::try_from(minutes(history.warning_ps)).unwrap_or(u32::MAX),
            critical_minutes: u32::try_from(minutes(history.critical_ps)).unwrap_or(u32::MAX),
        }
    }

    /// The critical warning byte. `over` and `under` are the temperature thresholds in kelvin;
    /// `read_only` states whether all media are read-only.
    pub(crate) fn warning(&self, over: u16, under: u16, read_only: bool) -> u8 {
        let mut warning = 0;
        if self.temperature >= over || self.temperature <= under {
            warning |= critical_warning::TEMPERATURE;
        }
        if self.degraded {
            warning |= critical_warning::RELIABILITY;
        }
        if read_only {
            warning |= critical_warning::READ_ONLY;
        }
        warning
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Duration;

    fn minutes(count: u64) -> Duration {
        Duration::from_ps(count * MINUTE)
    }

    #[test]
    fn time_is_counted_while_it_passes() {
        let mut health = Health::power_on(Instant::ZERO, History::default(), 300);
        health.set_busy(Instant::ZERO + minutes(10), true);
        health.set_temperature(Instant::ZERO + minutes(20), 345);
        health.set_busy(Instant::ZERO + minutes(25), false);
        health.count(Instant::ZERO).units_read = 1001;
        health.add_error(Instant::ZERO);
        let page = health.page(Instant::ZERO + minutes(120), 0);
        assert_eq!((page.busy_minutes, page.power_on_hours, page.warning_minutes), (15, 2, 100));
        assert_eq!((page.data_units_read, page.error_log_entries), (2, 1));
        assert_eq!(page.power_cycles, 1);
    }

    #[test]
    fn thresholds_make_warnings() {
        let health = Health::power_on(Instant::ZERO, History::default(), 300);
        assert_eq!(health.warning(343, 0, false), 0);
        assert_eq!(health.warning(300, 0, false), critical_warning::TEMPERATURE);
        assert_eq!(health.warning(343, 300, true), 0b1010);
    }
}
