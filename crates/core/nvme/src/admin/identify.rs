//! Identify (NVMe 1.4, section 5.15). The structures specific to and independent of an I/O command
//! set follow NVM Express 2.0, section 5.17.2, because Linux and nvme-cli request them for every
//! version.

use crate::controller::{ACCESS_CAPABILITIES, ACCESS_GROUP, ACCESS_TRANSITION, Controller};
use crate::events::EVENT_REQUESTS;
use crate::failure::Failure;
use crate::features::{KEEP_ALIVE_GRANULARITY, NOTICES, POWER_STATES};
use crate::identity::VENDOR;
use crate::log::{CRITICAL_TEMPERATURE, ErrorLog, WARNING_TEMPERATURE};
use crate::namespace::{FORMATS, NVM_COMMAND_SET, Namespace};
use crate::plan::Plan;
use crate::state::{FIRMWARE_SLOTS, MAX_LOG};
use crate::subsystem::{EXTENDED_MINUTES, Shared};
use bytes::Bytes;
use wire::nvme::{
    BROADCAST_NSID, Command, IDENTIFY, IdentifyController, NamespaceDescriptor, ascii, cns,
    controller_attribute, controller_list, feature_bits, namespace_list, nvm_command, register,
    sgl_support,
};

/// CMIC bit 1: the subsystem may have several controllers.
const SEVERAL_CONTROLLERS: u8 = 1 << 1;
/// CMIC bit 3: asymmetric namespace access is reported.
const ACCESS_REPORTING: u8 = 1 << 3;
/// ONCS of all drives.
const NVM_COMMANDS: u16 = nvm_command::COMPARE
    | nvm_command::DATASET_MANAGEMENT
    | nvm_command::WRITE_ZEROES
    | nvm_command::SAVE_AND_SELECT
    | nvm_command::TIMESTAMP
    | nvm_command::VERIFY
    | nvm_command::COPY;
/// The ONCS bits that only drives with records have.
const NEED_RECORDS: u16 = nvm_command::WRITE_UNCORRECTABLE | nvm_command::RESERVATIONS;
/// CTRATT of drives with records.
const ATTRIBUTES: u32 = controller_attribute::EXTENDED_HOST_IDENTIFIER
    | controller_attribute::RESERVATIONS_NEED_HOST_IDENTIFIER;
/// OACS of all drives: Security Send and Receive, Firmware Commit and Image Download, Device
/// Self-test.
const ALWAYS: u16 = 1 | 1 << 2 | 1 << 4;
/// OACS bit 1: Format NVM.
const FORMAT: u16 = 1 << 1;
/// OACS bit 3: Namespace Management and Namespace Attachment.
const NAMESPACE_MANAGEMENT: u16 = 1 << 3;
/// OACS bit 8: Doorbell Buffer Config.
const DOORBELL_BUFFER: u16 = 1 << 8;
/// SANICAP: block erase and overwrite; an operation without deallocation does not modify the media
/// when it ends.
pub(crate) const SANITIZE_CAPABILITIES: u32 = 1 << 1 | 1 << 2 | 1 << 30;
/// SGLS.
const SGLS: u32 = sgl_support::DOUBLE_WORDS
    | sgl_support::BIT_BUCKET
    | sgl_support::METADATA_BYTES
    | sgl_support::LONGER
    | sgl_support::METADATA_SEGMENT;
/// CNTID of the controller that executes the command (NVM Express 2.0, section 5.17.2.22).
const THIS_CONTROLLER: u16 = 0xffff;
/// The largest valid NSID; higher NSIDs are reserved (section 6.1.2).
const LAST_NSID: u32 = 0xffff_fffd;

impl Controller {
    pub(super) fn identify(&mut self, shared: &Shared, command: &Command) -> Result<Plan, Failure> {
        let cns = command.cdw10 as u8;
        check_command_set(cns, command)?;
        let data = match cns {
            cns::CONTROLLER => self.identify_controller(shared).encode(),
            cns::ACTIVE_NAMESPACES | cns::SET_ACTIVE_NAMESPACES => {
                list(command.nsid, shared.attached(self.id).map(|(nsid, _)| nsid))?
            }
            cns::ALLOCATED_NAMESPACES | cns::SET_ALLOCATED_NAMESPACES => {
                list(command.nsid, shared.namespaces.keys().copied())?
            }
            cns::DESCRIPTORS => {
                let namespace = shared.namespace(self.id, command.nsid)?;
                NamespaceDescriptor::list(&namespace.descriptors())
            }
            cns::NAMESPACE | cns::ALLOCATED_NAMESPACE
                if command.nsid == BROADCAST_NSID && shared.saves() =>
            {
                Namespace::common()
            }
            cns::NAMESPACE | cns::ALLOCATED_NAMESPACE => {
                let namespace = self.find(shared, command.nsid, cns == cns::NAMESPACE)?;
                let accessible = self.is_accessible(shared);
                page(namespace, |one| one.identify(&self.settings, shared, accessible))
            }
            cns::INDEPENDENT_NAMESPACE => {
                let namespace = self.find(shared, command.nsid, true)?;
                page(namespace, |one| one.identify_independent(&self.settings, shared).encode())
            }
            // LBSTM, PIC and ELBAF: protection information has a guard of 16 bits and no storage
            // tag (NVM Command Set Specification 1.0, figure 100).
            cns::SET_NAMESPACE => page(self.find(shared, command.nsid, true)?, |_| [0; IDENTIFY]),
            cns::SET_ALLOCATED_NAMESPACE => {
                page(self.find(shared, command.nsid, false)?, |_| [0; IDENTIFY])
            }
            // VSL, WZSL, WUSL, DMRL, DMRSL and DMSL are 0: no limits (NVM Command Set Specification
            // 1.0, figure 102).
            cns::SET_CONTROLLER => [0; IDENTIFY],
            cns::COMMAND_SETS => self.command_sets(shared, command)?,
            cns::ATTACHED_CONTROLLERS => match shared.namespaces.get(&command.nsid) {
                Some(namespace) => controllers(command, namespace.attached.iter().copied()),
                None => return Err(shared.absent(command.nsid)),
            },
            cns::CONTROLLERS => controllers(command, 1..=shared.controllers),
            // Drivers request unsupported structures at every start, so this is not logged as an
            // error.
            _ => return Err(Failure::cdw(10, 0).of_probe()),
        };
        Ok(Plan::Send(Bytes::copy_from_slice(&data)))
    }

    /// The namespace `nsid`: with `active` only if it is attached to this controller. `None` for an
    /// inactive or unallocated NSID, whose data structures are zeroes (sections 5.15.2.1 and
    /// 5.15.2.6).
    fn find<'a>(
        &self,
        shared: &'a Shared,
        nsid: u32,
        active: bool,
    ) -> Result<Option<&'a Namespace>, Failure> {
        let namespace = match active {
            true => shared.namespace(self.id, nsid).ok(),
            false => shared.namespaces.get(&nsid),
        };
        match namespace {
            Some(namespace) => Ok(Some(namespace)),
            None if !(1..=shared.drive.max_namespaces).contains(&nsid) => Err(Failure::namespace()),
            None => Ok(None),
        }
    }

    /// The I/O Command Set data structure of this controller (CNTID FFFFh) or of another
    /// controller. It has one combination: the NVM command set alone (NVM Express 2.0, figure 290).
    fn command_sets(&self, shared: &Shared, command: &Command) -> Result<[u8; IDENTIFY], Failure> {
        let id = (command.cdw10 >> 16) as u16;
        if id != THIS_CONTROLLER && !(1..=shared.controllers).contains(&id) {
            return Err(Failure::cdw(10, 16));
        }
        let mut data = [0; IDENTIFY];
        data[0] = 1 << NVM_COMMAND_SET;
        Ok(data)
    }

    fn identify_controller(&self, shared: &Shared) -> IdentifyController {
        let (drive, settings) = (&shared.drive, &self.settings);
        let several = shared.reports_access();
        let groups = u32::from(several);
        IdentifyController {
            vendor: VENDOR,
            subsystem_vendor: VENDOR,
            serial: ascii(&drive.serial),
            model: ascii(&drive.model),
            firmware: shared.revision,
            arbitration_burst: 4,
            max_transfer: settings.max_transfer_shift,
            multi_path: if several { SEVERAL_CONTROLLERS | ACCESS_REPORTING } else { 0 },
            controller_id: self.id,
            version: register::VERSION_1_4,
            async_events: NOTICES | if several { feature_bits::NAMESPACE_ACCESS } else { 0 },
            attributes: if shared.saves() { ATTRIBUTES } else { 0 },
            controller_type: 1,
            admin_commands: ALWAYS
                | if shared.saves() { FORMAT | NAMESPACE_MANAGEMENT } else { 0 }
                | if settings.doorbell_buffer { DOORBELL_BUFFER } else { 0 },
            abort_limit: 3,
            async_event_limit: EVENT_REQUESTS as u8 - 1,
            // Slot 1 is read only; activation without reset is supported.
            firmware_slots: 1 | FIRMWARE_SLOTS << 1 | 1 << 4,
            // Effects log, log pages with offsets, telemetry, persistent events.
            log_page_attributes: 1 << 1 | 1 << 2 | 1 << 3 | u8::from(shared.saves()) << 4,
            error_log_entries: ErrorLog::ENTRIES as u8 - 1,
            warning_temperature: WARNING_TEMPERATURE,
            critical_temperature: CRITICAL_TEMPERATURE,
            total_capacity: drive.capacity.into(),
            unallocated_capacity: drive.capacity.saturating_sub(shared.allocated()).into(),
            // No granularity.
            firmware_granularity: 0xff,
            self_test_minutes: EXTENDED_MINUTES,
            self_test_options: 1,
            keep_alive: KEEP_ALIVE_GRANULARITY,
            sanitize: if shared.saves() { SANITIZE_CAPABILITIES } else { 0 },
            access_transition: if several { ACCESS_TRANSITION } else { 0 },
            access_capabilities: if several { ACCESS_CAPABILITIES } else { 0 },
            max_access_group: groups * ACCESS_GROUP,
            access_groups: groups,
            persistent_log: if shared.saves() { MAX_LOG.div_ceil(64 << 10) as u32 } else { 0 },
            sq_entry_size: 0x66,
            cq_entry_size: 0x44,
            namespaces: drive.max_namespaces,
            nvm_commands: NVM_COMMANDS | if shared.saves() { NEED_RECORDS } else { 0 },
            fused: self.fuses().into(),
            write_cache: if settings.volatile_write_cache { 0b111 } else { 0b110 },
            write_protection: shared.saves().into(),
            atomic_compare_and_write: self.compare_and_write_unit(shared),
            // Format 0h.
            copy_formats: 1,
            sgl: SGLS,
            max_namespaces: if several { drive.max_namespaces } else { 0 },
            subsystem_nqn: subsystem_nqn(drive.uuid),
            power_states: POWER_STATES.len() as u8 - 1,
            power_state: POWER_STATES,
            ..IdentifyController::default()
        }
    }
}

impl Controller {
    /// ACWU, 0's based: the largest transfer divided by the largest block (section 6.4).
    fn compare_and_write_unit(&self, shared: &Shared) -> u16 {
        let formats = FORMATS.iter().map(|format| format.data_shift);
        let records = shared.namespaces.values().map(|one| one.record.block_shift);
        let shift = formats.chain(records).max().expect("there are formats");
        let blocks = self.settings.max_transfer() >> shift;
        if self.fuses() { blocks.saturating_sub(1) as u16 } else { 0 }
    }
}

/// Rejects a CSI other than that of the NVM command set, for structures with a CSI (bits 31:24 of
/// command dword 11, NVM Express 2.0, figure 272).
fn check_command_set(cns: u8, command: &Command) -> Result<(), Failure> {
    let has_one = matches!(
        cns,
        cns::SET_NAMESPACE
            | cns::SET_CONTROLLER
            | cns::SET_ACTIVE_NAMESPACES
            | cns::SET_ALLOCATED_NAMESPACES
            | cns::SET_ALLOCATED_NAMESPACE
    );
    if has_one && (command.cdw11 >> 24) as u8 != NVM_COMMAND_SET {
        return Err(Failure::cdw(11, 24).of_probe());
    }
    Ok(())
}

/// The data structure of a namespace; zeroes without a namespace.
fn page(
    namespace: Option<&Namespace>,
    encode: impl FnOnce(&Namespace) -> [u8; IDENTIFY],
) -> [u8; IDENTIFY] {
    namespace.map_or([0; IDENTIFY], encode)
}

/// The subsystem NQN in the second form of section 7.9, with a UUID. A name cannot contain the
/// model and serial number, because spaces pad these fields and a name has no spaces.
pub(super) fn subsystem_nqn(uuid: [u8; 16]) -> [u8; 256] {
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

/// A namespace ID list of the IDs above `after`, ascending.
fn list(after: u32, ids: impl Iterator<Item = u32>) -> Result<[u8; IDENTIFY], Failure> {
    if after > LAST_NSID {
        return Err(Failure::namespace());
    }
    Ok(namespace_list(ids.filter(|nsid| *nsid > after)))
}

/// A controller list of the IDs from CNTID on, ascending.
fn controllers(command: &Command, ids: impl IntoIterator<Item = u16>) -> [u8; IDENTIFY] {
    let from = (command.cdw10 >> 16) as u16;
    controller_list(ids.into_iter().filter(|id| *id >= from))
}
