//! Opcodes and the names of their commands.

/// A module of opcodes: a constant for each opcode that farlane uses, and all names.
macro_rules! opcodes {
    ($(#[$meta:meta])* $module:ident: $($text:literal = $value:literal $($name:ident)?,)*) => {
        $(#[$meta])*
        pub mod $module {
            $($(#[doc = concat!($text, ".")] pub const $name: u8 = $value;)?)*

            /// The name of the command; `None` if it is not listed.
            pub const fn name(opcode: u8) -> Option<&'static str> {
                match opcode {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

opcodes! {
    /// Admin commands (section 5, figure 139).
    admin:
    "Delete I/O Submission Queue" = 0x00 DELETE_SQ,
    "Create I/O Submission Queue" = 0x01 CREATE_SQ,
    "Get Log Page" = 0x02 GET_LOG_PAGE,
    "Delete I/O Completion Queue" = 0x04 DELETE_CQ,
    "Create I/O Completion Queue" = 0x05 CREATE_CQ,
    "Identify" = 0x06 IDENTIFY,
    "Abort" = 0x08 ABORT,
    "Set Features" = 0x09 SET_FEATURES,
    "Get Features" = 0x0a GET_FEATURES,
    "Asynchronous Event Request" = 0x0c ASYNC_EVENT_REQUEST,
    "Namespace Management" = 0x0d NAMESPACE_MANAGEMENT,
    "Firmware Commit" = 0x10 FIRMWARE_COMMIT,
    "Firmware Image Download" = 0x11 FIRMWARE_DOWNLOAD,
    "Device Self-test" = 0x14 DEVICE_SELF_TEST,
    "Namespace Attachment" = 0x15 NAMESPACE_ATTACHMENT,
    "Keep Alive" = 0x18 KEEP_ALIVE,
    "Directive Send" = 0x19,
    "Directive Receive" = 0x1a,
    "Virtualization Management" = 0x1c,
    "NVMe-MI Send" = 0x1d,
    "NVMe-MI Receive" = 0x1e,
    "Doorbell Buffer Config" = 0x7c DOORBELL_BUFFER_CONFIG,
    "Format NVM" = 0x80 FORMAT,
    "Security Send" = 0x81 SECURITY_SEND,
    "Security Receive" = 0x82 SECURITY_RECEIVE,
    "Sanitize" = 0x84 SANITIZE,
    "Get LBA Status" = 0x86,
}

opcodes! {
    /// Commands of the NVM command set (section 6, figure 346); Copy of the NVM Command
    /// Set 1.0, figure 22.
    nvm:
    "Flush" = 0x00 FLUSH,
    "Write" = 0x01 WRITE,
    "Read" = 0x02 READ,
    "Write Uncorrectable" = 0x04 WRITE_UNCORRECTABLE,
    "Compare" = 0x05 COMPARE,
    "Write Zeroes" = 0x08 WRITE_ZEROES,
    "Dataset Management" = 0x09 DATASET_MANAGEMENT,
    "Verify" = 0x0c VERIFY,
    "Reservation Register" = 0x0d RESERVATION_REGISTER,
    "Reservation Report" = 0x0e RESERVATION_REPORT,
    "Reservation Acquire" = 0x11 RESERVATION_ACQUIRE,
    "Reservation Release" = 0x15 RESERVATION_RELEASE,
    "Copy" = 0x19 COPY,
}
