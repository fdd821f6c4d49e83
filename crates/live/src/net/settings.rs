//! Local settings of what carries links.

use super::marking::Marking;
use super::raw::RawSettings;

/// Local settings of the connections of a node.
#[derive(Clone, Debug, Default)]
pub struct LinkSettings {
    /// Those of raw Ethernet alone.
    pub raw: RawSettings,
    /// The marks of what is sent.
    pub marking: Marking,
}

impl From<RawSettings> for LinkSettings {
    fn from(raw: RawSettings) -> Self {
        Self { raw, ..Self::default() }
    }
}
