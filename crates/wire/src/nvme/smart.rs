//! The SMART / Health Information log page (section 5.14.1.2, figure 195).

use super::field::{put, u16_at, u32_at, u128_at};

/// Bits of the critical warning byte.
pub mod critical_warning {
    /// Available spare is below its threshold.
    pub const SPARE: u8 = 1 << 0;
    /// A temperature is beyond a threshold.
    pub const TEMPERATURE: u8 = 1 << 1;
    /// Reliability is degraded.
    pub const RELIABILITY: u8 = 1 << 2;
    /// All media are read only.
    pub const READ_ONLY: u8 = 1 << 3;
}

/// SMART / Health Information. Fields that are not here are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmartLog {
    /// Critical warning, see [`critical_warning`].
    pub critical_warning: u8,
    /// Composite temperature in kelvin.
    pub temperature: u16,
    /// Available spare in percent.
    pub available_spare: u8,
    /// Available spare threshold in percent.
    pub spare_threshold: u8,
    /// Percentage used.
    pub percentage_used: u8,
    /// Data units read: thousands of 512-byte units, rounded up.
    pub data_units_read: u128,
    /// Data units written.
    pub data_units_written: u128,
    /// Host read commands.
    pub host_reads: u128,
    /// Host write commands.
    pub host_writes: u128,
    /// Controller busy time in minutes.
    pub busy_minutes: u128,
    /// Power cycles.
    pub power_cycles: u128,
    /// Power on hours.
    pub power_on_hours: u128,
    /// Unsafe shutdowns.
    pub unsafe_shutdowns: u128,
    /// Media and data integrity errors.
    pub media_errors: u128,
    /// Error log entries over the controller's life.
    pub error_log_entries: u128,
    /// Warning composite temperature time in minutes.
    pub warning_minutes: u32,
    /// Critical composite temperature time in minutes.
    pub critical_minutes: u32,
}

impl SmartLog {
    /// Length in bytes.
    pub const LENGTH: usize = 512;

    /// From the bytes of the page.
    pub fn decode(b: &[u8; Self::LENGTH]) -> Self {
        Self {
            critical_warning: b[0],
            temperature: u16_at(b, 1),
            available_spare: b[3],
            spare_threshold: b[4],
            percentage_used: b[5],
            data_units_read: u128_at(b, 32),
            data_units_written: u128_at(b, 48),
            host_reads: u128_at(b, 64),
            host_writes: u128_at(b, 80),
            busy_minutes: u128_at(b, 96),
            power_cycles: u128_at(b, 112),
            power_on_hours: u128_at(b, 128),
            unsafe_shutdowns: u128_at(b, 144),
            media_errors: u128_at(b, 160),
            error_log_entries: u128_at(b, 176),
            warning_minutes: u32_at(b, 192),
            critical_minutes: u32_at(b, 196),
        }
    }

    /// To the bytes of the page.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut b = [0; Self::LENGTH];
        b[0] = self.critical_warning;
        put(&mut b, 1, self.temperature.to_le_bytes());
        b[3] = self.available_spare;
        b[4] = self.spare_threshold;
        b[5] = self.percentage_used;
        put(&mut b, 32, self.data_units_read.to_le_bytes());
        put(&mut b, 48, self.data_units_written.to_le_bytes());
        put(&mut b, 64, self.host_reads.to_le_bytes());
        put(&mut b, 80, self.host_writes.to_le_bytes());
        put(&mut b, 96, self.busy_minutes.to_le_bytes());
        put(&mut b, 112, self.power_cycles.to_le_bytes());
        put(&mut b, 128, self.power_on_hours.to_le_bytes());
        put(&mut b, 144, self.unsafe_shutdowns.to_le_bytes());
        put(&mut b, 160, self.media_errors.to_le_bytes());
        put(&mut b, 176, self.error_log_entries.to_le_bytes());
        put(&mut b, 192, self.warning_minutes.to_le_bytes());
        put(&mut b, 196, self.critical_minutes.to_le_bytes());
        b
    }
}
