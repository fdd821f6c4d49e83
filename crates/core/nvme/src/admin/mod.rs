//! The admin command set (NVMe 1.4, section 5), one file per command family.

mod abort;
mod doorbell_buffers;
mod feature_data;
mod features;
mod firmware;
mod format;
mod identify;
mod keep_alive;
mod log_page;
mod namespaces;
mod persistent_events;
mod queues;
mod sanitize;
mod security;
mod self_test;

pub(crate) use feature_data::Clock;
pub(crate) use firmware::Download;
pub(crate) use identify::SANITIZE_CAPABILITIES;
pub(crate) use sanitize::{SanitizePlan, check_sanitize, is_sanitize};

use crate::config::Settings;
use crate::controller::Controller;
use crate::events::EVENT_REQUESTS;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::nvme::opcode::admin;
use wire::nvme::{Command, CommandEffects, StatusCode};

/// The supported commands, for the Commands Supported and Effects log.
const SUPPORTED: &[(u8, CommandEffects)] = &[
    (admin::DELETE_SQ, CommandEffects::SUPPORTED),
    (admin::CREATE_SQ, CommandEffects::SUPPORTED),
    (admin::GET_LOG_PAGE, CommandEffects::SUPPORTED),
    (admin::DELETE_CQ, CommandEffects::SUPPORTED),
    (admin::CREATE_CQ, CommandEffects::SUPPORTED),
    (admin::IDENTIFY, CommandEffects::SUPPORTED),
    (admin::ABORT, CommandEffects::SUPPORTED),
    (admin::SET_FEATURES, CommandEffects::SUPPORTED),
    (admin::GET_FEATURES, CommandEffects::SUPPORTED),
    (admin::ASYNC_EVENT_REQUEST, CommandEffects::SUPPORTED),
    (admin::NAMESPACE_MANAGEMENT, CommandEffects::CHANGES_NAMESPACES),
    (admin::NAMESPACE_ATTACHMENT, CommandEffects::CHANGES_NAMESPACES),
    (admin::SANITIZE, CommandEffects::CHANGES_ALL_BLOCKS),
    (admin::DOORBELL_BUFFER_CONFIG, CommandEffects::SUPPORTED),
    (admin::FORMAT, CommandEffects::FORMATS),
    (admin::FIRMWARE_COMMIT, CommandEffects::CHANGES_CONTROLLER),
    (admin::FIRMWARE_DOWNLOAD, CommandEffects::SUPPORTED),
    (admin::DEVICE_SELF_TEST, CommandEffects::SUPPORTED),
    (admin::KEEP_ALIVE, CommandEffects::SUPPORTED),
    (admin::SECURITY_SEND, CommandEffects::SUPPORTED),
    (admin::SECURITY_RECEIVE, CommandEffects::SUPPORTED),
];

/// Whether a drive supports the command. Some commands need records or a setting.
fn is_supported(shared: &Shared, settings: &Settings, opcode: u8) -> bool {
    let needs_records = matches!(
        opcode,
        admin::NAMESPACE_MANAGEMENT | admin::NAMESPACE_ATTACHMENT | admin::SANITIZE | admin::FORMAT
    );
    SUPPORTED.iter().any(|(supported, _)| *supported == opcode)
        && (!needs_records || shared.saves())
        && (opcode != admin::DOORBELL_BUFFER_CONFIG || settings.doorbell_buffer)
}

impl Controller {
    /// Checks an admin command and plans its work.
    pub(crate) fn plan_admin(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        if !is_supported(shared, &self.settings, command.opcode) {
            return Err(Failure::field(StatusCode::INVALID_OPCODE, 0, 0));
        }
        sanitize::check_admin(shared, command)?;
        self.check_admin_access(shared, command)?;
        shared.check_admin(self.id, command)?;
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
            admin::NAMESPACE_MANAGEMENT => self.namespace_management(shared, key, command),
            admin::NAMESPACE_ATTACHMENT => namespaces::attachment(shared, command),
            admin::SANITIZE => self.sanitize(shared, key, command),
            admin::DOORBELL_BUFFER_CONFIG => self.doorbell_buffers(command),
            admin::FORMAT => self.format(shared, key, command),
            admin::FIRMWARE_COMMIT => self.firmware_commit(shared, key, command),
            admin::FIRMWARE_DOWNLOAD => self.firmware_download(command),
            admin::DEVICE_SELF_TEST => self.self_test(shared, command),
            admin::KEEP_ALIVE => Ok(self.keep_alive()),
            admin::SECURITY_SEND => self.security_send(command),
            admin::SECURITY_RECEIVE => self.security_receive(command),
            _ => unreachable!("every supported command is here"),
        }
    }

    /// Handles the received data of an admin command.
    pub(crate) fn admin_received(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
        data: Bytes,
    ) -> Result<Plan, Failure> {
        match command.opcode {
            admin::NAMESPACE_MANAGEMENT => self.create_namespace(shared, key, &data),
            admin::NAMESPACE_ATTACHMENT => self.attach_namespace(shared, key, command, &data),
            admin::SET_FEATURES => self.feature_received(shared, command, &data),
            admin::FIRMWARE_DOWNLOAD => self.firmware_received(command, data),
            _ => unreachable!("no other command receives data"),
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
