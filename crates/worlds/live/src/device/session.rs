//! The session of a device node, which another process can go on with.

use super::Inner;
use crate::attached::Attached;
use bytes::Bytes;
use linux::time::since_boot;
use node::device::SavedNode;
use std::io;
use std::path::Path;
use storage::drive::Session;
use wire::{Duration, Instant};

/// Bytes of the time in front of a state.
const TIME: usize = 8;

/// The stored session of a device node.
pub struct NodeSession(Session);

impl NodeSession {
    /// Opens the file of a controller in the folder of a drive. Also returns the session of a process that was
    /// killed, if its host may still wait for it.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn open(folder: &Path, controller: u16) -> io::Result<(Self, Option<SavedNode>)> {
        let (session, saved) = Session::open(folder, controller)?;
        let saved = saved.and_then(|saved| {
            let (time, state) = saved.split_first_chunk::<TIME>()?;
            let away = since_boot().checked_sub(u64::from_le_bytes(*time))?;
            let state = SavedNode::decode(state).ok()?;
            state.link.is_awaited_after(Duration::from_ns(away)).then_some(state)
        });
        Ok((Self(session), saved))
    }

    /// Stores the state of a node before its effects leave.
    ///
    /// # Errors
    /// If the state is too large.
    pub(super) fn store<A: Attached>(&mut self, node: &mut Inner<A>) -> io::Result<()> {
        let (session, mut first) = (&mut self.0, true);
        let mut place = |number: u64, payload: &Bytes| {
            if std::mem::take(&mut first) {
                session.forget(number);
            }
            session.place(number, payload)
        };
        match node.save(|tapped, unsent| tapped.inner.save(unsent), &mut place) {
            Some(state) => self.0.store(|to| {
                let (time, to) = to.split_first_chunk_mut::<TIME>()?;
                *time = since_boot().to_le_bytes();
                Some(TIME + state.encode(to)?)
            }),
            None => {
                self.0.clear();
                Ok(())
            }
        }
    }

    /// Records that there is no session.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Lets the node go on with a session.
    pub(super) fn restore<A: Attached>(
        &self,
        now: Instant,
        node: &mut Inner<A>,
        saved: SavedNode,
    ) -> io::Result<()> {
        let payload = &mut |place| self.0.payload(place);
        node.restore(now, saved, payload).map_err(io::Error::other)
    }
}
