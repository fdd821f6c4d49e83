//! States that a campaign must have reached.

use schemars::JsonSchema;
use serde::Serialize;

/// A state that some seed of a large campaign must reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// A session waited for a connection.
    Interrupted,
    /// A session went on over another connection.
    Resumed,
    /// Frames were sent again over another connection.
    SentAgain,
    /// No TLPs left because the far side had not acknowledged the kept frames.
    ReplayFull,
    /// The same, while the session waited for a connection.
    ReplayFullWhileInterrupted,
    /// A session without a connection was given up.
    GivenUp,
    /// A link came up again after it was down.
    BackAgain,
    /// A driver reset its drives while their link waited for a connection.
    ResetWhileInterrupted,
    /// A command failed by an injected error of the media.
    MediaErrorSeen,
    /// Commands were lost with the power of a device node.
    LostWithPower,
    /// A drive lost its contents.
    ContentsLost,
    /// A driver reset a drive that had not completed a command.
    ResetAfterLostCompletion,
    /// Raw Ethernet dropped a duplicate frame.
    DuplicateDropped,
    /// A station sent data again.
    Retransmitted,
    /// The queue of a bridge was full.
    QueueFull,
    /// A drive read pushed bytes.
    PushUsed,
    /// Pushed bytes were invalidated before a drive read them.
    PushInvalidated,
    /// A drive moved to another host.
    Moved,
    /// Several hosts used a drive at the same time.
    Shared,
    /// The other path took over.
    FailedOver,
    /// Both paths were lost.
    BothPathsLost,
    /// A session went on in another process after a kill.
    RestoredAfterKill,
    /// A session behind a switch node went on.
    ResumedBehindSwitchNode,
}

impl Condition {
    /// All conditions.
    pub const ALL: [Self; 23] = [
        Self::Interrupted,
        Self::Resumed,
        Self::SentAgain,
        Self::ReplayFull,
        Self::ReplayFullWhileInterrupted,
        Self::GivenUp,
        Self::BackAgain,
        Self::ResetWhileInterrupted,
        Self::MediaErrorSeen,
        Self::LostWithPower,
        Self::ContentsLost,
        Self::ResetAfterLostCompletion,
        Self::DuplicateDropped,
        Self::Retransmitted,
        Self::QueueFull,
        Self::PushUsed,
        Self::PushInvalidated,
        Self::Moved,
        Self::Shared,
        Self::FailedOver,
        Self::BothPathsLost,
        Self::RestoredAfterKill,
        Self::ResumedBehindSwitchNode,
    ];
}
