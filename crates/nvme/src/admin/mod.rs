//! The admin command set (NVMe 1.4, section 5), a file a command family.

mod abort;
mod features;
mod identify;
mod log_page;
mod queues;

pub(crate) use features::Features;

use crate::controller::{Controller, Plan};
use crate::failure::Failure;
use crate::slots::Key;
use wire::nvme::opcode::admin;
use wire::nvme::{Command, CommandEffects, StatusCode};

/// Every supported opcode, for the Commands Supported and Effects log.
pub(crate) const SUPPORTED: [u8; 10] = [
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

/// None of them has effects beyond its own.
pub(crate) const EFFECTS: CommandEffects = CommandEffects::SUPPORTED;

impl Controller {
    /// Checks an admin command and says what is to be done.
    pub(crate) fn plan_admin(&mut self, key: Key, command: &Command) -> Result<Plan, Failure> {
        match command.opcode {
            admin::DELETE_SQ => self.delete_sq(key, command),
            admin::CREATE_SQ => self.create_sq(command),
            admin::GET_LOG_PAGE => self.get_log_page(command),
            admin::DELETE_CQ => self.delete_cq(command),
            admin::CREATE_CQ => self.create_cq(command),
            admin::IDENTIFY => self.identify(command),
            admin::ABORT => Ok(self.abort(command)),
            admin::SET_FEATURES => self.set_features(command),
            admin::GET_FEATURES => self.get_features(command),
            admin::ASYNC_EVENT_REQUEST => self.async_event_request(key, command),
            _ => Err(Failure::field(StatusCode::INVALID_OPCODE, 0, 0)),
        }
    }
}
