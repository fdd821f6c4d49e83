//! The SMART / Health Information log page (section 5.14.1.2, figure 195).

/// Bits of the critical warning byte.
pub mod critical_warning {
    /// A temperature is beyond a threshold.
    pub const TEMPERATURE: u8 = 1 << 1;
    /// Reliability is degraded.
    pub const RELIABILITY: u8 = 1 << 2;
    /// All media are read only.
    pub const READ_ONLY: u8 = 1 << 3;
}

layout! {
    decode encode
    /// SMART / Health Information. Other fields are zero.
    #[derive(Default)]
    pub struct SmartLog: 512, {
        /// Critical warning, see [`critical_warning`].
        critical_warning: u8 = 0,
        /// Composite temperature in kelvin.
        temperature: u16 = 1,
        /// Available spare in percent.
        available_spare: u8 = 3,
        /// Available spare threshold in percent.
        spare_threshold: u8 = 4,
        /// Percentage used.
        percentage_used: u8 = 5,
        /// Data units read, in units of 1000 x 512 bytes, rounded up.
        data_units_read: u128 = 32,
        /// Data units written, in the same units.
        data_units_written: u128 = 48,
        /// Host read commands.
        host_reads: u128 = 64,
        /// Host write commands.
        host_writes: u128 = 80,
        /// Controller busy time in minutes.
        busy_minutes: u128 = 96,
        /// Power cycles.
        power_cycles: u128 = 112,
        /// Power on hours.
        power_on_hours: u128 = 128,
        /// Unsafe shutdowns.
        unsafe_shutdowns: u128 = 144,
        /// Media and data integrity errors.
        media_errors: u128 = 160,
        /// Error log entries over the controller's life.
        error_log_entries: u128 = 176,
        /// Warning composite temperature time in minutes.
        warning_minutes: u32 = 192,
        /// Critical composite temperature time in minutes.
        critical_minutes: u32 = 196,
    }
}
