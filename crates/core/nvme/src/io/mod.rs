//! The NVM command set (NVMe 1.4, section 6), one file per command family.

mod compare;
mod copy;
mod dataset;
mod read_write;
mod uncorrectable;

pub(crate) use copy::CopyLimits;

use crate::admin::check_sanitize;
use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::{Plan, Steps};
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::nvme::opcode::nvm;
use wire::nvme::{Command, CommandEffects, StatusCode};

/// The supported commands, for the Commands Supported and Effects log.
const SUPPORTED: [(u8, CommandEffects); 9] = [
    (nvm::FLUSH, CommandEffects::SUPPORTED),
    (nvm::WRITE, CommandEffects::CHANGES_BLOCKS),
    (nvm::READ, CommandEffects::SUPPORTED),
    (nvm::WRITE_UNCORRECTABLE, CommandEffects::CHANGES_BLOCKS),
    (nvm::COMPARE, CommandEffects::SUPPORTED),
    (nvm::WRITE_ZEROES, CommandEffects::CHANGES_BLOCKS),
    (nvm::DATASET_MANAGEMENT, CommandEffects::CHANGES_BLOCKS),
    (nvm::VERIFY, CommandEffects::SUPPORTED),
    (nvm::COPY, CommandEffects::CHANGES_BLOCKS),
];

/// The commands that a drive supports; Write Uncorrectable needs records.
pub(crate) fn supported(shared: &Shared) -> impl Iterator<Item = (u8, CommandEffects)> {
    let saves = shared.saves();
    SUPPORTED.into_iter().filter(move |(opcode, _)| *opcode != nvm::WRITE_UNCORRECTABLE || saves)
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
        match command.opcode {
            nvm::FLUSH => self.flush(shared, command),
            nvm::WRITE => self.write(shared, command),
            nvm::READ => self.read(shared, command),
            nvm::WRITE_UNCORRECTABLE if shared.saves() => {
                self.write_uncorrectable(shared, key, command)
            }
            nvm::COMPARE => self.compare(shared, command),
            nvm::WRITE_ZEROES => self.write_zeroes(shared, command),
            nvm::DATASET_MANAGEMENT => self.dataset_management(shared, command),
            nvm::VERIFY => self.verify(shared, command),
            nvm::COPY => self.copy(shared, command),
            _ => Err(Failure::field(StatusCode::INVALID_OPCODE, 0, 0)),
        }
    }

    /// Handles the received data of a command.
    pub(crate) fn plan_received(
        &self,
        shared: &Shared,
        command: &Command,
        data: Bytes,
    ) -> Result<Steps, Failure> {
        match command.opcode {
            nvm::WRITE => self.write_received(shared, command, data),
            nvm::COMPARE => self.compare_received(shared, command, data),
            nvm::DATASET_MANAGEMENT => self.ranges_received(shared, command, &data),
            nvm::COPY => self.copy_received(shared, command, &data),
            _ => unreachable!("no other command receives data"),
        }
    }
}
