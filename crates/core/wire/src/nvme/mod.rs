//! NVM Express structures (NVM Express Base Specification 1.4, the NVM command
//! set included): registers, queue entries, status, identify data, log pages.
//!
//! Everything is little-endian. Values here are decoded from and encoded to
//! exactly the bytes of the specification; figure numbers are from revision 1.4.

mod access;
mod command;
mod completion;
mod error_log;
pub mod feature;
pub mod feature_bits;
mod field;
mod identify_controller;
mod identify_namespace;
mod log;
pub mod opcode;
mod persistent_event;
mod protection;
pub mod register;
mod reservation;
mod sanitize;
mod self_test;
mod sgl;
mod smart;
mod status;
mod telemetry;
#[cfg(test)]
mod tests;

pub use access::{AccessGroup, AccessLogHeader, AccessState};
pub use command::{Command, CopyRange, DsmRange};
pub use completion::{AsyncEvent, AsyncEventKind, Completion};
pub use error_log::ErrorLogEntry;
pub use field::ascii;
pub use identify_controller::{
    IdentifyController, PowerState, controller_attribute, nvm_command, sgl_support,
};
pub use identify_namespace::{
    IdentifyNamespace, IndependentNamespace, LbaFormat, NamespaceDescriptor, controller_list,
    decode_controller_list, namespace_list,
};
pub use log::{CommandEffects, CommandsSupported, FirmwareSlots, log_page};
pub use persistent_event::{
    ChangeNamespaceEvent, FirmwareCommitEvent, FormatCompletionEvent, FormatStartEvent,
    PersistentEventHeader, PersistentEventLog, PersistentEventType, PowerOnEvent,
    SanitizeCompletionEvent, SanitizeStartEvent, SetFeatureEvent, ThermalExcursionEvent,
    TimestampChangeEvent, thermal_threshold,
};
pub use protection::{ProtectionControl, ProtectionInformation, ProtectionTags, ProtectionType};
pub use reservation::{
    AcquireAction, EXTENDED_STATUS, NO_REGISTERED_CONTROLLER, RELEASE_LENGTH, RegisterAction,
    RegisteredController, RegisteredControllerExtended, ReleaseAction, ReservationKeys,
    ReservationNotice, ReservationNotification, ReservationStatus, ReservationType,
};
pub use sanitize::{NO_ESTIMATE, SanitizeAction, SanitizeStatus, sanitize_status};
pub use self_test::{SelfTestLog, SelfTestResult};
pub use sgl::{SglDescriptor, SglKind};
pub use smart::{SmartLog, critical_warning};
pub use status::{Status, StatusCode};
pub use telemetry::{TELEMETRY_BLOCK, TelemetryHeader};

/// Length in bytes of a submission queue entry (section 4.2).
pub const SUBMISSION_ENTRY: usize = 64;

/// Length in bytes of a completion queue entry (section 4.6).
pub const COMPLETION_ENTRY: usize = 16;

/// Length in bytes of every identify data structure (section 5.15.2).
pub const IDENTIFY: usize = 4096;

/// The namespace ID that means all namespaces (section 6.1.2).
pub const BROADCAST_NSID: u32 = 0xffff_ffff;

/// Values of CNS in Identify (figure 244; values with a CSI and 08h: NVM Express 2.0, figure 273).
pub mod cns {
    /// Identify Namespace data structure of an active namespace.
    pub const NAMESPACE: u8 = 0x00;
    /// Identify Controller data structure.
    pub const CONTROLLER: u8 = 0x01;
    /// Active namespace ID list.
    pub const ACTIVE_NAMESPACES: u8 = 0x02;
    /// Namespace identification descriptor list.
    pub const DESCRIPTORS: u8 = 0x03;
    /// Namespace data structure of an I/O command set, of an active namespace.
    pub const SET_NAMESPACE: u8 = 0x05;
    /// Controller data structure of an I/O command set.
    pub const SET_CONTROLLER: u8 = 0x06;
    /// Active namespace ID list of an I/O command set.
    pub const SET_ACTIVE_NAMESPACES: u8 = 0x07;
    /// Namespace data structure that is independent of the I/O command set.
    pub const INDEPENDENT_NAMESPACE: u8 = 0x08;
    /// Allocated namespace ID list.
    pub const ALLOCATED_NAMESPACES: u8 = 0x10;
    /// Identify Namespace data structure of an allocated namespace.
    pub const ALLOCATED_NAMESPACE: u8 = 0x11;
    /// Controllers attached to a namespace.
    pub const ATTACHED_CONTROLLERS: u8 = 0x12;
    /// Controllers of the subsystem.
    pub const CONTROLLERS: u8 = 0x13;
    /// Allocated namespace ID list of an I/O command set.
    pub const SET_ALLOCATED_NAMESPACES: u8 = 0x1a;
    /// Namespace data structure of an I/O command set, of an allocated namespace.
    pub const SET_ALLOCATED_NAMESPACE: u8 = 0x1b;
    /// Combinations of I/O command sets.
    pub const COMMAND_SETS: u8 = 0x1c;
}
