//! The record `drive`: the properties of a drive.

use super::check::{self, Check, Problem};
use super::{MAX_NAMESPACES, hex};
use serde::{Deserialize, Serialize};

/// The properties of a drive, without its namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drive {
    /// Serial number, 1 to 20 printable ASCII characters.
    pub serial: String,
    /// Model number, 1 to 40 printable ASCII characters.
    pub model: String,
    /// UUID in the subsystem's NQN (NVMe 1.4, section 7.9).
    #[serde(with = "hex")]
    pub uuid: [u8; 16],
    /// Identifies the contents of all namespaces together. The value does not change while no data
    /// are lost.
    #[serde(with = "hex::number")]
    pub incarnation: u64,
    /// Capacity in bytes for all namespaces together.
    pub capacity: u64,
    /// NN, the largest NSID: 1 to [`MAX_NAMESPACES`].
    pub max_namespaces: u32,
}

impl Check for Drive {
    fn check(&self) -> Result<(), Problem> {
        let printable = (is_printable as fn(u8) -> bool, "printable ASCII characters");
        check::text("serial", &self.serial, 20, printable)?;
        check::text("model", &self.model, 40, printable)?;
        check::range("max_namespaces", self.max_namespaces, 1, MAX_NAMESPACES)
    }
}

/// Whether a byte may be in an ASCII field: 20h to 7Eh (NVMe 1.4, section 1.5).
fn is_printable(byte: u8) -> bool {
    (0x20..=0x7e).contains(&byte)
}
