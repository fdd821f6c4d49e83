//! Asynchronous events (NVMe 1.4, section 5.2).

use std::collections::VecDeque;
use wire::nvme::AsyncEvent;

/// The maximum number of outstanding Asynchronous Event Requests: AERL + 1.
pub(crate) const EVENT_REQUESTS: usize = 4;

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

    /// Handles a read of a log page without RAE (retain asynchronous event).
    pub(crate) fn acknowledge(&mut self, log_page: u8) {
        self.masked.retain(|masked| *masked != log_page);
        self.pending.retain(|event| event.log_page != log_page);
    }
}
