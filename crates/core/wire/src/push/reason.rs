//! Why a command is not pushed, or only in part.

numbers! {
    /// Why the entry of a command, or a list or data that it could have brought along, stays behind.
    pub enum Reason: u8 {
        /// The controller is disabled, or its admin queues were not seen.
        Controller = 1 "controller not known",
        /// Neither CAP nor the admin completion queue's doorbell told the doorbell stride.
        Stride = 2 "doorbell stride not known",
        /// A doorbell outside its queue, or an admin entry or completion entry that is not known.
        Lost = 3 "controller state lost until the next controller reset",
        /// Doorbell Buffer Config: submissions no longer show as doorbells.
        DoorbellBuffer = 4 "shadow doorbells",
        /// Host addresses may be those of the controller's own memory.
        OwnMemory = 5 "controller memory at host addresses",
        /// The queue is not contiguous, has other entry sizes, or its creation was not seen.
        Queue = 6 "queue not known",
        /// The queue's deletion is under way.
        QueueDeletion = 7 "queue being deleted",
        /// The device node keeps nothing, or is behind a second switch node.
        Device = 8 "device accepts no pushed data",
        /// The memory is only reached by messages, or the function may not read it.
        Memory = 9 "memory not available",
        /// One doorbell for more entries than are pushed at once.
        Burst = 10 "too many commands for one doorbell write",
        /// Messages would wait for credits of the link.
        Credits = 11 "no credits",
        /// What is pushed and not complete reaches the bound.
        Bound = 12 "push bound reached",
        /// As much data as may be on their way in front of doorbells.
        Data = 13 "too much data",
        /// Identify has not told the namespace's block size, or its blocks have metadata.
        BlockSize = 14 "block size not known",
        /// The data of this opcode or format are not followed.
        Opcode = 15 "opcode's data not known",
        /// The data pointer is not valid, or leads to more lists than are read.
        Pointer = 16 "data pointer not followed",
    }
}
