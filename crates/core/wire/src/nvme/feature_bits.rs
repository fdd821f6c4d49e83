//! Bits of Asynchronous Event Configuration above the critical warnings (section 5.21.1.11), which
//! are at the same positions in OAES of Identify Controller (figure 247).

/// Firmware activation notices.
pub const FIRMWARE_ACTIVATION: u32 = 1 << 9;
/// Telemetry log notices, supported with the telemetry logs: LPA bit 3 in Identify Controller, no
/// bit of OAES.
pub const TELEMETRY: u32 = 1 << 10;
