//! Identify (NVMe 1.4, section 5.15).

use crate::config::{VENDOR, fingerprint};
use crate::controller::Controller;
use crate::events::EVENT_REQUESTS;
use crate::failure::Failure;
use crate::log::{CRITICAL_TEMPERATURE, ErrorLog, WARNING_TEMPERATURE};
use crate::namespace::custom_uuid;
use crate::plan::Plan;
use bytes::Bytes;
use wire::nvme::{
    Command, IDENTIFY, IdentifyController, IdentifyNamespace, NamespaceDescriptor, PowerState,
    ascii, cns, controller_list, namespace_list, register,
};

/// CNTLID: the only controller of its subsystem.
const CONTROLLER_ID: u16 = 1;
/// The largest NSIDs, which are not those of a namespace (section 6.1.2).
const LAST_NSID: u32 = 0xffff_fffd;

impl Controller {
    pub(super) fn identify(&mut self, command: &Command) -> Result<Plan, Failure> {
        let data = match command.cdw10 as u8 {
            cns::CONTROLLER => self.identify_controller().encode(),
            // Every namespace is allocated and attached.
            cns::ACTIVE_NAMESPACES | cns::ALLOCATED_NAMESPACES => self.list(command.nsid)?,
            cns::DESCRIPTORS => {
                let uuid = self.namespace(command.nsid)?.uuid;
                let nguid = NamespaceDescriptor::Nguid(uuid);
                NamespaceDescriptor::list(&[nguid, NamespaceDescriptor::Uuid(uuid)])
            }
            // Every namespace is allocated. Of the broadcast NSID, what all have in common is only
            // told to hosts that manage namespaces (section 5.15.2.1).
            cns::NAMESPACE | cns::ALLOCATED_NAMESPACE => {
                self.namespace(command.nsid)?.identify().encode()
            }
            cns::ATTACHED_CONTROLLERS => {
                self.namespace(command.nsid)?;
                controllers(command)
            }
            cns::CONTROLLERS => controllers(command),
            // Drivers ask at every start: an answer, no error to be logged.
            _ => return Err(Failure::cdw(10, 0).of_probe()),
        };
        Ok(Plan::Send(Bytes::copy_from_slice(&data)))
    }

    /// Namespace IDs above `after`, ascending.
    fn list(&self, after: u32) -> Result<[u8; IDENTIFY], Failure> {
        if after > LAST_NSID {
            return Err(Failure::namespace());
        }
        let ids = self.namespaces.iter().map(|namespace| namespace.nsid);
        Ok(namespace_list(ids.filter(|nsid| *nsid > after)))
    }

    fn identify_controller(&self) -> IdentifyController {
        let config = &self.config;
        let bytes = |namespace: IdentifyNamespace| namespace.media_capacity;
        IdentifyController {
            vendor: VENDOR,
            subsystem_vendor: VENDOR,
            serial: ascii(&config.serial),
            model: ascii(&config.model),
            firmware: ascii(&config.firmware),
            arbitration_burst: 4,
            max_transfer: config.max_transfer_shift,
            controller_id: CONTROLLER_ID,
            version: register::VERSION_1_4,
            controller_type: 1,
            abort_limit: 3,
            async_event_limit: EVENT_REQUESTS as u8 - 1,
            // One slot, which is read only.
            firmware_slots: 1 | 1 << 1,
            // Effects log, and log pages with offsets.
            log_page_attributes: 1 << 1 | 1 << 2,
            error_log_entries: ErrorLog::ENTRIES as u8 - 1,
            warning_temperature: WARNING_TEMPERATURE,
            critical_temperature: CRITICAL_TEMPERATURE,
            total_capacity: self.namespaces.iter().map(|ns| bytes(ns.identify())).sum(),
            sq_entry_size: 0x66,
            cq_entry_size: 0x44,
            namespaces: self.namespaces.len() as u32,
            // Dataset Management, Write Zeroes, save and select.
            nvm_commands: 1 << 2 | 1 << 3 | 1 << 4,
            write_cache: if config.volatile_write_cache { 0b111 } else { 0b110 },
            subsystem_nqn: self.subsystem_nqn(),
            // One power state, 25 W, without latency.
            power_state: PowerState { max_power: 2500, ..PowerState::default() },
            ..IdentifyController::default()
        }
    }

    /// A name of the second form of section 7.9, with a UUID. Model and serial
    /// number themselves are padded with spaces, which no name may contain.
    fn subsystem_nqn(&self) -> [u8; 256] {
        let name = format!("{}\0{}", self.config.model, self.config.serial);
        let uuid = u128::from_be_bytes(custom_uuid(fingerprint(name.as_bytes())));
        let part = |from: u32, digits: u32| uuid >> from & ((1 << (4 * digits)) - 1);
        let name = format!(
            "nqn.2014-08.org.nvmexpress:uuid:{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(96, 8),
            part(80, 4),
            part(64, 4),
            part(48, 4),
            part(0, 12)
        );
        let mut nqn = [0; 256];
        nqn[..name.len()].copy_from_slice(name.as_bytes());
        nqn
    }
}

/// Controllers from CNTID on: the one there is.
fn controllers(command: &Command) -> [u8; IDENTIFY] {
    let from = (command.cdw10 >> 16) as u16;
    controller_list((from <= CONTROLLER_ID).then_some(CONTROLLER_ID))
}
