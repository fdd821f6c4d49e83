//! Bits of Asynchronous Event Configuration above the critical warnings (section 5.21.1.11), which
//! OAES in Identify Controller has in the same places (figure 247).

/// Firmware activation notices.
pub const FIRMWARE_ACTIVATION: u32 = 1 << 9;
