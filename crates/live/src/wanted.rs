//! What a running node is asked between two turns.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Go on.
    Serve,
    /// Go on, and say what was counted so far.
    Report,
    /// End in order.
    Stop,
}
