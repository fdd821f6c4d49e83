//! The NVM command set (NVMe 1.4, section 6), one file per command family.

mod compare;
mod copy;
mod dataset;
mod read_write;
mod reservation;
mod uncorrectable;

pub(crate) use copy::CopyLimits;

use crate::admin::check_sanitize;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::reservation::is_reservation;
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::nvme::opcode::nvm;
use wire::nvme::{Command, CommandEffects, StatusCode};

/// The supported commands, for the Commands Supported and Effects log.
const SUPPORTED: [(u8, CommandEffects); 13] = [
    (nvm::FLUSH, CommandEffects::SUPPORTED),
    (nvm::WRITE, CommandEffects::CHANGES_BLOCKS),
    (nvm::READ, CommandEffects::SUPPORTED),
    (nvm::WRITE_UNCORRECTABLE, CommandEffects::CHANGES_BLOCKS),
    (nvm::COMPARE, CommandEffects::SUPPORTED),
    (nvm::WRITE_ZEROES, CommandEffects::CHANGES_BLOCKS),
    (nvm::DATASET_MANAGEMENT, CommandEffects::CHANGES_BLOCKS),
    (nvm::VERIFY, CommandEffects::SUPPORTED),
    (nvm::COPY, CommandEffects::CHANGES_BLOCKS),
    (nvm::RESERVATION_REGISTER, CommandEffects::SUPPORTED),
    (nvm::RESERVATION_REPORT, CommandEffects::SUPPORTED),
    (nvm::RESERVATION_ACQUIRE, CommandEffects::SUPPORTED),
    (nvm::RESERVATION_RELEASE, CommandEffects::SUPPORTED),
];

/// Whether only drives with records support the command.
fn needs_records(opcode: u8) -> bool {
    opcode == nvm::WRITE_UNCORRECTABLE || is_reservation(opcode)
}

/// The commands that a drive supports.
pub(crate) fn supported(shared: &Shared) -> impl Iterator<Item = (u8, CommandEffects)> {
    let saves = shared.saves();
    SUPPORTED.into_iter().filter(move |(opcode, _)| !needs_records(*opcode) || saves)
}

impl Controller {
    /// Checks an I/O command and plans its work.
    pub(crate) fn plan_io(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        check_sanitize(shared)?;
        if needs_records(command.opcode) && !shared.saves() {
            return Err(Failure::field(StatusCode::INVALID_OPCODE, 0, 0));
        }
        self.check_access(shared, command.nsid)?;
        shared.check_io(self.id, command)?;
        match command.opcode {
            nvm::FLUSH => self.flush(shared, command),
            nvm::WRITE => self.write(shared, command),
            nvm::READ => self.read(shared, command),
            nvm::WRITE_UNCORRECTABLE => self.write_uncorrectable(shared, key, command),
            nvm::COMPARE => self.compare(shared, command),
            nvm::WRITE_ZEROES => self.write_zeroes(shared, command),
            nvm::DATASET_MANAGEMENT => self.dataset_management(shared, command),
            nvm::VERIFY => self.verify(shared, command),
            nvm::COPY => self.copy(shared, command),
            nvm::RESERVATION_REPORT => self.report_reservations(shared, command),
            nvm::RESERVATION_REGISTER | nvm::RESERVATION_ACQUIRE | nvm::RESERVATION_RELEASE => {
                self.change_reservation(shared, command)
            }
            _ => Err(Failure::field(StatusCode::INVALID_OPCODE, 0, 0)),
        }
    }

    /// Handles the received data of a command.
    pub(crate) fn plan_received(
        &self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
        data: Bytes,
    ) -> Result<Plan, Failure> {
        let steps = match command.opcode {
            nvm::WRITE => self.write_received(shared, command, data),
            nvm::COMPARE => self.compare_received(shared, command, data),
            nvm::DATASET_MANAGEMENT => self.ranges_received(shared, command, &data),
            nvm::COPY => self.copy_received(shared, command, &data),
            nvm::RESERVATION_REGISTER | nvm::RESERVATION_ACQUIRE | nvm::RESERVATION_RELEASE => {
                return self.keys_received(shared, key, command, &data);
            }
            _ => unreachable!("no other command receives data"),
        };
        steps.map(Plan::Steps)
    }
}
