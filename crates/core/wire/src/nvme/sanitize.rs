//! Sanitize (section 5.24) and its log page (section 5.14.1.16.2).

numbers! {
    /// SANACT of Sanitize (figure 329).
    pub enum SanitizeAction: u32 {
        /// 001b: leaves the failure mode.
        ExitFailureMode = 1,
        /// 010b.
        BlockErase = 2,
        /// 011b.
        Overwrite = 3,
        /// 100b.
        CryptoErase = 4,
    }
}

/// SSTAT, bits 2:0: the most recent operation (figure 208).
pub mod sanitize_status {
    /// No sanitize operation has been started.
    pub const NEVER: u8 = 0;
    /// The operation was successful.
    pub const COMPLETED: u8 = 1;
    /// The operation is under way.
    pub const IN_PROGRESS: u8 = 2;
    /// The operation failed.
    pub const FAILED: u8 = 3;
}

/// The value of an estimated time that is not reported.
pub const NO_ESTIMATE: u32 = u32::MAX;

layout! {
    decode encode
    /// Sanitize Status (figure 208).
    #[derive(Default)]
    pub struct SanitizeStatus: 512, {
        /// SPROG: progress in units of 1/65536; FFFFh if no operation is under way.
        progress: u16 = 0,
        /// SSTAT, bits 2:0, see [`sanitize_status`].
        status: u8 = 2 [0, 3],
        /// SSTAT, bits 7:3: completed passes of an overwrite.
        passes: u8 = 2 [3, 5],
        /// SSTAT, bit 8, Global Data Erased: nothing was written since the operation.
        erased: bool = 3,
        /// SCDW10: command dword 10 of the command that started the operation.
        command: u32 = 4,
        /// Estimated seconds of an overwrite, a block erase and a crypto erase; then of these three
        /// operations without deallocation.
        estimates: [[u8; 4]; 6] = 8,
    }
}
