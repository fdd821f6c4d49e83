//! Get Log Page (NVMe 1.4, section 5.14).

use super::{SUPPORTED, is_supported, persistent_events};
use crate::config::Settings;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::io;
use crate::log::{controller_telemetry, host_telemetry};
use crate::plan::Plan;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::nvme::{
    BROADCAST_NSID, Command, CommandsSupported, StatusCode, TELEMETRY_BLOCK, log_page,
    namespace_list,
};

/// RAE, retain asynchronous event: bit 15 of command dword 10.
const RETAIN: u32 = 1 << 15;
/// Create Telemetry Host-Initiated Data: bit 0 of LSP.
const CREATE_TELEMETRY: u32 = 1 << 8;

impl Controller {
    pub(super) fn get_log_page(
        &mut self,
        shared: &mut Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let id = command.cdw10 as u8;
        let is_release = persistent_events::action(command) == persistent_events::RELEASE;
        if id == log_page::PERSISTENT_EVENT && shared.saves() && is_release {
            // The release of a context returns no data, and succeeds without a context too.
            self.event_context = None;
            return Ok(Plan::Done(0));
        }
        let (offset, length) = self.window(command)?;
        let page = self.log_page(shared, id, command)?;
        if offset > page.len() as u64 {
            return Err(Failure::cdw(12, 0));
        }
        // Zeroes follow the end of the page.
        let mut data = page[offset as usize..].to_vec();
        data.resize(length, 0);
        if command.cdw10 & RETAIN == 0 {
            self.events.acknowledge(id);
            if id == log_page::CHANGED_NAMESPACES {
                self.changed_namespaces.clear();
            }
            if id == log_page::RESERVATION {
                self.reservation_log.acknowledge();
            }
        }
        Ok(Plan::Send(Bytes::from(data)))
    }

    /// LPO and NUMD in bytes: offset and length of the requested part.
    fn window(&self, command: &Command) -> Result<(u64, usize), Failure> {
        let dwords = u64::from(command.cdw11 as u16) << 16 | u64::from(command.cdw10 >> 16);
        let length = (dwords + 1) * 4;
        if length > self.settings.max_transfer() as u64 {
            return Err(Failure::cdw(10, 16));
        }
        let offset = u64::from(command.cdw13) << 32 | u64::from(command.cdw12);
        if offset % 4 != 0 {
            return Err(Failure::cdw(12, 0));
        }
        Ok((offset, length as usize))
    }

    /// The SMART / Health Information page.
    fn smart(&self, shared: &mut Shared) -> Vec<u8> {
        let warning = self.warning(shared);
        shared.health.page(self.now, warning).encode().to_vec()
    }

    fn log_page(
        &mut self,
        shared: &mut Shared,
        id: u8,
        command: &Command,
    ) -> Result<Vec<u8>, Failure> {
        let nsid = command.nsid;
        match id {
            log_page::ERROR => Ok(self.error_log.page()),
            log_page::SMART => {
                // LPA bit 0 is clear: the page exists only for the controller.
                if nsid != 0 && nsid != BROADCAST_NSID {
                    return Err(Failure::field(StatusCode::INVALID_FIELD, 4, 0));
                }
                Ok(self.smart(shared))
            }
            // The list has room for all namespaces of a drive: 1024 (section 5.14.1.4).
            log_page::CHANGED_NAMESPACES => {
                Ok(namespace_list(self.changed_namespaces.iter().copied()).to_vec())
            }
            log_page::NAMESPACE_ACCESS if shared.reports_access() => {
                Ok(self.access_page(shared, command))
            }
            log_page::RESERVATION if shared.saves() => Ok(self.reservation_log.page()),
            log_page::SANITIZE if shared.saves() => Ok(shared.sanitize_log().encode().to_vec()),
            log_page::PERSISTENT_EVENT if shared.saves() => self.persistent_events(shared, command),
            log_page::FIRMWARE => Ok(shared.firmware_log().encode().to_vec()),
            log_page::EFFECTS => Ok(effects(shared, &self.settings).encode().to_vec()),
            log_page::SELF_TEST => Ok(shared.test_log(self.now).encode().to_vec()),
            log_page::TELEMETRY_HOST | log_page::TELEMETRY_CONTROLLER => {
                check_blocks(command)?;
                if id == log_page::TELEMETRY_CONTROLLER {
                    return Ok(controller_telemetry());
                }
                if command.cdw10 & CREATE_TELEMETRY != 0 {
                    self.telemetry = vec![self.smart(shared), self.error_log.page()];
                }
                Ok(host_telemetry(&self.telemetry))
            }
            _ => Err(Failure::at_cdw(StatusCode::INVALID_LOG_PAGE, 10, 0)),
        }
    }
}

/// Checks that the command reads whole telemetry blocks (sections 5.14.1.7 and 5.14.1.8).
fn check_blocks(command: &Command) -> Result<(), Failure> {
    const DWORDS: u32 = TELEMETRY_BLOCK as u32 / 4;
    if !((command.cdw10 >> 16) + 1).is_multiple_of(DWORDS) {
        return Err(Failure::cdw(10, 16));
    }
    if !command.cdw12.is_multiple_of(TELEMETRY_BLOCK as u32) {
        return Err(Failure::cdw(12, 0));
    }
    Ok(())
}

fn effects(shared: &Shared, settings: &Settings) -> CommandsSupported {
    let mut log = CommandsSupported::default();
    for (opcode, effects) in SUPPORTED {
        if is_supported(shared, settings, *opcode) {
            log.admin[usize::from(*opcode)] = *effects;
        }
    }
    for (opcode, effects) in io::supported(shared) {
        log.io[usize::from(opcode)] = effects;
    }
    log
}
