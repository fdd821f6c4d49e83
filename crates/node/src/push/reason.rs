//! Why a command is not pushed, or only in part.

wire::named! {
    /// Why the entry of a command, or a list or data that it could have brought along, stays behind.
    pub enum Reason {
        /// The registers of the controller, its admin queue among them, were not seen.
        Controller "controller not known",
        /// Neither CAP nor the admin completion queue's doorbell told the doorbell stride.
        Stride "doorbell stride not known",
        /// A doorbell outside its queue, or an admin entry or completion entry that is not known.
        Lost "track lost until the next controller reset",
        /// Doorbell Buffer Config: submissions no longer show as doorbells.
        DoorbellBuffer "shadow doorbells",
        /// Host addresses may be those of the controller's own memory.
        OwnMemory "controller memory at host addresses",
        /// The queue is not contiguous, has other entry sizes, or its creation was not seen.
        Queue "queue not known",
        /// The queue's deletion is under way.
        QueueDeletion "queue being deleted",
        /// The device node keeps nothing, or is behind a second switch node.
        Device "device keeps nothing",
        /// The memory is only reached by messages, or the function may not read it.
        Memory "memory not at hand",
        /// One doorbell for more entries than are pushed at once.
        Burst "too many commands at one doorbell",
        /// Messages would wait for credits of the link.
        Credits "no credits",
        /// What is pushed and not complete reaches the bound.
        Bound "push bound reached",
        /// As much data as may be on their way in front of doorbells.
        Data "too much data",
        /// Identify has not told the namespace's block size, or its blocks have metadata.
        BlockSize "block size not known",
        /// The data of this opcode or format are not followed.
        Opcode "data of its opcode not known",
        /// The data pointer is not valid, or leads to more lists than are read.
        Pointer "data pointer not followed",
    }
}

/// Commands that were not pushed, or only in part, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotPushed([u64; Reason::ALL.len()]);

impl NotPushed {
    /// Counts commands.
    pub(super) fn add(&mut self, reason: Reason, commands: u64) {
        self.0[reason as usize] += commands;
    }

    /// The commands with a reason.
    pub fn get(&self, reason: Reason) -> u64 {
        self.0[reason as usize]
    }

    /// Reasons that occurred, with their commands.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.into_iter().zip(self.0).filter(|(_, commands)| *commands > 0)
    }

    /// Both, reason by reason.
    #[must_use]
    pub fn with(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|reason| of(self.0[reason], other.0[reason])))
    }
}
