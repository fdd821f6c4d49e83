//! The Persistent Event log page (section 5.14.1.13): a header, then events. Each event has a
//! header, and data that depend on the event's type.

numbers! {
    /// Event type, and its bit in the Supported Events Bitmap.
    pub enum PersistentEventType: u8 {
        /// SMART / Health Log Snapshot: a [`SmartLog`](super::SmartLog).
        Smart = 0x01,
        /// Firmware Commit: a [`FirmwareCommitEvent`].
        FirmwareCommit = 0x02,
        /// Timestamp Change: a [`TimestampChangeEvent`].
        TimestampChange = 0x03,
        /// Power-on or Reset: a [`PowerOnEvent`].
        PowerOn = 0x04,
        /// Change Namespace: a [`ChangeNamespaceEvent`].
        ChangeNamespace = 0x06,
        /// Format NVM Start: a [`FormatStartEvent`].
        FormatStart = 0x07,
        /// Format NVM Completion: a [`FormatCompletionEvent`].
        FormatCompletion = 0x08,
        /// Sanitize Start: a [`SanitizeStartEvent`].
        SanitizeStart = 0x09,
        /// Sanitize Completion: a [`SanitizeCompletionEvent`].
        SanitizeCompletion = 0x0a,
        /// Set Feature: a [`SetFeatureEvent`].
        SetFeature = 0x0b,
        /// Thermal Excursion: a [`ThermalExcursionEvent`].
        ThermalExcursion = 0x0d,
    }
}

impl PersistentEventType {
    /// Size of the data of an event of this type in bytes.
    pub const fn length(self) -> usize {
        match self {
            Self::Smart => super::SmartLog::LENGTH,
            Self::FirmwareCommit => FirmwareCommitEvent::LENGTH,
            Self::TimestampChange => TimestampChangeEvent::LENGTH,
            Self::PowerOn => PowerOnEvent::LENGTH,
            Self::ChangeNamespace => ChangeNamespaceEvent::LENGTH,
            Self::FormatStart => FormatStartEvent::LENGTH,
            Self::FormatCompletion => FormatCompletionEvent::LENGTH,
            Self::SanitizeStart => SanitizeStartEvent::LENGTH,
            Self::SanitizeCompletion => SanitizeCompletionEvent::LENGTH,
            Self::SetFeature => SetFeatureEvent::LENGTH,
            Self::ThermalExcursion => ThermalExcursionEvent::LENGTH,
        }
    }
}

layout! {
    decode encode
    /// The header of the page. Fields reserved in 1.4 (generation number and reporting context of
    /// 2.0) are zero.
    pub struct PersistentEventLog: 512, {
        /// The log page identifier, 0Dh.
        id: u8 = 0,
        /// TNEV: events in the page.
        events: u32 = 4,
        /// TLL: bytes of the page, this header included.
        length: u64 = 8,
        /// Log Revision: 1.
        revision: u8 = 16,
        /// Log Header Length: bytes of this header after this field.
        header_length: u16 = 18,
        /// When the reporting context was established, as in the data of Timestamp.
        timestamp: u64 = 20,
        /// Power on hours.
        hours: u128 = 28,
        /// Power cycles.
        power_cycles: u64 = 44,
        /// VID, as in Identify Controller.
        vendor: u16 = 52,
        /// SSVID.
        subsystem_vendor: u16 = 54,
        /// SN.
        serial: [u8; 20] = 56,
        /// MN.
        model: [u8; 40] = 76,
        /// SUBNQN.
        subsystem_nqn: [u8; 256] = 116,
        /// Supported Events Bitmap: a bit for each event type.
        supported: [u8; 32] = 480,
    }
}

impl PersistentEventLog {
    /// Log Revision of NVMe 1.4.
    pub const REVISION: u8 = 1;
    /// Log Header Length: 512 minus the bytes up to the end of this field.
    pub const HEADER_LENGTH: u16 = Self::LENGTH as u16 - 20;

    /// The Supported Events Bitmap with all types of [`PersistentEventType`].
    pub fn all_types() -> [u8; 32] {
        let mut bitmap = [0; 32];
        for event in PersistentEventType::ALL {
            bitmap[usize::from(event as u8 / 8)] |= 1 << (event as u8 % 8);
        }
        bitmap
    }
}

impl Default for PersistentEventLog {
    fn default() -> Self {
        Self::decode(&[0; Self::LENGTH])
    }
}

layout! {
    decode encode
    /// The header of an event.
    #[derive(Default)]
    pub struct PersistentEventHeader: 24, {
        /// Event Type, see [`PersistentEventType`].
        kind: u8 = 0,
        /// Event Type Revision.
        revision: u8 = 1,
        /// Event Header Length: bytes of this header after this field.
        header_length: u8 = 2,
        /// CNTLID of the controller; FFFFh for events without a controller.
        controller: u16 = 4,
        /// Time of the event, as in the data of Timestamp.
        timestamp: u64 = 6,
        /// VSIL: vendor specific bytes before the data.
        vendor_length: u16 = 20,
        /// Event Length: bytes after this header.
        length: u16 = 22,
    }
}

impl PersistentEventHeader {
    /// Event Type Revision of all types of [`PersistentEventType`] in NVMe 1.4.
    pub const REVISION: u8 = 1;
    /// Event Header Length: 24 minus the bytes up to the end of this field.
    pub const HEADER_LENGTH: u8 = Self::LENGTH as u8 - 3;
}

layout! {
    decode encode
    /// The data of Firmware Commit.
    #[derive(Default)]
    pub struct FirmwareCommitEvent: 22, {
        /// Revision that was active before, ASCII.
        old: [u8; 8] = 0,
        /// Revision that was to become active, ASCII.
        new: [u8; 8] = 8,
        /// Commit Action.
        action: u8 = 16,
        /// Firmware Slot, as in the command.
        slot: u8 = 17,
        /// Status code type of the command's completion.
        status_type: u8 = 18,
        /// Status code of the command's completion.
        status: u8 = 19,
    }
}

layout! {
    decode encode
    /// The data of Timestamp Change.
    #[derive(Default)]
    pub struct TimestampChangeEvent: 16, {
        /// The former timestamp.
        previous: u64 = 0,
        /// Milliseconds since the last controller level reset.
        since_reset: u64 = 8,
    }
}

layout! {
    decode encode
    /// The data of Power-on or Reset with one Controller Reset Information descriptor.
    #[derive(Default)]
    pub struct PowerOnEvent: 44, {
        /// The active firmware revision, ASCII.
        firmware: [u8; 8] = 0,
        /// CNTLID of the controller.
        controller: u16 = 8,
        /// Firmware Activation: 1 if another firmware became active.
        activation: u8 = 10,
        /// Operation in Progress.
        operation: u8 = 11,
        /// Controller Power Cycle: power cycles so far.
        power_cycle: u32 = 24,
        /// Milliseconds since power-on.
        milliseconds: u64 = 28,
        /// Controller Timestamp.
        timestamp: u64 = 36,
    }
}

layout! {
    decode encode
    /// The data of Change Namespace: the fields of a Namespace Management command.
    #[derive(Default)]
    pub struct ChangeNamespaceEvent: 48, {
        /// Command dword 10: SEL.
        command: u32 = 0,
        /// NSZE in blocks.
        size: u64 = 8,
        /// NCAP in blocks.
        capacity: u64 = 16,
        /// FLBAS.
        formatted: u8 = 32,
        /// DPS.
        protection: u8 = 33,
        /// NMIC.
        sharing: u8 = 34,
        /// ANAGRPID.
        access_group: u32 = 36,
        /// NVMSETID.
        nvm_set: u16 = 40,
        /// NSID of the namespace.
        nsid: u32 = 44,
    }
}

layout! {
    decode encode
    /// The data of Format NVM Start.
    #[derive(Default)]
    pub struct FormatStartEvent: 12, {
        /// NSID of the command.
        nsid: u32 = 0,
        /// FNA, as in Identify Controller.
        attributes: u8 = 4,
        /// Command dword 10.
        command: u32 = 8,
    }
}

layout! {
    decode encode
    /// The data of Format NVM Completion.
    #[derive(Default)]
    pub struct FormatCompletionEvent: 12, {
        /// NSID of the command.
        nsid: u32 = 0,
        /// Smallest Format Progress Indicator.
        progress: u8 = 4,
        /// Format NVM Status: bit 0, there was an error.
        result: u8 = 5,
        /// Status Field of the command's completion, with the phase tag in bit 0.
        status: u16 = 8,
    }
}

layout! {
    decode encode
    /// The data of Sanitize Start.
    #[derive(Default)]
    pub struct SanitizeStartEvent: 12, {
        /// SANICAP, as in Identify Controller.
        capabilities: u32 = 0,
        /// Command dword 10.
        command: u32 = 4,
        /// Command dword 11.
        pattern: u32 = 8,
    }
}

layout! {
    decode encode
    /// The data of Sanitize Completion, as in Sanitize Status.
    #[derive(Default)]
    pub struct SanitizeCompletionEvent: 8, {
        /// SPROG.
        progress: u16 = 0,
        /// SSTAT, bits 2:0, see [`sanitize_status`](super::sanitize_status).
        status: u8 = 2 [0, 3],
        /// SSTAT, bits 7:3: completed passes of an overwrite.
        passes: u8 = 2 [3, 5],
    }
}

layout! {
    decode encode
    /// The data of Set Feature with two command dwords and no data.
    #[derive(Default)]
    pub struct SetFeatureEvent: 12, {
        /// Dword Count, bits 2:0: number of command dwords that follow.
        count: u8 = 0 [0, 3],
        /// Command dwords 10 and 11.
        command: [u32; 2] = 4,
    }
}

layout! {
    decode encode
    /// The data of Thermal Excursion.
    #[derive(Default)]
    pub struct ThermalExcursionEvent: 2, {
        /// Difference between the temperature and the threshold in kelvin.
        difference: u8 = 0,
        /// Threshold, see [`thermal_threshold`].
        threshold: u8 = 1,
    }
}

/// Thresholds of [`ThermalExcursionEvent`] (NVM Express 2.1, figure 248).
pub mod thermal_threshold {
    /// The composite temperature reached WCTEMP.
    pub const WARNING: u8 = 0x01;
    /// The composite temperature reached CCTEMP.
    pub const CRITICAL: u8 = 0x02;
    /// The composite temperature is below WCTEMP again.
    pub const NORMAL: u8 = 0x88;
}
