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
/// Timestamp.
pub const TIMESTAMP: u8 = 0x0e;
/// Keep Alive Timer.
pub const KEEP_ALIVE_TIMER: u8 = 0x0f;
/// Host Behavior Support.
pub const HOST_BEHAVIOR: u8 = 0x16;

/// Host Identifier.
pub const HOST_IDENTIFIER: u8 = 0x81;
/// Reservation Notification Mask.
pub const RESERVATION_MASK: u8 = 0x82;
/// Reservation Persistence.
pub const RESERVATION_PERSISTENCE: u8 = 0x83;

/// Length in bytes of the data of Timestamp (figure 300).
pub const TIMESTAMP_LENGTH: usize = 8;
/// Length in bytes of the data of Host Behavior Support (section 5.21.1.22).
pub const HOST_BEHAVIOR_LENGTH: usize = 512;
/// Length in bytes of a Host Identifier, and with EXHID (section 5.21.1.26).
pub const HOST_IDENTIFIER_LENGTH: [usize; 2] = [8, 16];

register! {
    /// The data of Timestamp (section 5.21.1.14, figure 300).
    pub struct Timestamp: u64, {
        /// Milliseconds since 1 January 1970, 48 bits.
        milliseconds: u64 = [0, 48],
        /// Synch: whether the clock may have stopped for a while.
        stopped: bool = [48, 1],
        /// Timestamp Origin, 3 bits: 0 if a controller reset cleared the timestamp, 1 if a host set
        /// it.
        origin: u8 = [49, 3],
    }
}

/// Namespace Write Protection Config.
pub const WRITE_PROTECTION: u8 = 0x84;
/// Asynchronous Event Configuration: Namespace Attribute Notices, bit 8 (figure 291).
pub const NAMESPACE_NOTICES: u32 = 1 << 8;

numbers! {
    /// The requested value of Get Features, three bits (figure 179).
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

/// The name of a feature (figures 275 and 276); `None` if it has none.
pub const fn name(feature: u8) -> Option<&'static str> {
    Some(match feature {
        0x01 => "Arbitration",
        0x02 => "Power Management",
        0x03 => "LBA Range Type",
        0x04 => "Temperature Threshold",
        0x05 => "Error Recovery",
        0x06 => "Volatile Write Cache",
        0x07 => "Number of Queues",
        0x08 => "Interrupt Coalescing",
        0x09 => "Interrupt Vector Configuration",
        0x0a => "Write Atomicity Normal",
        0x0b => "Asynchronous Event Configuration",
        0x0c => "Autonomous Power State Transition",
        0x0d => "Host Memory Buffer",
        0x0e => "Timestamp",
        0x0f => "Keep Alive Timer",
        0x10 => "Host Controlled Thermal Management",
        0x11 => "Non-Operational Power State Config",
        0x12 => "Read Recovery Level Config",
        0x13 => "Predictable Latency Mode Config",
        0x14 => "Predictable Latency Mode Window",
        0x15 => "LBA Status Information Report Interval",
        0x16 => "Host Behavior Support",
        0x17 => "Sanitize Config",
        0x18 => "Endurance Group Event Configuration",
        0x80 => "Software Progress Marker",
        0x81 => "Host Identifier",
        0x82 => "Reservation Notification Mask",
        0x83 => "Reservation Persistence",
        0x84 => "Namespace Write Protection Config",
        _ => return None,
    })
}
