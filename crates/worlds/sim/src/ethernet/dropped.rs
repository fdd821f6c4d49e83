//! A record of dropped and copied frames of streams.

use super::Frame;
use super::traffic::StreamId;

/// The IDs of frames of streams that a part of the network dropped or copied since the last
/// [`Self::take`] and [`Self::take_copied`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    dropped: Vec<u64>,
    copied: Vec<u64>,
}

impl Dropped {
    /// Records a dropped frame, if the frame belongs to a stream.
    pub(super) fn note(&mut self, frame: &Frame) {
        if StreamId::of_frame(frame.id).is_some() {
            self.dropped.push(frame.id);
        }
    }

    /// Records that `frame` was sent to `places` ports; it is dropped if there are none.
    pub(super) fn note_copies(&mut self, frame: &Frame, places: usize) {
        if StreamId::of_frame(frame.id).is_some() {
            match places.checked_sub(1) {
                None => self.dropped.push(frame.id),
                Some(more) => self.copied.extend(std::iter::repeat_n(frame.id, more)),
            }
        }
    }

    /// Removes and returns the IDs of copied frames, once per additional copy.
    pub fn take_copied(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.copied).into_iter()
    }

    /// Removes and returns the IDs of dropped frames. Call [`Self::take_copied`] first.
    pub fn take(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.dropped).into_iter()
    }

    /// Moves all IDs from `other` to `self`.
    pub(super) fn append(&mut self, other: &mut Self) {
        self.dropped.append(&mut other.dropped);
        self.copied.append(&mut other.copied);
    }
}
