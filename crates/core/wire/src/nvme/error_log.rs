//! Error Information log entries (section 5.14.1.1, figure 194).

use super::Status;

layout! {
    decode encode
    /// One entry of the error log.
    #[derive(Default)]
    pub struct ErrorLogEntry: 64, {
        /// Counts errors over the controller's lifetime; 0 marks an unused entry.
        count: u64 = 0,
        /// Submission queue of the command, FFFFh if there is none.
        sq_id: u16 = 8,
        /// Command identifier, FFFFh if there is none.
        cid: u16 = 10,
        /// Status of the command.
        status: Status = 12,
        /// Phase tag of the command's completion.
        phase: bool = 12,
        /// Parameter Error Location: byte of the command in bits 7:0, bit in bits 10:8; FFFFh if
        /// the error is not in one field.
        parameter: u16 = 14,
        /// First LBA with the fault.
        lba: u64 = 16,
        /// Namespace.
        nsid: u32 = 24,
        /// Command specific information, whose meaning depends on the status.
        command_specific: u64 = 32,
    }
}
