//! Frames of streams that were dropped on their way.

use super::Frame;
use super::traffic::StreamId;

/// The ids of the streams' frames that a part of the network dropped, or made copies of, since they
/// were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    dropped: Vec<u64>,
    copied: Vec<u64>,
}

impl Dropped {
    /// Notes that `frame` goes no further.
    pub(super) fn note(&mut self, frame: &Frame) {
        if StreamId::of_frame(frame.id).is_some() {
            self.dropped.push(frame.id);
        }
    }

    /// Notes that `frame` goes on to so many places.
    pub(super) fn note_copies(&mut self, frame: &Frame, places: usize) {
        if StreamId::of_frame(frame.id).is_some() {
            match places.checked_sub(1) {
                None => self.dropped.push(frame.id),
                Some(more) => self.copied.extend(std::iter::repeat_n(frame.id, more)),
            }
        }
    }

    /// Takes the ids of frames of which there is one copy more.
    pub fn take_copied(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.copied).into_iter()
    }

    /// Takes the ids of dropped frames. Those of copies come before.
    pub fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.dropped).into_iter()
    }

    /// Notes all that `other` has noted.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.dropped.append(&mut other.dropped);
        self.copied.append(&mut other.copied);
    }
}
