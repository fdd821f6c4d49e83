//! Frames of a recording, as a pattern of a stream.

use std::fmt;
use std::sync::Arc;
use wire::{Duration, Instant};

/// The frames of a recording: time since the first frame, which never falls, and bytes from header
/// to FCS, without tag.
pub type Frames = Box<dyn Iterator<Item = (Duration, usize)>>;

/// A recording that can be read several times.
pub trait Recorded: fmt::Debug + Send + Sync {
    /// Starts at the first frame. After an error of reading, the frames end.
    fn open(&self) -> Frames;

    /// The error that ended frames, in one line.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// A recording with the figures of its frames.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The frames.
    pub frames: Arc<dyn Recorded>,
    /// Mean time between two frames, above zero.
    pub interval: Duration,
    /// Mean length of the frames in bytes.
    pub length: usize,
    /// Whether the recording starts again, one mean interval after its last frame.
    pub repeats: bool,
}

impl PartialEq for Recording {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.frames, &other.frames) && self.repeats == other.repeats
    }
}

impl Eq for Recording {}

/// A recording that is being replayed.
pub(super) struct Replay {
    recording: Recording,
    frames: Frames,
    /// Time of the first frame, moved with each repetition.
    start: Instant,
    last: Instant,
}

impl Replay {
    pub fn new(recording: Recording, start: Instant) -> Self {
        Self { frames: recording.frames.open(), recording, start, last: start }
    }

    /// When the next frame is due, and its length.
    pub fn next(&mut self) -> Option<(Instant, usize)> {
        let mut next = self.frames.next();
        if next.is_none() && self.recording.repeats {
            self.start = self.last + self.recording.interval;
            self.frames = self.recording.frames.open();
            next = self.frames.next();
        }
        let (after, length) = next?;
        self.last = self.start + after;
        Some((self.last, length))
    }
}

impl fmt::Debug for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").field("last", &self.last).finish_non_exhaustive()
    }
}
