//! What the device's end of a link remembers over the end of its process.

use super::replay::Kept;
use super::resets::ReceivedResets;
use super::session::{DEVICE_WAITS, Session};
use super::{Cause, Interruption, Tunnel};
use bytes::Bytes;
use pcie::endpoint::{ForeignState, Unsent};
use serde::{Deserialize, Serialize};
use wire::frame::{Control, Grant, Paths};
use wire::{Duration, Instant};

/// Headers and data of a [`Grant`].
type Credits = [(u32, u32); 3];

/// Where the payload of a frame is stored: offset and number of bytes.
pub type Place = (u64, u32);

/// The state of a session that goes on in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedSession {
    id: u128,
    survives_ns: u64,
    /// With several paths, whether each carries everything.
    both: Option<bool>,
    next_sequence: u32,
    expected: u32,
    acknowledged: u32,
    /// Number of the latest reset.
    reset: u32,
    /// Credits of the far side: used, limits.
    sent: [Credits; 2],
    /// Completions and messages in the aggregation queue.
    queued: Bytes,
    /// Credits of this end: received, consumed, advertised.
    received: [Credits; 3],
    /// TLPs that the function has not taken.
    waiting: Bytes,
    kept: Vec<SavedKept>,
}

/// A sent frame that the far side may not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SavedKept {
    Frame(u32, Place),
    ResetDone(u32),
}

impl SavedSession {
    pub(crate) fn is_awaited_after(&self, away: Duration) -> bool {
        away + DEVICE_WAITS < Duration::from_ns(self.survives_ns)
    }
}

fn credits(grants: [Grant; 3]) -> Credits {
    grants.map(|Grant { headers, data }| (headers, data))
}

fn grants(credits: Credits) -> [Grant; 3] {
    credits.map(|(headers, data)| Grant { headers, data })
}

impl Session {
    fn save(&self, place: &mut dyn FnMut(u64, &Bytes) -> Place) -> Option<SavedSession> {
        let survives = self.survives()?;
        let (used, limits, queued) = self.queue.save();
        let (received, waiting) = self.receiver.save();
        let kept = self.replay.entries().filter_map(|(number, kept)| match kept {
            Kept::Frame { sequence, payload, .. } => {
                Some(SavedKept::Frame(*sequence, place(number, payload)))
            }
            Kept::Control(Control::ResetDone(number)) => Some(SavedKept::ResetDone(*number)),
            Kept::Control(_) => None,
        });
        Some(SavedSession {
            id: self.id,
            survives_ns: survives.as_ns(),
            both: self.paths.map(|paths| paths == Paths::Both),
            next_sequence: self.next_sequence,
            expected: self.expected,
            acknowledged: self.acknowledged,
            reset: self.received_resets.latest(),
            sent: [credits(used), credits(limits)],
            queued,
            received: received.map(credits),
            waiting,
            kept: kept.collect(),
        })
    }

    fn restore(
        &mut self,
        saved: &SavedSession,
        bytes: &mut dyn FnMut(Place) -> Option<Bytes>,
    ) -> Result<(), ForeignState> {
        self.id = saved.id;
        self.survives = Some(Duration::from_ns(saved.survives_ns));
        self.paths = saved.both.map(|both| if both { Paths::Both } else { Paths::Active });
        self.next_sequence = saved.next_sequence;
        (self.expected, self.acknowledged) = (saved.expected, saved.acknowledged);
        self.received_resets = ReceivedResets::after(saved.reset);
        let [used, limits] = saved.sent.map(grants);
        let queued = self.queue.restore((used, limits, saved.queued.clone()));
        let waiting = self.receiver.restore((saved.received.map(grants), saved.waiting.clone()));
        queued.and(waiting).map_err(|_| ForeignState)?;
        for kept in &saved.kept {
            self.replay.keep_again(match kept {
                SavedKept::Frame(sequence, place) => {
                    let payload = bytes(*place).ok_or(ForeignState)?;
                    Kept::Frame { sequence: *sequence, payload, trace_ids: Vec::new() }
                }
                SavedKept::ResetDone(number) => Kept::Control(Control::ResetDone(*number)),
            });
        }
        Ok(())
    }
}

impl Tunnel {
    /// The state of the session now; `None` if there is none that survives its connections. `place`
    /// stores the payload of each frame that the far side may not have, by a number that is never
    /// reused.
    pub fn save(&self, place: &mut dyn FnMut(u64, &Bytes) -> Place) -> Option<SavedSession> {
        self.session.save(place)
    }

    /// Goes on with the session of an earlier process, which is interrupted. `bytes` returns the
    /// payloads of frames.
    ///
    /// # Errors
    /// If the state is damaged.
    pub fn restore(
        &mut self,
        now: Instant,
        saved: &SavedSession,
        bytes: &mut dyn FnMut(Place) -> Option<Bytes>,
    ) -> Result<(), ForeignState> {
        self.session.restore(saved, bytes)?;
        let until = now + Duration::from_ns(saved.survives_ns);
        self.interrupted = Some(Interruption { cause: Cause::Disconnected, until, over: false });
        Ok(())
    }

    /// What the function has sent, and no frame has yet.
    pub fn unsent(&self) -> Unsent {
        self.session.queue.unsent()
    }
}
