//! Firmware Image Download and Firmware Commit (NVMe 1.4, sections 5.12, 5.11 and 8.1).

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::slots::Key;
use crate::state::{FIRMWARE_SLOTS, Image, MAX_IMAGE};
use crate::subsystem::{Activation, FirmwareChange, Shared};
use bytes::Bytes;
use std::collections::BTreeMap;
use wire::nvme::{AsyncEvent, Command, StatusCode, feature_bits};

/// The downloaded pieces of an image, by offset in bytes. A reset drops the pieces.
#[derive(Debug, Default)]
pub(crate) struct Download {
    pieces: BTreeMap<usize, Bytes>,
}

impl Download {
    /// Adds a piece; `false` if it overlaps another piece.
    fn add(&mut self, offset: usize, data: Bytes) -> bool {
        let end = offset + data.len();
        let before = self.pieces.range(..end).next_back();
        if before.is_some_and(|(at, piece)| at + piece.len() > offset) {
            return false;
        }
        self.pieces.insert(offset, data);
        true
    }

    /// The image; `None` if a piece is missing or the bytes are not an image.
    fn image(&self) -> Option<Image> {
        let mut image = Vec::new();
        for (offset, piece) in &self.pieces {
            if *offset != image.len() {
                return None;
            }
            image.extend_from_slice(piece);
        }
        Some(Image(image)).filter(|image| image.revision().is_some())
    }
}

impl Controller {
    /// Plans Firmware Image Download. NUMD and OFST count double words; all values are allowed
    /// (FWUG FFh).
    pub(super) fn firmware_download(&self, command: &Command) -> Result<Plan, Failure> {
        let (offset, length) = piece(command);
        if length > self.settings.max_transfer() as u64 {
            return Err(Failure::cdw(10, 0));
        }
        if offset + length > MAX_IMAGE as u64 {
            return Err(Failure::cdw(11, 0));
        }
        Ok(Plan::Receive(length as usize))
    }

    /// Handles a received piece.
    pub(super) fn firmware_received(
        &mut self,
        command: &Command,
        data: Bytes,
    ) -> Result<Plan, Failure> {
        let (offset, _) = piece(command);
        if !self.download.add(offset as usize, data) {
            return Err(Failure::at_cdw(StatusCode::OVERLAPPING_RANGE, 11, 0));
        }
        Ok(Plan::Done(0))
    }

    /// Plans Firmware Commit. FS is the slot (0: the controller chooses), CA is the action (figure
    /// 170).
    pub(super) fn firmware_commit(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let downloaded = !self.download.pieces.is_empty();
        let (replaces, activation) = match command.cdw10 >> 3 & 7 {
            0 => (true, Activation::No),
            1 => (true, Activation::AtReset),
            2 => (false, Activation::AtReset),
            3 => (downloaded, Activation::Now),
            // Reserved actions, and actions on boot partitions, which do not exist.
            _ => return Err(Failure::cdw(10, 3)),
        };
        let slot = match (command.cdw10 & 7) as u8 {
            // The controller chooses a slot that is not active.
            0 if replaces => 2 + u8::from(shared.firmware.active == 2),
            slot => slot,
        };
        let read_only = slot == 1 && replaces;
        if read_only || !(1..=FIRMWARE_SLOTS).contains(&slot) {
            return Err(Failure::at_cdw(StatusCode::INVALID_FIRMWARE_SLOT, 10, 0));
        }
        let image = match replaces {
            true => Some(std::mem::take(&mut self.download).image().ok_or(invalid_image())?),
            false if !shared.firmware.holds(slot) => return Err(invalid_image()),
            false => None,
        };
        let change = FirmwareChange { command: command.cdw10, slot, image, activation };
        if shared.change_firmware((self.id, key), change) {
            return Ok(Plan::Wait);
        }
        self.warn_of_activation(activation);
        Ok(Plan::Done(0))
    }

    /// Ends a Firmware Commit command. If the store failed, the command had no effect.
    pub(crate) fn firmware_stored(
        &mut self,
        shared: &mut Shared,
        by: (u16, Key),
        activation: Activation,
        stored: bool,
    ) {
        let (controller, key) = by;
        if stored {
            self.warn_of_activation(activation);
        }
        if controller != self.id {
            return;
        }
        match stored {
            true => self.resume(shared, key),
            false => self.fail(shared, key, Failure::transient(StatusCode::INTERNAL_ERROR)),
        }
    }

    /// Sends the notice of an activation without reset, if enabled.
    fn warn_of_activation(&mut self, activation: Activation) {
        let asked = self.features.async_events & feature_bits::FIRMWARE_ACTIVATION != 0;
        if asked && activation == Activation::Now {
            self.events.raise(AsyncEvent::FIRMWARE_ACTIVATION);
        }
    }
}

/// First byte and length of a downloaded piece, in bytes.
fn piece(command: &Command) -> (u64, u64) {
    (u64::from(command.cdw11) * 4, (u64::from(command.cdw10) + 1) * 4)
}

fn invalid_image() -> Failure {
    Failure::permanent(StatusCode::INVALID_FIRMWARE_IMAGE)
}
