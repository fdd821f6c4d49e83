//! Frames of streams that were dropped on their way.

use super::Frame;
use super::traffic::StreamId;

/// The ids of the streams' frames that a part of the network dropped since they were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped(Vec<u64>);

impl Dropped {
    /// Notes that `frame` goes no further.
    pub(super) fn note(&mut self, frame: &Frame) {
        if StreamId::of_frame(frame.id).is_some() {
            self.0.push(frame.id);
        }
    }

    /// Takes all ids.
    pub fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.0).into_iter()
    }

    /// Notes all that `other` has noted.
    pub(super) fn append(&mut self, other: &mut Self) {
        if !other.0.is_empty() {
            self.0.append(&mut other.0);
        }
    }
}
