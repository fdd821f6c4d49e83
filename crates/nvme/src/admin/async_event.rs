//! Asynchronous Event Request (NVMe 1.4, section 5.2).

use crate::controller::{Controller, Plan};
use crate::failure::Failure;
use crate::slots::Key;
use wire::nvme::{Command, StatusCode};

/// Requests that may be outstanding: AERL + 1.
pub(crate) const EVENT_REQUESTS: usize = 4;

impl Controller {
    pub(super) fn async_event_request(
        &mut self,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        if self.events.requests() >= EVENT_REQUESTS {
            return Err(Failure::permanent(StatusCode::ASYNC_EVENT_LIMIT_EXCEEDED));
        }
        self.set_aside(key);
        self.events.request(command.cid);
        Ok(Plan::Held)
    }
}
