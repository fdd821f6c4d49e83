//! The status field of a completion (section 4.6.1, figures 123 to 130).

use crate::macros::{Bits, Field};
use std::fmt;

/// Status code type and status code: the type in bits 10:8, the code in 7:0.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatusCode(u16);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl StatusCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The constant's name; `None` for a code not listed here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    // Generic command status, figures 126 and 127.
    /// The command completed without error.
    SUCCESS = 0x000;
    /// The opcode is not supported.
    INVALID_OPCODE = 0x001;
    /// A field is invalid or not supported.
    INVALID_FIELD = 0x002;
    /// The command identifier is in use.
    COMMAND_ID_CONFLICT = 0x003;
    /// Data or metadata could not be transferred.
    DATA_TRANSFER_ERROR = 0x004;
    /// Aborted because power was lost.
    ABORTED_POWER_LOSS = 0x005;
    /// Something failed inside the controller.
    INTERNAL_ERROR = 0x006;
    /// Aborted by an Abort command.
    ABORT_REQUESTED = 0x007;
    /// Aborted because its submission queue is being deleted.
    ABORTED_SQ_DELETION = 0x008;
    /// The other half of a fused pair failed.
    ABORTED_FAILED_FUSED = 0x009;
    /// The other half of a fused pair is missing.
    ABORTED_MISSING_FUSED = 0x00a;
    /// The namespace or its format is invalid.
    INVALID_NAMESPACE = 0x00b;
    /// The command may not be sent now.
    COMMAND_SEQUENCE_ERROR = 0x00c;
    /// A segment or last segment descriptor is invalid.
    INVALID_SGL_SEGMENT = 0x00d;
    /// An SGL has too many descriptors.
    INVALID_SGL_COUNT = 0x00e;
    /// An SGL is too short for the data.
    DATA_SGL_LENGTH_INVALID = 0x00f;
    /// An SGL is too short for the metadata.
    METADATA_SGL_LENGTH_INVALID = 0x010;
    /// A descriptor is of a type that is not supported.
    SGL_TYPE_INVALID = 0x011;
    /// The offset of a PRP is invalid.
    INVALID_PRP_OFFSET = 0x013;
    /// The operation is denied.
    OPERATION_DENIED = 0x015;
    /// Host Identifiers of 64 and of 128 bits are used at the same time.
    HOST_IDENTIFIER_INCONSISTENT = 0x018;
    /// The Keep Alive Timer has expired.
    KEEP_ALIVE_EXPIRED = 0x019;
    /// Aborted by a Reservation Acquire with preempt and abort.
    ABORTED_PREEMPTED = 0x01b;
    /// A sanitize operation has failed: only few commands are allowed.
    SANITIZE_FAILED = 0x01c;
    /// A sanitize operation is in progress: only few commands are allowed.
    SANITIZE_IN_PROGRESS = 0x01d;
    /// The address or length of an SGL data block is not a multiple of 4 bytes.
    SGL_GRANULARITY_INVALID = 0x01e;
    /// The namespace is write protected.
    NAMESPACE_WRITE_PROTECTED = 0x020;
    /// Interrupted; the host should send the command again.
    COMMAND_INTERRUPTED = 0x021;
    /// Reservations need a Host Identifier (NVM Express 2.1, section 8.1.22).
    HOST_IDENTIFIER_NOT_INITIALIZED = 0x027;
    /// An LBA beyond the namespace.
    LBA_OUT_OF_RANGE = 0x080;
    /// The namespace's capacity is exhausted.
    CAPACITY_EXCEEDED = 0x081;
    /// The namespace is not ready.
    NAMESPACE_NOT_READY = 0x082;
    /// The reservation of another host forbids the command.
    RESERVATION_CONFLICT = 0x083;
    /// The namespace is being formatted.
    FORMAT_IN_PROGRESS = 0x084;

    // Command specific status, figures 128 and 129.
    /// The completion queue does not exist.
    COMPLETION_QUEUE_INVALID = 0x100;
    /// The queue identifier is invalid.
    INVALID_QUEUE_ID = 0x101;
    /// The queue size is invalid.
    INVALID_QUEUE_SIZE = 0x102;
    /// Too many Abort commands at once.
    ABORT_LIMIT_EXCEEDED = 0x103;
    /// Too many Asynchronous Event Requests at once.
    ASYNC_EVENT_LIMIT_EXCEEDED = 0x105;
    /// The firmware slot does not exist, or is read only.
    INVALID_FIRMWARE_SLOT = 0x106;
    /// The data to activate are not a firmware image.
    INVALID_FIRMWARE_IMAGE = 0x107;
    /// The interrupt vector does not exist.
    INVALID_INTERRUPT_VECTOR = 0x108;
    /// The log page is not supported.
    INVALID_LOG_PAGE = 0x109;
    /// The LBA format is not supported.
    INVALID_FORMAT = 0x10a;
    /// A completion queue still has submission queues.
    INVALID_QUEUE_DELETION = 0x10c;
    /// The feature cannot be saved.
    FEATURE_NOT_SAVEABLE = 0x10d;
    /// The feature cannot be changed.
    FEATURE_NOT_CHANGEABLE = 0x10e;
    /// The feature belongs to the controller, not to a namespace.
    FEATURE_NOT_NAMESPACE_SPECIFIC = 0x10f;
    /// A piece of a firmware image overlaps another one.
    OVERLAPPING_RANGE = 0x114;
    /// There is less capacity left than the namespace needs.
    INSUFFICIENT_CAPACITY = 0x115;
    /// Every NSID is in use.
    NAMESPACE_ID_UNAVAILABLE = 0x116;
    /// The namespace is attached to the controller already.
    NAMESPACE_ALREADY_ATTACHED = 0x118;
    /// The namespace can be attached to one controller only.
    NAMESPACE_IS_PRIVATE = 0x119;
    /// The namespace is not attached to the controller.
    NAMESPACE_NOT_ATTACHED = 0x11a;
    /// The namespace would have less capacity than size.
    THIN_PROVISIONING_NOT_SUPPORTED = 0x11b;
    /// The controller list is invalid, or names a controller that is not an I/O controller.
    CONTROLLER_LIST_INVALID = 0x11c;
    /// A device self-test is in progress.
    SELF_TEST_IN_PROGRESS = 0x11d;
    /// The attributes of a Dataset Management, Read or Write contradict each other.
    CONFLICTING_ATTRIBUTES = 0x180;
    /// PRINFO or the reference tag does not fit the protection of the namespace.
    INVALID_PROTECTION_INFORMATION = 0x181;
    /// An attempt to write to a read only range.
    WRITE_TO_READ_ONLY_RANGE = 0x182;
    /// A Copy has more or longer ranges than allowed (NVM Command Set 1.0, section 3.2.2).
    COMMAND_SIZE_LIMIT_EXCEEDED = 0x183;

    // Media and data integrity errors, figure 130.
    /// The data could not be committed to the media.
    WRITE_FAULT = 0x280;
    /// The data could not be read from the media.
    UNRECOVERED_READ_ERROR = 0x281;
    /// The guard of a block does not match its data.
    GUARD_CHECK_ERROR = 0x282;
    /// A block has another application tag.
    APPLICATION_TAG_CHECK_ERROR = 0x283;
    /// A block has another reference tag.
    REFERENCE_TAG_CHECK_ERROR = 0x284;
    /// The data of Compare differ from the data on the media.
    COMPARE_FAILURE = 0x285;

    // Path related status, section 4.6.1.2.4.
    /// The namespace is not accessible through this controller, and never will be again.
    ASYMMETRIC_ACCESS_PERSISTENT_LOSS = 0x301;
    /// The namespace is not accessible through this controller now.
    ASYMMETRIC_ACCESS_INACCESSIBLE = 0x302;
    /// The access to the namespace through this controller is changing.
    ASYMMETRIC_ACCESS_TRANSITION = 0x303;
}

impl StatusCode {
    /// The status with this status code type (3 bits) and status code.
    pub const fn new(kind: u8, code: u8) -> Self {
        Self((kind as u16 & 7) << 8 | code as u16)
    }

    /// Status code type: 0 generic, 1 command specific, 2 media and data
    /// integrity, 3 path related, 7 vendor specific.
    pub const fn kind(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Status code.
    pub const fn code(self) -> u8 {
        self.0 as u8
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "{:#05x}", self.0),
        }
    }
}

impl fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

register! {
    /// The status field without the phase tag: 15 bits (figure 123).
    pub struct Status: u16, {
        /// SCT and SC.
        code: StatusCode = [0, 11],
        /// CRD, 2 bits: number of the command retry delay that applies.
        retry_delay: u8 = [11, 2],
        /// M: the error log has more information.
        more: bool = [13, 1],
        /// DNR: the same command would fail again.
        do_not_retry: bool = [14, 1],
    }
}

impl Bits for StatusCode {
    fn from_field(bits: u64) -> Self {
        Self(bits as u16)
    }
}

impl From<StatusCode> for u64 {
    fn from(code: StatusCode) -> Self {
        code.0.into()
    }
}

/// The status is in bits 15:1, above the phase tag.
impl Field for Status {
    const SIZE: usize = 2;

    fn get(bytes: &[u8], at: usize) -> Self {
        Self::from_bits(u16::get(bytes, at) >> 1)
    }

    fn put(self, bytes: &mut [u8], at: usize) {
        (u16::get(bytes, at) | self.bits() << 1).put(bytes, at);
    }
}

impl Status {
    /// Success.
    pub const SUCCESS: Self = Self::retry(StatusCode::SUCCESS);

    /// A status without DNR, so the host may try again.
    pub const fn retry(code: StatusCode) -> Self {
        Self { code, retry_delay: 0, more: false, do_not_retry: false }
    }

    /// A status with DNR set.
    pub const fn fail(code: StatusCode) -> Self {
        Self { code, retry_delay: 0, more: false, do_not_retry: true }
    }

    /// Whether the command succeeded.
    pub const fn is_success(self) -> bool {
        self.code.0 == 0
    }
}
