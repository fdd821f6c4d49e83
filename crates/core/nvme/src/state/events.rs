//! The record `events`: the persistent event log.

use super::check::{self, Check, Problem};
use super::{MAX_CONTROLLER, hex};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use wire::nvme::{PersistentEventHeader, PersistentEventLog, PersistentEventType};

/// The maximum number of bytes of the log page, its header included.
pub(crate) const MAX_LOG: usize = 32 << 10;
/// CNTLID of events without a controller.
pub(crate) const NO_CONTROLLER: u16 = 0xffff;

/// The events of a drive (NVMe 1.4, section 5.14.1.13), oldest first, limited to a log page of 32
/// KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventLog(pub VecDeque<LoggedEvent>);

/// An event of the persistent event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoggedEvent {
    /// Event type; one of [`PersistentEventType`].
    pub kind: u8,
    /// CNTLID of the controller, FFFFh without one.
    pub controller: u16,
    /// Time of the event, as in the data of the feature Timestamp.
    pub timestamp: u64,
    /// Data of the event. The length depends on the type.
    #[serde(with = "hex::bytes")]
    pub data: Vec<u8>,
}

impl LoggedEvent {
    /// Number of bytes of the event in the log page.
    fn length(&self) -> usize {
        PersistentEventHeader::LENGTH + self.data.len()
    }
}

impl EventLog {
    /// Number of bytes of the log page.
    fn length(&self) -> usize {
        PersistentEventLog::LENGTH + self.0.iter().map(LoggedEvent::length).sum::<usize>()
    }

    /// Adds an event. Drops the oldest events if the log page would be too long.
    pub(crate) fn add(&mut self, event: LoggedEvent) {
        self.0.push_back(event);
        while self.length() > MAX_LOG {
            self.0.pop_front();
        }
    }
}

impl Check for EventLog {
    fn check(&self) -> Result<(), Problem> {
        check::range("bytes of the page", self.length(), PersistentEventLog::LENGTH, MAX_LOG)?;
        self.0.iter().try_for_each(Check::check)
    }
}

impl Check for LoggedEvent {
    fn check(&self) -> Result<(), Problem> {
        let Self { kind, controller, data, .. } = self;
        let Some(known) = PersistentEventType::from_number(*kind) else {
            return Err(format!("kind: invalid value '{kind}': expected 1 to 4, 6 to 11 or 13"));
        };
        check::range("bytes of data", data.len(), known.length(), known.length())?;
        if *controller == NO_CONTROLLER {
            return Ok(());
        }
        check::range("controller", *controller, 1, MAX_CONTROLLER)
    }
}
