//! The SMART / Health Information log (NVMe 1.4, section 5.14.1.2).

use wire::Instant;
use wire::nvme::{SmartLog, critical_warning};

/// WCTEMP in kelvin.
pub(crate) const WARNING_TEMPERATURE: u16 = 343;
/// CCTEMP in kelvin.
pub(crate) const CRITICAL_TEMPERATURE: u16 = 353;

const MINUTE: u64 = 60_000_000_000_000;
const HOUR: u64 = 60 * MINUTE;

/// What a drive has been through since power-on: it remembers nothing of before.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// 512-byte units read.
    pub units_read: u128,
    /// 512-byte units written.
    pub units_written: u128,
    /// Read commands completed.
    pub reads: u128,
    /// Write commands completed.
    pub writes: u128,
    /// Picoseconds with an I/O command outstanding.
    pub busy_ps: u128,
    /// Picoseconds of power.
    pub power_on_ps: u128,
    /// Media and data integrity errors.
    pub media_errors: u128,
    /// Picoseconds between the warning and the critical temperature.
    pub warning_ps: u128,
    /// Picoseconds at or above the critical temperature.
    pub critical_ps: u128,
}

/// The counters of a drive that has power.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    history: History,
    /// Up to when the time counters count.
    counted: Instant,
    busy: bool,
    temperature: u16,
}

impl Health {
    /// After power-on.
    pub fn new(now: Instant, temperature: u16) -> Self {
        Self { history: History::default(), counted: now, busy: false, temperature }
    }

    /// The counters, time included up to `now`.
    pub fn count(&mut self, now: Instant) -> &mut History {
        let span = u128::from(now.since(self.counted).as_ps());
        self.counted = now.max(self.counted);
        let history = &mut self.history;
        history.power_on_ps += span;
        history.busy_ps += if self.busy { span } else { 0 };
        if self.temperature >= CRITICAL_TEMPERATURE {
            history.critical_ps += span;
        } else if self.temperature >= WARNING_TEMPERATURE {
            history.warning_ps += span;
        }
        history
    }

    /// Whether I/O commands are outstanding from `now` on.
    pub fn set_busy(&mut self, now: Instant, busy: bool) {
        if busy != self.busy {
            self.count(now);
            self.busy = busy;
        }
    }

    /// The composite temperature in kelvin from `now` on.
    pub fn set_temperature(&mut self, now: Instant, kelvin: u16) {
        self.count(now);
        self.temperature = kelvin;
    }

    /// The page.
    pub fn page(&mut self, now: Instant, warning: u8, errors: u64) -> SmartLog {
        let temperature = self.temperature;
        let history = self.count(now);
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
            power_cycles: 1,
            power_on_hours: history.power_on_ps / u128::from(HOUR),
            unsafe_shutdowns: 0,
            media_errors: history.media_errors,
            error_log_entries: u128::from(errors),
            warning_minutes: minutes(history.warning_ps) as u32,
            critical_minutes: minutes(history.critical_ps) as u32,
        }
    }

    /// The critical warning byte, given the thresholds in kelvin and whether
    /// all media are read-only.
    pub fn warning(&self, over: u16, under: u16, read_only: bool) -> u8 {
        let mut warning = 0;
        if self.temperature >= over || self.temperature <= under {
            warning |= critical_warning::TEMPERATURE;
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
        let mut health = Health::new(Instant::ZERO, 300);
        health.set_busy(Instant::ZERO + minutes(10), true);
        health.set_temperature(Instant::ZERO + minutes(20), 345);
        health.set_busy(Instant::ZERO + minutes(25), false);
        health.count(Instant::ZERO).units_read = 1001;
        let page = health.page(Instant::ZERO + minutes(120), 0, 4);
        assert_eq!((page.busy_minutes, page.power_on_hours, page.warning_minutes), (15, 2, 100));
        assert_eq!((page.data_units_read, page.error_log_entries), (2, 4));
        assert_eq!(page.power_cycles, 1);
    }

    #[test]
    fn thresholds_make_warnings() {
        let health = Health::new(Instant::ZERO, 300);
        assert_eq!(health.warning(343, 0, false), 0);
        assert_eq!(health.warning(300, 0, false), critical_warning::TEMPERATURE);
        assert_eq!(health.warning(343, 300, true), 0b1010);
    }
}
