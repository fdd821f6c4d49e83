//! The admin command set (NVMe 1.4, section 5), a file a command family.

mod abort;
mod features;
mod identify;
mod log_page;
mod queues;

use crate::controller::Controller;
use crate::events::EVENT_REQUESTS;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::slots::Key;
use crate::subsystem::Shared;
use wire::nvme::opcode::admin;
use wire::nvme::{Command, StatusCode};

/// Every supported opcode, for the Commands Supported and Effects log.
const SUPPORTED: [u8; 10] = [
    admin::DELETE_SQ,
    admin::CREATE_SQ,
    admin::GET_LOG_PAGE,
    admin::DELETE_CQ,
    admin::CREATE_CQ,
    admin::IDENTIFY,
    admin::ABORT,
    admin::SET_FEATURES,
    admin::GET_FEATURES,
    admin::ASYNC_EVENT_REQUEST,
];

impl Controller {
    /// Checks an admin command and says what is to be done.
    pub(crate) fn plan_admin(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        match command.opcode {
            admin::DELETE_SQ => self.delete_sq(shared, key, command),
            admin::CREATE_SQ => self.create_sq(command),
            admin::GET_LOG_PAGE => self.get_log_page(shared, command),
            admin::DELETE_CQ => self.delete_cq(command),
            admin::CREATE_CQ => self.create_cq(command),
            admin::IDENTIFY => self.identify(shared, command),
            admin::ABORT => Ok(self.abort(shared, command)),
            admin::SET_FEATURES => self.set_features(shared, key, command),
            admin::GET_FEATURES => self.get_features(shared, command),
            admin::ASYNC_EVENT_REQUEST => self.async_event_request(shared, key, command),
            _ => Err(Failure::field(StatusCode::INVALID_OPCODE, 0, 0)),
        }
    }

    fn async_event_request(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        if self.events.requests() >= EVENT_REQUESTS {
            return Err(Failure::permanent(StatusCode::ASYNC_EVENT_LIMIT_EXCEEDED));
        }
        self.remove_event_request(shared, key);
        self.events.request(command.cid);
        Ok(Plan::Wait)
    }
}
