//! Identify (NVMe 1.4, section 5.15).

use crate::controller::Controller;
use crate::events::EVENT_REQUESTS;
use crate::failure::Failure;
use crate::identity::VENDOR;
use crate::log::{CRITICAL_TEMPERATURE, ErrorLog, WARNING_TEMPERATURE};
use crate::namespace::Namespace;
use crate::plan::Plan;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::nvme::feature::NAMESPACE_NOTICES;
use wire::nvme::{
    BROADCAST_NSID, Command, IDENTIFY, IdentifyController, NamespaceDescriptor, PowerState, ascii,
    cns, controller_list, namespace_list, nvm_command, register, sgl_support,
};

/// CMIC bit 1: the subsystem may have several controllers.
const SEVERAL_CONTROLLERS: u8 = 1 << 1;
/// ONCS.
const NVM_COMMANDS: u16 = nvm_command::COMPARE
    | nvm_command::DATASET_MANAGEMENT
    | nvm_command::WRITE_ZEROES
    | nvm_command::SAVE_AND_SELECT
    | nvm_command::VERIFY
    | nvm_command::COPY;
/// OACS bit 1: Format NVM.
const FORMAT: u16 = 1 << 1;
/// OACS bit 3: Namespace Management and Namespace Attachment.
const NAMESPACE_MANAGEMENT: u16 = 1 << 3;
/// SANICAP: block erase and overwrite; media are not modified once more where they are not
/// deallocated.
const SANITIZE: u32 = 1 << 1 | 1 << 2 | 1 << 30;
/// The largest NSIDs, which are not those of a namespace (section 6.1.2).
const LAST_NSID: u32 = 0xffff_fffd;

impl Controller {
    pub(super) fn identify(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let data = match command.cdw10 as u8 {
            cns::CONTROLLER => self.identify_controller(shared).encode(),
            cns::ACTIVE_NAMESPACES => {
                list(command.nsid, shared.attached(self.id).map(|(nsid, _)| nsid))?
            }
            cns::ALLOCATED_NAMESPACES => list(command.nsid, shared.namespaces.keys().copied())?,
            cns::DESCRIPTORS => {
                let namespace = shared.namespace(self.id, command.nsid)?;
                NamespaceDescriptor::list(&namespace.descriptors())
            }
            cns::NAMESPACE => self.identify_namespace(shared, command.nsid, true)?,
            cns::ALLOCATED_NAMESPACE => self.identify_namespace(shared, command.nsid, false)?,
            cns::ATTACHED_CONTROLLERS => match shared.namespaces.get(&command.nsid) {
                Some(namespace) => controllers(command, namespace.attached.iter().copied()),
                None => return Err(shared.absent(command.nsid)),
            },
            cns::CONTROLLERS => controllers(command, 1..=shared.controllers),
            // Drivers ask at every start: an answer, no error to be logged.
            _ => return Err(Failure::cdw(10, 0).of_probe()),
        };
        Ok(Plan::Send(Bytes::copy_from_slice(&data)))
    }

    /// The Identify Namespace data structure; zeroes for an NSID that is valid but inactive, or
    /// with any of the subsystem's, not allocated (sections 5.15.2.1 and 5.15.2.6).
    fn identify_namespace(
        &self,
        shared: &Shared,
        nsid: u32,
        active: bool,
    ) -> Result<[u8; IDENTIFY], Failure> {
        let namespace = match active {
            true => shared.namespace(self.id, nsid).ok(),
            false => shared.namespaces.get(&nsid),
        };
        match namespace {
            Some(namespace) => Ok(namespace.identify(&self.settings, shared)),
            // What every namespace that can be created has in common (section 8.12).
            None if nsid == BROADCAST_NSID && shared.saves() => Ok(Namespace::common()),
            None if (1..=shared.drive.max_namespaces).contains(&nsid) => Ok([0; IDENTIFY]),
            None => Err(Failure::namespace()),
        }
    }

    fn identify_controller(&self, shared: &Shared) -> IdentifyController {
        let (drive, settings) = (&shared.drive, &self.settings);
        IdentifyController {
            vendor: VENDOR,
            subsystem_vendor: VENDOR,
            serial: ascii(&drive.serial),
            model: ascii(&drive.model),
            firmware: ascii(&settings.firmware),
            arbitration_burst: 4,
            max_transfer: settings.max_transfer_shift,
            multi_path: if shared.controllers > 1 { SEVERAL_CONTROLLERS } else { 0 },
            controller_id: self.id,
            version: register::VERSION_1_4,
            controller_type: 1,
            abort_limit: 3,
            async_events: NAMESPACE_NOTICES,
            admin_commands: if shared.saves() { FORMAT | NAMESPACE_MANAGEMENT } else { 0 },
            async_event_limit: EVENT_REQUESTS as u8 - 1,
            // One slot, which is read only.
            firmware_slots: 1 | 1 << 1,
            // Effects log, and log pages with offsets.
            log_page_attributes: 1 << 1 | 1 << 2,
            error_log_entries: ErrorLog::ENTRIES as u8 - 1,
            warning_temperature: WARNING_TEMPERATURE,
            critical_temperature: CRITICAL_TEMPERATURE,
            total_capacity: drive.capacity.into(),
            unallocated_capacity: drive.capacity.saturating_sub(shared.allocated()).into(),
            sanitize: if shared.saves() { SANITIZE } else { 0 },
            sq_entry_size: 0x66,
            cq_entry_size: 0x44,
            namespaces: drive.max_namespaces,
            nvm_commands: NVM_COMMANDS,
            write_cache: if settings.volatile_write_cache { 0b111 } else { 0b110 },
            write_protection: shared.saves().into(),
            // Format 0h.
            copy_formats: 1,
            sgl: sgl_support::DOUBLE_WORDS | sgl_support::BIT_BUCKET | sgl_support::LONGER,
            subsystem_nqn: subsystem_nqn(drive.uuid),
            // One power state, 25 W, without latency.
            power_state: PowerState { max_power: 2500, ..PowerState::default() },
            ..IdentifyController::default()
        }
    }
}

/// A name of the second form of section 7.9, with a UUID. Model and serial
/// number themselves are padded with spaces, which no name may contain.
fn subsystem_nqn(uuid: [u8; 16]) -> [u8; 256] {
    let uuid = u128::from_be_bytes(uuid);
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

/// Those of ascending namespace IDs that are above `after`.
fn list(after: u32, ids: impl Iterator<Item = u32>) -> Result<[u8; IDENTIFY], Failure> {
    if after > LAST_NSID {
        return Err(Failure::namespace());
    }
    Ok(namespace_list(ids.filter(|nsid| *nsid > after)))
}

/// Those of ascending controller IDs that are CNTID or above.
fn controllers(command: &Command, ids: impl IntoIterator<Item = u16>) -> [u8; IDENTIFY] {
    let from = (command.cdw10 >> 16) as u16;
    controller_list(ids.into_iter().filter(|id| *id >= from))
}
