//! Sanitize (NVMe 1.4, sections 5.24 and 8.15). An operation covers all namespaces of the drive,
//! and continues after resets and power losses.

use super::admin;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::slots::Key;
use crate::state::{Sanitize, SanitizePhase};
use crate::subsystem::Shared;
use wire::nvme::{Command, SanitizeAction, StatusCode, log_page};

/// AUSE, bit 3: a host may leave the failure mode without another sanitize operation.
const UNRESTRICTED: u32 = 1 << 3;
/// OIPBP, bit 8: the pattern is inverted in every second pass.
const INVERT: u32 = 1 << 8;
/// NDAS, bit 9: no blocks are deallocated after the operation.
const NO_DEALLOCATE: u32 = 1 << 9;

/// The admin commands allowed during an operation (figure 287).
const ALLOWED: [u8; 11] = [
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
    admin::KEEP_ALIVE,
];
/// The log pages allowed during an operation (figure 287).
const PAGES: [u8; 4] =
    [log_page::ERROR, log_page::SMART, log_page::CHANGED_NAMESPACES, log_page::SANITIZE];

/// The work of a sanitize operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SanitizePlan {
    /// Passes of an overwrite, 1 to 16; 0 for a block erase.
    pub overwrites: u8,
    /// Whether the pattern is inverted in every second pass.
    pub inverts: bool,
    /// Whether all blocks are deallocated at the end.
    pub deallocates: bool,
}

impl SanitizePlan {
    /// The plan for command dword 10 of a Sanitize command that starts an operation.
    pub(crate) fn from_command(command: u32) -> Self {
        let passes = (command >> 4 & 15) as u8;
        Self {
            overwrites: match action(command) {
                // OWPASS 0 stands for 16 (figure 329).
                Some(SanitizeAction::Overwrite) if passes == 0 => 16,
                Some(SanitizeAction::Overwrite) => passes,
                _ => 0,
            },
            inverts: command & INVERT != 0,
            deallocates: command & NO_DEALLOCATE == 0,
        }
    }
}

/// SANACT, bits 2:0.
fn action(command: u32) -> Option<SanitizeAction> {
    SanitizeAction::from_number(command & 7)
}

/// Whether command dword 10 of a Sanitize command starts an operation.
pub(crate) fn is_sanitize(command: u32) -> bool {
    matches!(action(command), Some(SanitizeAction::BlockErase | SanitizeAction::Overwrite))
}

/// Checks that I/O commands are allowed: not during a sanitize operation, and not after a failed
/// one.
pub(crate) fn check_sanitize(shared: &Shared) -> Result<(), Failure> {
    match shared.sanitize.map(|sanitize| sanitize.phase) {
        Some(SanitizePhase::Running) => Err(Failure::transient(StatusCode::SANITIZE_IN_PROGRESS)),
        Some(SanitizePhase::Failed) => Err(Failure::permanent(StatusCode::SANITIZE_FAILED)),
        None | Some(SanitizePhase::Completed | SanitizePhase::Left) => Ok(()),
    }
}

/// Checks that an admin command is allowed during and after a sanitize operation.
pub(super) fn check_admin(shared: &Shared, command: &Command) -> Result<(), Failure> {
    let allowed = match command.opcode {
        admin::GET_LOG_PAGE => PAGES.contains(&(command.cdw10 as u8)),
        // The handler of Sanitize checks this.
        admin::SANITIZE => true,
        opcode => ALLOWED.contains(&opcode),
    };
    if allowed { Ok(()) } else { check_sanitize(shared) }
}

impl Controller {
    pub(super) fn sanitize(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        if shared.stores_sanitize() {
            return Err(Failure::transient(StatusCode::SANITIZE_IN_PROGRESS));
        }
        let failed = shared.sanitize.filter(|last| last.phase == SanitizePhase::Failed);
        if failed.is_none() {
            check_sanitize(shared)?;
        }
        let unrestricted = command.cdw10 & UNRESTRICTED != 0;
        let restricted = failed.filter(|last| last.command & UNRESTRICTED == 0);
        let sanitize = match action(command.cdw10) {
            Some(SanitizeAction::ExitFailureMode) => {
                if restricted.is_some() {
                    return Err(Failure::permanent(StatusCode::SANITIZE_FAILED));
                }
                let Some(failed) = failed else { return Ok(Plan::Done(0)) };
                Sanitize { phase: SanitizePhase::Left, ..failed }
            }
            Some(SanitizeAction::BlockErase | SanitizeAction::Overwrite) => {
                if restricted.is_some() && unrestricted {
                    return Err(Failure::permanent(StatusCode::SANITIZE_FAILED));
                }
                for namespace in shared.namespaces.values() {
                    shared.writable(namespace)?;
                    namespace.formatted()?;
                }
                let (command, pattern) = (command.cdw10, command.cdw11);
                Sanitize { command, pattern, phase: SanitizePhase::Running }
            }
            // Crypto erase is not supported: there is no key.
            Some(SanitizeAction::CryptoErase) | None => return Err(Failure::cdw(10, 0)),
        };
        shared.store_sanitize(Some((self.id, key)), sanitize);
        Ok(Plan::Wait)
    }
}
