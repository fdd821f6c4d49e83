//! Log page identifiers (figure 191) and the small pages.

use crate::macros::Field;

/// Log page identifiers.
pub mod log_page {
    /// Error Information.
    pub const ERROR: u8 = 0x01;
    /// SMART / Health Information.
    pub const SMART: u8 = 0x02;
    /// Firmware Slot Information.
    pub const FIRMWARE: u8 = 0x03;
    /// Changed Namespace List.
    pub const CHANGED_NAMESPACES: u8 = 0x04;
    /// Commands Supported and Effects.
    pub const EFFECTS: u8 = 0x05;
    /// Device Self-test.
    pub const SELF_TEST: u8 = 0x06;
    /// Telemetry Host-Initiated.
    pub const TELEMETRY_HOST: u8 = 0x07;
    /// Telemetry Controller-Initiated.
    pub const TELEMETRY_CONTROLLER: u8 = 0x08;
    /// Asymmetric Namespace Access.
    pub const NAMESPACE_ACCESS: u8 = 0x0c;
    /// Persistent Event Log.
    pub const PERSISTENT_EVENT: u8 = 0x0d;
    /// Reservation Notification.
    pub const RESERVATION: u8 = 0x80;
    /// Sanitize Status.
    pub const SANITIZE: u8 = 0x81;

    /// The name of a log page (figure 191); `None` if it has none.
    pub const fn name(page: u8) -> Option<&'static str> {
        Some(match page {
            0x01 => "Error Information",
            0x02 => "SMART / Health Information",
            0x03 => "Firmware Slot Information",
            0x04 => "Changed Namespace List",
            0x05 => "Commands Supported and Effects",
            0x06 => "Device Self-test",
            0x07 => "Telemetry Host-Initiated",
            0x08 => "Telemetry Controller-Initiated",
            0x09 => "Endurance Group Information",
            0x0a => "Predictable Latency Per NVM Set",
            0x0b => "Predictable Latency Event Aggregate",
            0x0c => "Asymmetric Namespace Access",
            0x0d => "Persistent Event Log",
            0x0e => "LBA Status Information",
            0x0f => "Endurance Group Event Aggregate",
            0x80 => "Reservation Notification",
            0x81 => "Sanitize Status",
            _ => return None,
        })
    }
}

layout! {
    decode encode
    /// Firmware Slot Information (section 5.14.1.3, figure 196).
    #[derive(Default)]
    pub struct FirmwareSlots: 512, {
        /// The active slot, 1 to 7.
        active: u8 = 0 [0, 3],
        /// The slot after the next reset; 0 for the same slot.
        next: u8 = 0 [4, 3],
        /// Revision in each slot, ASCII; zeroes if empty.
        revisions: [[u8; 8]; 7] = 8,
    }
}

/// The effects of one opcode (section 5.14.1.5, figure 199).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandEffects(u32);

impl Field for CommandEffects {
    const SIZE: usize = 4;

    fn get(bytes: &[u8], at: usize) -> Self {
        Self(Field::get(bytes, at))
    }

    fn put(self, bytes: &mut [u8], at: usize) {
        self.0.put(bytes, at);
    }
}

impl CommandEffects {
    /// The command is not supported.
    pub const UNSUPPORTED: Self = Self(0);
    /// CSUPP: supported, without further effects.
    pub const SUPPORTED: Self = Self(1);
    /// CSUPP and CCC: supported, changes controller capabilities.
    pub const CHANGES_CONTROLLER: Self = Self(1 | 1 << 4);
    /// CSUPP and LBCC: supported, changes logical block content.
    pub const CHANGES_BLOCKS: Self = Self(3);

    /// CSUPP and NIC: supported, changes the inventory of namespaces.
    pub const CHANGES_NAMESPACES: Self = Self(1 | 1 << 3);

    /// CSUPP, LBCC and CSE 010b: supported, changes logical block content; no other command for any
    /// namespace may be under way.
    pub const CHANGES_ALL_BLOCKS: Self = Self(3 | 2 << 16);

    /// CSUPP, LBCC, NCC and CSE 001b: supported, changes logical block content and namespace
    /// capabilities; no other command for the same namespace may be under way.
    pub const FORMATS: Self = Self(1 | 1 << 1 | 1 << 2 | 1 << 16);

    /// Decodes the 32 bits of an entry.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Encodes the effects as 32 bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

layout! {
    decode encode
    /// Commands Supported and Effects (section 5.14.1.5, figure 198).
    pub struct CommandsSupported: 4096, {
        /// By admin opcode.
        admin: [CommandEffects; 256] = 0,
        /// By I/O opcode.
        io: [CommandEffects; 256] = 1024,
    }
}

impl Default for CommandsSupported {
    fn default() -> Self {
        let none = [CommandEffects::UNSUPPORTED; 256];
        Self { admin: none, io: none }
    }
}
