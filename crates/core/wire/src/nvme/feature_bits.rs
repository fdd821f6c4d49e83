//! Bits of Asynchronous Event Configuration above the critical warnings (section 5.21.1.11). OAES
//! of Identify Controller has the same bits (figure 247), except [`TELEMETRY`].

/// Firmware activation notices.
pub const FIRMWARE_ACTIVATION: u32 = 1 << 9;
/// Telemetry log notices. LPA bit 3 of Identify Controller announces the support.
pub const TELEMETRY: u32 = 1 << 10;
/// Asymmetric namespace access change notices.
pub const NAMESPACE_ACCESS: u32 = 1 << 11;
