//! Local settings of what carries links.

use super::gate::LineGate;
use super::marking::Marking;
use super::raw::RawSettings;

/// Local settings of the connections of a node.
#[derive(Clone, Debug, Default)]
pub struct LinkSettings {
    /// Those of raw Ethernet alone.
    pub raw: RawSettings,
    /// The marks of what is sent.
    pub marking: Marking,
    /// The gate in front of the line; over TCP only the hand-over to the kernel waits for it: when
    /// segments, acknowledgements and retransmissions leave, the kernel decides.
    pub gate: Option<LineGate>,
}

impl From<RawSettings> for LinkSettings {
    fn from(raw: RawSettings) -> Self {
        Self { raw, ..Self::default() }
    }
}
