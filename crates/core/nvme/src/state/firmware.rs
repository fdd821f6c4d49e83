//! The record `firmware`: images in the firmware slots.

use super::check::{self, Check, Problem};
use super::hex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of firmware slots. Slot 1 is for the firmware of the program and is read only.
pub const FIRMWARE_SLOTS: u8 = 3;
/// The largest image in bytes.
pub const MAX_IMAGE: usize = 1 << 20;
/// Length of a firmware revision in bytes: the first 8 bytes of an image, which are printable ASCII
/// characters.
const REVISION: usize = 8;

/// The contents of the firmware slots. Images are stored, never executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// The active slot, whose revision is reported.
    pub active: u8,
    /// The slot after the next reset; 0 for the same slot.
    pub next: u8,
    /// Images by slot: slots 2 and 3.
    pub images: BTreeMap<u8, Image>,
}

/// A firmware image: 8 bytes to 1 MiB. The first 8 bytes are the revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Image(#[serde(with = "hex::bytes")] pub Vec<u8>);

impl Image {
    /// The revision of the image; `None` if the bytes are not an image.
    pub(crate) fn revision(&self) -> Option<[u8; REVISION]> {
        let revision = self.0.first_chunk::<REVISION>()?;
        let printable = revision.iter().all(|byte| (0x20..=0x7e).contains(byte));
        (printable && self.0.len() <= MAX_IMAGE).then_some(*revision)
    }
}

impl Default for Firmware {
    fn default() -> Self {
        Self { active: 1, next: 0, images: BTreeMap::new() }
    }
}

impl Firmware {
    /// Whether the slot has an image that can be activated.
    pub(crate) fn holds(&self, slot: u8) -> bool {
        slot == 1 || self.images.contains_key(&slot)
    }
}

impl Check for Firmware {
    fn check(&self) -> Result<(), Problem> {
        for (slot, image) in &self.images {
            check::range("slot", *slot, 2, FIRMWARE_SLOTS)?;
            if image.revision().is_none() {
                let allowed = "8 to 1048576 bytes that begin with 8 printable ASCII characters";
                return Err(format!("images: invalid image in slot {slot}: expected {allowed}"));
            }
        }
        for (field, slot) in [("active", self.active), ("next", self.next)] {
            if !self.holds(slot) && (field, slot) != ("next", 0) {
                return Err(format!("{field}: slot {slot} is empty"));
            }
        }
        Ok(())
    }
}
