//! Feature identifiers (figures 275 and 276) and the values of SEL in Get Features (figure 179).

/// Arbitration.
pub const ARBITRATION: u8 = 0x01;
/// Power Management.
pub const POWER_MANAGEMENT: u8 = 0x02;
/// Temperature Threshold.
pub const TEMPERATURE_THRESHOLD: u8 = 0x04;
/// Error Recovery.
pub const ERROR_RECOVERY: u8 = 0x05;
/// Volatile Write Cache.
pub const VOLATILE_WRITE_CACHE: u8 = 0x06;
/// Number of Queues.
pub const NUMBER_OF_QUEUES: u8 = 0x07;
/// Interrupt Coalescing.
pub const INTERRUPT_COALESCING: u8 = 0x08;
/// Interrupt Vector Configuration.
pub const INTERRUPT_VECTOR: u8 = 0x09;
/// Write Atomicity Normal.
pub const WRITE_ATOMICITY: u8 = 0x0a;
/// Asynchronous Event Configuration.
pub const ASYNC_EVENT_CONFIG: u8 = 0x0b;

/// Asynchronous Event Configuration: Namespace Attribute Notices, bit 8 (figure 291).
pub const NAMESPACE_NOTICES: u32 = 1 << 8;

numbers! {
    /// Which value Get Features asks for, three bits (figure 179).
    pub enum Select: u32 {
        /// 000b.
        Current = 0,
        /// 001b.
        Default = 1,
        /// 010b.
        Saved = 2,
        /// 011b.
        Capabilities = 3,
    }
}
