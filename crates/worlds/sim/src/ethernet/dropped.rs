//! Frames of streams that were dropped on their way.

use super::Frame;
use super::traffic::StreamId;

/// The IDs of streams' frames that a part of the network dropped or copied since they were last
/// taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    dropped: Vec<u64>,
    copied: Vec<u64>,
}

impl Dropped {
    /// Notes that `frame` is dropped.
    pub(super) fn note(&mut self, frame: &Frame) {
        if StreamId::of_frame(frame.id).is_some() {
            self.dropped.push(frame.id);
        }
    }

    /// Notes that `frame` goes on to `places` places.
    pub(super) fn note_copies(&mut self, frame: &Frame, places: usize) {
        if StreamId::of_frame(frame.id).is_some() {
            match places.checked_sub(1) {
                None => self.dropped.push(frame.id),
                Some(more) => self.copied.extend(std::iter::repeat_n(frame.id, more)),
            }
        }
    }

    /// Takes the IDs of copied frames, once per additional copy.
    pub fn take_copied(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.copied).into_iter()
    }

    /// Takes the IDs of dropped frames. Take the IDs of copied frames first.
    pub fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.dropped).into_iter()
    }

    /// Moves the notes of `other` here.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.dropped.append(&mut other.dropped);
        self.copied.append(&mut other.copied);
    }
}
