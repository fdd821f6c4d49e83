//! Namespace Attachment and Namespace Management (NVMe 1.4, sections 5.19, 5.20 and 8.12).

use crate::block::{Error, Operation};
use crate::controller::Controller;
use crate::failure::Failure;
use crate::namespace::{FIRST, FORMATS, block_format};
use crate::plan::{Plan, steps};
use crate::slots::Key;
use crate::subsystem::{NamespaceChange, NamespaceError, Shared};
use wire::nvme::{
    BROADCAST_NSID, Command, IDENTIFY, IdentifyNamespace, StatusCode, decode_controller_list,
};

/// SEL of Namespace Management (figure 267): create.
const CREATE: u32 = 0;
/// SEL of Namespace Management: delete.
const DELETE: u32 = 1;
/// SEL of Namespace Attachment (figure 263): attach.
const ATTACH: u32 = 0;
/// SEL of Namespace Attachment: detach.
const DETACH: u32 = 1;
/// The bits of CSI in Namespace Management: bits 31:24 of command dword 11 (NVMe 2.0, section
/// 5.23). The NVM command set is 0.
const COMMAND_SET: u32 = 0xff << 24;

/// SEL, bits 3:0 of command dword 10.
fn select(command: &Command) -> u32 {
    command.cdw10 & 15
}

/// Checks Namespace Attachment; its data are a controller list.
pub(super) fn attachment(shared: &Shared, command: &Command) -> Result<Plan, Failure> {
    if !matches!(select(command), ATTACH | DETACH) {
        return Err(Failure::cdw(10, 0));
    }
    if !shared.namespaces.contains_key(&command.nsid) {
        return Err(shared.absent(command.nsid));
    }
    Ok(Plan::Receive(IDENTIFY))
}

impl Controller {
    pub(super) fn namespace_management(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        match select(command) {
            CREATE if command.cdw11 & COMMAND_SET != 0 => Err(Failure::cdw(11, 24)),
            CREATE => Ok(Plan::Receive(IDENTIFY)),
            DELETE => self.delete_namespaces(shared, key, command.nsid),
            _ => Err(Failure::cdw(10, 0)),
        }
    }

    fn delete_namespaces(
        &mut self,
        shared: &mut Shared,
        key: Key,
        nsid: u32,
    ) -> Result<Plan, Failure> {
        let nsids = match nsid {
            BROADCAST_NSID => shared.namespaces.keys().copied().collect(),
            nsid if shared.namespaces.contains_key(&nsid) => vec![nsid],
            nsid => return Err(shared.absent(nsid)),
        };
        shared.delete_namespaces(Some((self.id, key)), nsids).map_err(failure)?;
        Ok(Plan::Wait)
    }

    /// Sets Namespace Write Protection Config (section 5.21.1.29): off, or on until a host changes
    /// it.
    pub(super) fn protect_namespace(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let protect = match command.cdw11 & 7 {
            0 => false,
            1 => true,
            // Protection until the next power cycle and permanent protection are not supported
            // (NWPC).
            _ => return Err(Failure::cdw(11, 0)),
        };
        shared.namespace(self.id, command.nsid)?;
        let change = NamespaceChange::Protect { nsid: command.nsid, protect };
        shared.change_namespaces((self.id, key), change).map_err(failure)?;
        Ok(Plan::Wait)
    }

    /// Handles the received fields of a namespace to create (figure 268).
    pub(super) fn create_namespace(
        &mut self,
        shared: &mut Shared,
        key: Key,
        data: &[u8],
    ) -> Result<Plan, Failure> {
        let new = IdentifyNamespace::decode(data.try_into().expect("as many bytes as asked for"));
        let invalid = Failure::permanent(StatusCode::INVALID_FIELD);
        let extended = new.formatted & IdentifyNamespace::EXTENDED != 0;
        let format = FORMATS.get(usize::from(new.formatted & !IdentifyNamespace::EXTENDED));
        let format = format.ok_or(Failure::permanent(StatusCode::INVALID_FORMAT))?;
        // DPS: bits 7:4 are reserved.
        let (kind, first) = (new.protection & 7, new.protection & FIRST != 0);
        let format = block_format(*format, extended, kind, first).ok_or(invalid)?;
        // Asymmetric access and NVM sets are not supported.
        if new.protection & !(7 | FIRST) != 0 || new.access_group != 0 || new.nvm_set != 0 {
            return Err(invalid);
        }
        if new.sharing & !IdentifyNamespace::SHARED != 0 || new.size == 0 {
            return Err(invalid);
        }
        if new.capacity > new.size {
            return Err(invalid);
        }
        // NSFEAT bit 0 is clear (no thin provisioning): capacity and size must be equal.
        if new.capacity < new.size {
            return Err(Failure::permanent(StatusCode::THIN_PROVISIONING_NOT_SUPPORTED));
        }
        if format.bytes(new.size) > u64::MAX.into() {
            return Err(insufficient(u64::MAX));
        }
        let private = new.sharing & IdentifyNamespace::SHARED == 0;
        let namespace = shared.unique_namespace(new.size, format, private);
        shared.create_namespace(Some((self.id, key)), namespace).map_err(failure)?;
        Ok(Plan::Wait)
    }

    /// Handles the received controller list: attaches the namespace to all controllers of the list,
    /// or detaches it from all of them. An error changes nothing.
    pub(super) fn attach_namespace(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
        data: &[u8],
    ) -> Result<Plan, Failure> {
        let list = data.try_into().expect("as many bytes as asked for");
        let bad = Failure::permanent(StatusCode::CONTROLLER_LIST_INVALID);
        let controllers = decode_controller_list(list).ok_or(bad)?;
        let attach = select(command) == ATTACH;
        let waiting = Some((self.id, key));
        shared.set_attached(waiting, command.nsid, controllers, attach).map_err(failure)?;
        Ok(Plan::Wait)
    }

    /// Completes a command after its change was stored. If the store failed, the command had no
    /// effect.
    pub(crate) fn namespaces_stored(
        &mut self,
        shared: &mut Shared,
        key: Key,
        change: &NamespaceChange,
        result: Result<(), Error>,
    ) {
        // A reset may have dropped the command.
        if !self.is_under_way(key) {
            return;
        }
        match (result, change) {
            // Dword 0 has the NSID (section 5.20.1).
            (Ok(()), NamespaceChange::Create(nsid, _)) => self.resume_with(shared, key, *nsid),
            // Data in the volatile write cache are committed (section 8.19).
            (Ok(()), NamespaceChange::Protect { nsid, protect: true }) => {
                self.resume_to(shared, key, steps(*nsid, [Operation::Flush]));
            }
            (Ok(()), NamespaceChange::Format { nsids, .. }) => {
                self.format_stored(shared, key, nsids);
            }
            (Ok(()), _) => self.resume(shared, key),
            // The disk of the device node has no room for the namespace.
            (Err(Error::NoSpace), NamespaceChange::Create(_, namespace)) => {
                self.fail(shared, key, insufficient(namespace.bytes()));
            }
            _ => self.fail(shared, key, Failure::transient(StatusCode::INTERNAL_ERROR)),
        }
    }
}

/// Namespace Insufficient Capacity: the error log has the number of bytes needed.
fn insufficient(needed: u64) -> Failure {
    Failure::permanent(StatusCode::INSUFFICIENT_CAPACITY).with(needed)
}

pub(super) fn failure(error: NamespaceError) -> Failure {
    let permanent = Failure::permanent;
    match error {
        NamespaceError::Capacity { needed, .. } => insufficient(needed),
        NamespaceError::Full(_) => permanent(StatusCode::NAMESPACE_ID_UNAVAILABLE),
        NamespaceError::NoController(_) => permanent(StatusCode::CONTROLLER_LIST_INVALID),
        NamespaceError::Attached(..) => permanent(StatusCode::NAMESPACE_ALREADY_ATTACHED),
        NamespaceError::NotAttached(..) => permanent(StatusCode::NAMESPACE_NOT_ATTACHED),
        NamespaceError::Private(_) => permanent(StatusCode::NAMESPACE_IS_PRIVATE),
        // Another change is being stored, so the host should retry (figure 127).
        NamespaceError::Busy => Failure::transient(StatusCode::COMMAND_INTERRUPTED),
        // The namespace was deleted while the controller received the data of the command.
        NamespaceError::NoNamespace(_) => Failure::field(StatusCode::INVALID_FIELD, 4, 0),
        NamespaceError::NoRecords | NamespaceError::Record(_) => {
            unreachable!("checked before, and names follow from numbers")
        }
    }
}
