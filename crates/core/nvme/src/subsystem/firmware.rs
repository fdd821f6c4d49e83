//! Firmware slots (NVMe 1.4, section 8.1): images are stored bytes, never run. What an activation
//! changes is the firmware revision that the drive shows.

use super::{Change, Shared};
use crate::slots::Key;
use crate::state::{FIRMWARE_SLOTS, Firmware, Image};
use wire::nvme::{FirmwareSlots, ascii};

/// What a Firmware Commit changes.
#[derive(Clone, Debug)]
pub(crate) struct FirmwareChange {
    /// Command dword 10 of Firmware Commit.
    pub command: u32,
    pub slot: u8,
    /// What replaces the image in the slot.
    pub image: Option<Image>,
    pub activation: Activation,
}

/// When the image in the slot becomes the active one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    No,
    AtReset,
    Now,
}

impl Firmware {
    /// With a change.
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

    /// With what the next reset activates.
    fn after_reset(self) -> Self {
        match self.next {
            0 => self,
            next => Self { active: next, next: 0, ..self },
        }
    }
}

impl Shared {
    /// A command of a controller changes the slots. Whether it waits for that to be stored.
    pub fn change_firmware(&mut self, by: (u16, Key), change: FirmwareChange) -> bool {
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

    /// A controller is reset: what waits for that becomes active. The record may go on to say that
    /// it waits: power activates it as well. Whether there was something.
    pub fn reset_firmware(&mut self) -> bool {
        let waits = self.firmware.next != 0;
        if waits {
            self.start_firmware();
        }
        waits
    }

    /// Power comes on, or as above.
    pub(super) fn start_firmware(&mut self) {
        self.firmware = std::mem::take(&mut self.firmware).after_reset();
        self.run_firmware();
    }

    /// The drive shows the revision in the active slot from now on.
    fn run_firmware(&mut self) {
        self.revision = self.revision_in(self.firmware.active);
    }

    /// The revision in a slot; zeroes if it is empty.
    pub fn revision_in(&self, slot: u8) -> [u8; 8] {
        match slot {
            1 => ascii(&self.program),
            slot => self.firmware.images.get(&slot).and_then(Image::revision).unwrap_or_default(),
        }
    }

    /// The Firmware Slot Information log page.
    pub fn firmware_log(&self) -> FirmwareSlots {
        let Firmware { active, next, .. } = self.firmware;
        let mut slots = FirmwareSlots { active, next, ..FirmwareSlots::default() };
        for (revision, slot) in slots.revisions.iter_mut().zip(1..=FIRMWARE_SLOTS) {
            *revision = self.revision_in(slot);
        }
        slots
    }
}
