//! Asymmetric namespace access (NVMe 1.4, section 8.20). All namespaces are in one group, whose state
//! may differ between controllers. Subsystems with one controller do not report it.

use super::Controller;
use crate::failure::Failure;
use crate::subsystem::Shared;
use serde::{Deserialize, Serialize};
use wire::Instant;
use wire::nvme::opcode::admin;
use wire::nvme::{
    AccessGroup, AccessLogHeader, AccessState, AsyncEvent, BROADCAST_NSID, Command, StatusCode,
    feature, feature_bits,
};

/// ANAGRPID of every namespace.
pub(crate) const ACCESS_GROUP: u32 = 1;
/// ANATT in seconds: how long a host without another path retries. State changes take no time.
pub(crate) const ACCESS_TRANSITION: u8 = 10;
/// ANACAP: the states Optimized, Non-Optimized and Inaccessible; an attached namespace stays in its
/// group (bit 6).
pub(crate) const ACCESS_CAPABILITIES: u8 = 1 | 1 << 1 | 1 << 2 | 1 << 6;
/// RGO, return groups only: bit 0 of LSP of Get Log Page.
const GROUPS_ONLY: u32 = 1 << 8;

/// How a host can access the namespaces through one controller of a subsystem with several
/// controllers (NVMe 1.4, section 8.20.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamespaceAccess {
    /// The host should use this controller.
    #[default]
    Optimized,
    /// The host should use this controller only if no other controller is optimized.
    NonOptimized,
    /// I/O commands end with Asymmetric Access Inaccessible, so the host uses another controller.
    Inaccessible,
}

/// The state of the group, and the number of changes of the log page since the last reset.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AccessLog {
    access: NamespaceAccess,
    changes: u64,
}

impl AccessLog {
    /// Counts a change of the log page.
    pub(crate) fn changed(&mut self) {
        self.changes = self.changes.wrapping_add(1);
    }

    /// Handles a reset of the controller, which keeps the state.
    pub(super) fn reset(&mut self) {
        self.changes = 0;
    }
}

impl Controller {
    /// Sets the state of the group. Commands under way continue.
    pub(crate) fn set_access(
        &mut self,
        shared: &mut Shared,
        now: Instant,
        access: NamespaceAccess,
    ) {
        if self.access.access == access {
            return;
        }
        self.now = now;
        self.access.access = access;
        self.access.changed();
        if self.features.async_events & feature_bits::NAMESPACE_ACCESS != 0 {
            self.events.raise(AsyncEvent::NAMESPACE_ACCESS_CHANGED);
        }
        self.advance(shared);
    }

    /// Whether the namespaces are accessible through this controller.
    pub(crate) fn is_accessible(&self, shared: &Shared) -> bool {
        !shared.reports_access() || self.access.access != NamespaceAccess::Inaccessible
    }

    /// Fails a command for an attached namespace, or for all namespaces, that is not accessible.
    pub(crate) fn check_access(&self, shared: &Shared, nsid: u32) -> Result<(), Failure> {
        let exists = nsid == BROADCAST_NSID || shared.namespace(self.id, nsid).is_ok();
        match self.is_accessible(shared) || !exists {
            true => Ok(()),
            false => Err(Failure::transient(StatusCode::ASYMMETRIC_ACCESS_INACCESSIBLE)),
        }
    }

    /// Fails an admin command that needs accessible namespaces (NVM Express 2.2, section 8.1.1.10).
    pub(crate) fn check_admin_access(
        &self,
        shared: &Shared,
        command: &Command,
    ) -> Result<(), Failure> {
        let is_unavailable = matches!(
            command.cdw10 as u8,
            feature::ERROR_RECOVERY
                | feature::WRITE_ATOMICITY
                | feature::RESERVATION_MASK
                | feature::RESERVATION_PERSISTENCE
        );
        match command.opcode {
            admin::GET_FEATURES | admin::SET_FEATURES if is_unavailable => {
                self.check_access(shared, BROADCAST_NSID)
            }
            admin::SET_FEATURES if command.nsid != BROADCAST_NSID => Ok(()),
            admin::SET_FEATURES
            | admin::FORMAT
            | admin::NAMESPACE_MANAGEMENT
            | admin::NAMESPACE_ATTACHMENT
            | admin::DEVICE_SELF_TEST => self.check_access(shared, command.nsid),
            _ => Ok(()),
        }
    }

    /// The Asymmetric Namespace Access log page (section 5.14.1.12).
    pub(crate) fn access_page(&self, shared: &Shared, command: &Command) -> Vec<u8> {
        let nsids: Vec<u32> = shared.attached(self.id).map(|(nsid, _)| nsid).collect();
        let listed = if command.cdw10 & GROUPS_ONLY != 0 { &[][..] } else { &nsids };
        let AccessLog { access, changes } = self.access;
        let state = match access {
            NamespaceAccess::Optimized => AccessState::Optimized,
            NamespaceAccess::NonOptimized => AccessState::NonOptimized,
            NamespaceAccess::Inaccessible => AccessState::Inaccessible,
        };
        let header =
            AccessLogHeader { change_count: changes, groups: u16::from(!nsids.is_empty()) };
        let mut page = header.encode().to_vec();
        if !nsids.is_empty() {
            let group = AccessGroup {
                group: ACCESS_GROUP,
                namespaces: listed.len() as u32,
                // 0 means that no count is reported.
                change_count: changes.checked_add(1).unwrap_or(1),
                state: state as u8,
            };
            page.extend(group.encode());
            page.extend(listed.iter().flat_map(|nsid| nsid.to_le_bytes()));
        }
        // Hosts read as many bytes as the largest page has, in pieces.
        let most = shared.drive.max_namespaces as usize;
        page.resize(AccessLogHeader::LENGTH + AccessGroup::LENGTH + 4 * most, 0);
        page
    }
}
