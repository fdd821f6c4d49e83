//! What ends a pushed byte.

wire::named! {
    /// What ends a pushed byte. Tests leave one out, to show that each is needed.
    pub enum Ending {
        /// A later doorbell over the same slot of a submission queue.
        Doorbell "doorbell",
        /// The completion entry of the command.
        Completion "completion entry",
        /// The SQ head pointer of a completion entry.
        Head "head pointer",
        /// A completion entry that is written in pieces.
        PartialEntry "entry in pieces",
        /// A posted write of the function to the byte.
        Write "write",
        /// An Abort command for the command.
        Abort "abort",
        /// The deletion of its queue.
        QueueDeleted "queue deleted",
        /// A controller reset, or a shutdown.
        ControllerReset "controller reset",
        /// A configuration write: function level reset, D3, bus mastering, the bridges above.
        Configuration "configuration write",
        /// Bus mastering of the root port, which no configuration request on the link tells.
        RootPort "root port",
        /// A hot reset, or a lost link.
        HotReset "hot reset",
        /// Memory of the host that is mapped or unmapped.
        Mapping "mapping",
        /// A successful Doorbell Buffer Config, after which nothing is pushed.
        DoorbellBuffer "doorbell buffers",
    }
}
