//! Actions on the Persistent Event log (NVMe 1.4, section 5.14.1.13), and events of admin commands.

use super::identify::subsystem_nqn;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::identity::VENDOR;
use crate::log::persistent_page;
use crate::slots::Key;
use crate::subsystem::Shared;
use wire::nvme::opcode::admin;
use wire::nvme::{
    Command, FirmwareCommitEvent, FormatCompletionEvent, PersistentEventLog, PersistentEventType,
    Status, StatusCode, ascii,
};

/// Action in LSP (bits 11:8 of command dword 10): read the log of the reporting context.
const READ: u32 = 0;
/// Action: establish a reporting context and read the log.
const ESTABLISH: u32 = 1;
/// Action: release the reporting context.
pub(super) const RELEASE: u32 = 2;

/// The action of a Get Log Page command for this log.
pub(super) fn action(command: &Command) -> u32 {
    command.cdw10 >> 8 & 15
}

impl Controller {
    /// The log page, as of the time when the reporting context was established.
    pub(super) fn persistent_events(
        &mut self,
        shared: &mut Shared,
        command: &Command,
    ) -> Result<Vec<u8>, Failure> {
        match (action(command), &self.event_context) {
            (READ, Some(page)) => Ok(page.clone()),
            (ESTABLISH, None) => {
                let page = self.persistent_page(shared);
                self.event_context = Some(page.clone());
                Ok(page)
            }
            (READ | ESTABLISH, _) => Err(Failure::permanent(StatusCode::COMMAND_SEQUENCE_ERROR)),
            _ => Err(Failure::cdw(10, 8)),
        }
    }

    fn persistent_page(&self, shared: &mut Shared) -> Vec<u8> {
        let smart = shared.health.page(self.now, 0);
        let header = PersistentEventLog {
            timestamp: self.clock.read(self.now).bits(),
            hours: smart.power_on_hours,
            power_cycles: smart.power_cycles as u64,
            vendor: VENDOR,
            subsystem_vendor: VENDOR,
            serial: ascii(&shared.drive.serial),
            model: ascii(&shared.drive.model),
            subsystem_nqn: subsystem_nqn(shared.drive.uuid),
            ..PersistentEventLog::default()
        };
        persistent_page(header, &shared.events.log)
    }

    /// Logs the end of an admin command. Called before the completion is posted.
    pub(crate) fn admin_ends(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
        failure: Option<Failure>,
    ) {
        let status =
            failure.map_or(Status::SUCCESS, |one| Status { more: one.is_logged(), ..one.status });
        match command.opcode {
            admin::FORMAT if shared.end_format(self.id, Some(key)) => {
                let event = FormatCompletionEvent {
                    nsid: command.nsid,
                    result: u8::from(failure.is_some()),
                    status: status.bits() << 1,
                    ..FormatCompletionEvent::default()
                };
                let kind = PersistentEventType::FormatCompletion;
                shared.log_event(self.now, self.id, kind, &event.encode());
            }
            // Successful commits are logged with the change of the slots.
            admin::FIRMWARE_COMMIT if failure.is_some() => {
                let slot = (command.cdw10 & 7) as u8;
                let event = FirmwareCommitEvent {
                    old: shared.revision,
                    new: shared.revision_in(slot),
                    action: (command.cdw10 >> 3 & 7) as u8,
                    slot,
                    status_type: status.code.kind(),
                    status: status.code.code(),
                };
                let kind = PersistentEventType::FirmwareCommit;
                shared.log_event(self.now, self.id, kind, &event.encode());
            }
            _ => {}
        }
    }
}
