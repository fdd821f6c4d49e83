//! The telemetry log pages (sections 5.14.1.7 and 5.14.1.8, figures 205 and 206).

layout! {
    decode encode
    /// The header of a telemetry log page, host-initiated or controller-initiated. Other fields are
    /// zero.
    pub struct TelemetryHeader: 512, {
        /// The log page identifier.
        id: u8 = 0,
        /// IEEE OUI.
        ieee: [u8; 3] = 5,
        /// The last blocks of data areas 1, 2 and 3. Each area begins at block 1; 0 if the area is
        /// empty.
        last_blocks: [u16; 3] = 8,
        /// Whether controller-initiated data are available: 0 or 1.
        controller_data: u8 = 382,
        /// Generation number of the controller-initiated data.
        controller_generation: u8 = 383,
        /// Reason identifier, vendor specific.
        reason: [u8; 128] = 384,
    }
}

impl Default for TelemetryHeader {
    fn default() -> Self {
        Self::decode(&[0; Self::LENGTH])
    }
}

/// Length in bytes of a telemetry data block.
pub const TELEMETRY_BLOCK: usize = 512;
