//! Asynchronous events (NVMe 1.4, section 5.2).

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::nvme::AsyncEvent;

/// The maximum number of outstanding Asynchronous Event Requests: AERL + 1.
pub(crate) const EVENT_REQUESTS: usize = 4;

/// [`AsyncEvents`] over the end of a process.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedEvents {
    requests: Vec<u16>,
    pending: Vec<u32>,
    masked: Vec<u8>,
}

/// Outstanding Asynchronous Event Requests, and pending events.
#[derive(Debug, Default)]
pub(crate) struct AsyncEvents {
    /// Command identifiers of the requests, oldest first.
    requests: VecDeque<u16>,
    /// Pending events, each at most once.
    pending: VecDeque<AsyncEvent>,
    /// Log pages that a host must read before their events are reported again.
    masked: Vec<u8>,
}

impl AsyncEvents {
    /// What is to be kept over the end of the process: the requests, the pending events as dword 0
    /// of a completion, and the masked log pages. `reported` were taken last, but their completions
    /// are lost with the process.
    pub(crate) fn save(&self, reported: &[(u16, AsyncEvent)]) -> SavedEvents {
        let (cids, events): (Vec<u16>, Vec<AsyncEvent>) = reported.iter().copied().unzip();
        let unmasked = |page: &u8| events.iter().all(|event| event.log_page != *page);
        SavedEvents {
            requests: cids.into_iter().chain(self.requests.iter().copied()).collect(),
            pending: events.iter().chain(&self.pending).map(|event| event.bits()).collect(),
            masked: self.masked.iter().copied().filter(unmasked).collect(),
        }
    }

    /// Goes on from what was saved.
    pub(crate) fn restore(saved: SavedEvents) -> Self {
        let SavedEvents { requests, pending, masked } = saved;
        let pending = pending.into_iter().map(AsyncEvent::from_bits).collect();
        Self { requests: requests.into(), pending, masked }
    }

    pub(crate) fn requests(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn request(&mut self, cid: u16) {
        self.requests.push_back(cid);
    }

    /// Removes a request; `false` if there is none with this identifier.
    pub(crate) fn withdraw(&mut self, cid: u16) -> bool {
        let at = self.requests.iter().position(|request| *request == cid);
        at.is_some_and(|at| self.requests.remove(at).is_some())
    }

    /// Raises an event, unless it is pending or its log page is unread.
    pub(crate) fn raise(&mut self, event: AsyncEvent) {
        if !self.pending.contains(&event) && !self.masked.contains(&event.log_page) {
            self.pending.push_back(event);
        }
    }

    /// Whether [`take`](Self::take) would return an event.
    pub(crate) fn is_due(&self) -> bool {
        !self.requests.is_empty() && self.next().is_some()
    }

    /// Removes the next event and the oldest request; returns the request's identifier and the
    /// event. Further events of the same log page wait until the host reads the page.
    pub(crate) fn take(&mut self) -> Option<(u16, AsyncEvent)> {
        let at = self.next()?;
        let cid = self.requests.pop_front()?;
        let event = self.pending.remove(at)?;
        self.masked.push(event.log_page);
        Some((cid, event))
    }

    fn next(&self) -> Option<usize> {
        self.pending.iter().position(|event| !self.masked.contains(&event.log_page))
    }

    /// Whether any event is pending.
    pub(crate) fn any_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Removes all pending events.
    pub(crate) fn take_pending(&mut self) -> Vec<AsyncEvent> {
        self.pending.drain(..).collect()
    }

    /// Handles a read of a log page without RAE (retain asynchronous event).
    pub(crate) fn acknowledge(&mut self, log_page: u8) {
        self.masked.retain(|masked| *masked != log_page);
        self.pending.retain(|event| event.log_page != log_page);
    }
}
