//! Why a command is not pushed, or only in part.

numbers! {
    /// Why the entry of a command, or its lists or data, are not pushed.
    pub enum Reason: u8 {
        /// The controller is disabled, or the set-up of its admin queues was not seen.
        Controller = 1 "controller not known",
        /// The doorbell stride was learned neither from CAP nor from the admin completion queue's
        /// doorbell.
        Stride = 2 "doorbell stride not known",
        /// A doorbell outside its queue, or an unknown admin or completion entry.
        Lost = 3 "controller state lost until the next controller reset",
        /// Doorbell Buffer Config: submissions are no longer visible as doorbells.
        DoorbellBuffer = 4 "shadow doorbells",
        /// Host addresses may be in the controller's own memory.
        OwnMemory = 5 "controller memory at host addresses",
        /// The queue is not contiguous, has other entry sizes, or its creation was not seen.
        Queue = 6 "queue not known",
        /// The queue's deletion is under way.
        QueueDeletion = 7 "queue being deleted",
        /// The device node accepts no pushed data, or is behind a second switch node.
        Device = 8 "device accepts no pushed data",
        /// The memory is accessible only by messages, or the function may not read it.
        Memory = 9 "memory not available",
        /// One doorbell write submits more entries than are pushed at once.
        Burst = 10 "too many commands for one doorbell write",
        /// Messages would wait for credits of the link.
        Credits = 11 "no credits",
        /// The bytes pushed for incomplete commands reach the bound.
        Bound = 12 "push bound reached",
        /// The data in flight in front of doorbells reach the limit.
        Data = 13 "too much data",
        /// The namespace's block size was not learned, or its blocks have metadata.
        BlockSize = 14 "block size not known",
        /// The data of this opcode or format are not followed.
        Opcode = 15 "opcode's data not known",
        /// The data pointer is not valid, or leads to too many lists.
        Pointer = 16 "data pointer not followed",
    }
}
