//! Firmware slots (NVMe 1.4, section 8.1). Images are stored but never executed. An activation
//! changes only the reported firmware revision.

use super::{Change, Shared};
use crate::slots::Key;
use crate::state::{FIRMWARE_SLOTS, Firmware, Image};
use wire::nvme::{FirmwareSlots, ascii};

/// The change by a Firmware Commit command.
#[derive(Clone, Debug)]
pub(crate) struct FirmwareChange {
    /// Command dword 10 of Firmware Commit.
    pub command: u32,
    pub slot: u8,
    /// The new image of the slot, if any.
    pub image: Option<Image>,
    pub activation: Activation,
}

/// The time at which the slot becomes active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    No,
    AtReset,
    Now,
}

impl Firmware {
    /// The slots after a change.
    fn with(&self, change: &FirmwareChange) -> Self {
        let mut firmware = self.clone();
        let FirmwareChange { slot, image, activation, .. } = change;
        if let Some(image) = image {
            firmware.images.insert(*slot, image.clone());
        }
        match activation {
            Activation::No => {}
            Activation::AtReset => firmware.next = *slot,
            Activation::Now => (firmware.active, firmware.next) = (*slot, 0),
        }
        firmware
    }

    /// The slots after a reset, which activates a pending slot.
    fn after_reset(self) -> Self {
        match self.next {
            0 => self,
            next => Self { active: next, next: 0, ..self },
        }
    }
}

impl Shared {
    /// Changes the slots for a command of a controller. Returns whether the command must wait for
    /// the store.
    pub(crate) fn change_firmware(&mut self, by: (u16, Key), change: FirmwareChange) -> bool {
        match &mut self.store {
            Some(store) => store.push(Change::Firmware { by, change }),
            None => self.apply_firmware(&change),
        }
        self.store.is_some()
    }

    pub(super) fn firmware_with(&self, change: &FirmwareChange) -> Firmware {
        self.firmware.with(change)
    }

    pub(super) fn apply_firmware(&mut self, change: &FirmwareChange) {
        self.firmware = self.firmware.with(change);
        if change.activation == Activation::Now {
            self.run_firmware();
        }
    }

    /// Activates a pending slot at a reset of a controller; returns whether a slot was pending. The
    /// record may stay unchanged, because a power-on activates the slot too.
    pub(crate) fn reset_firmware(&mut self) -> bool {
        let waits = self.firmware.next != 0;
        if waits {
            self.start_firmware();
        }
        waits
    }

    /// Activates a pending slot at a power-on or reset.
    pub(super) fn start_firmware(&mut self) {
        self.firmware = std::mem::take(&mut self.firmware).after_reset();
        self.run_firmware();
    }

    /// Reports the revision of the active slot from now on.
    pub(super) fn run_firmware(&mut self) {
        self.revision = self.revision_in(self.firmware.active);
    }

    /// The revision in a slot; zeroes if the slot is empty.
    pub(crate) fn revision_in(&self, slot: u8) -> [u8; 8] {
        match slot {
            1 => ascii(&self.program),
            slot => self.firmware.images.get(&slot).and_then(Image::revision).unwrap_or_default(),
        }
    }

    /// The Firmware Slot Information log page.
    pub(crate) fn firmware_log(&self) -> FirmwareSlots {
        let Firmware { active, next, .. } = self.firmware;
        let mut slots = FirmwareSlots { active, next, ..FirmwareSlots::default() };
        for (revision, slot) in slots.revisions.iter_mut().zip(1..=FIRMWARE_SLOTS) {
            *revision = self.revision_in(slot);
        }
        slots
    }
}
