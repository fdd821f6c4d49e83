//! Asynchronous traffic shaping.

use sim::ethernet::port::{Algorithm, Ats, Committed, Counted};

/// Returns a shaper that counts the bits of frames. All its streams have this rate and burst.
pub(super) fn shaper(rate: u64, burst: u64) -> Algorithm {
    Algorithm::Ats(Ats {
        committed: Committed { rate, burst },
        streams: Vec::new(),
        max_residence: None,
        counted: Counted::FrameOnly,
    })
}
