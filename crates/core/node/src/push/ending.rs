//! What ends a pushed byte.

/// What ends a pushed byte. Tests leave one out, to show that each is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// A later doorbell over the same slot of a submission queue.
    Doorbell,
    /// The completion entry of the command.
    Completion,
    /// The SQ head pointer of a completion entry.
    Head,
    /// A completion entry that is written in pieces.
    PartialEntry,
    /// A posted write of the function to the byte.
    Write,
    /// An Abort command for the command.
    Abort,
    /// The deletion of its queue.
    QueueDeleted,
    /// A controller reset, or a shutdown.
    ControllerReset,
    /// A configuration write: function level reset, D3, bus mastering, the bridges above.
    Configuration,
    /// Bus mastering of the root port, which no configuration request on the link tells.
    RootPort,
    /// A hot reset, or a lost link.
    HotReset,
    /// Memory of the host that is mapped or unmapped.
    Mapping,
    /// A successful Doorbell Buffer Config, after which nothing is pushed.
    DoorbellBuffer,
}

impl Ending {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Doorbell,
        Self::Completion,
        Self::Head,
        Self::PartialEntry,
        Self::Write,
        Self::Abort,
        Self::QueueDeleted,
        Self::ControllerReset,
        Self::Configuration,
        Self::RootPort,
        Self::HotReset,
        Self::Mapping,
        Self::DoorbellBuffer,
    ];
}
