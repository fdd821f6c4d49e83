//! A line that identifies an endpoint.

use pcie::config::label::Label;
use pcie::enumerate::Node;
use std::fmt;
use wire::Bdf;
use wire::units::exact;

/// Sizes are printed in the largest unit that gives a whole number.
const UNITS: [(&str, u64); 4] =
    [(" bytes", 1), (" KiB", 1 << 10), (" MiB", 1 << 20), (" GiB", 1 << 30)];

/// Identifies an endpoint to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Address of the endpoint in this host's hierarchy; the address in a guest differs.
    pub bdf: Bdf,
    /// Vendor and device ID.
    pub id: (u16, u16),
    /// The drive's serial number and size, if it has a label.
    pub label: Option<Label>,
    /// Device serial number (PCIe Base 4.0, section 7.9.3), if it has one.
    pub serial: Option<u64>,
}

impl Summary {
    pub(super) fn new(node: &Node, config: &[u8; 4096]) -> Self {
        let serial = node.device().and_then(|device| device.serial);
        Self { bdf: node.bdf, id: node.id, label: Label::find(config, node.id.0), serial }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PCI address {}, [{:04x}:{:04x}]", self.bdf, self.id.0, self.id.1)?;
        match (&self.label, self.serial) {
            (Some(Label { serial, capacity }), _) => {
                write!(f, ", serial number {serial}, {}", exact(*capacity, &UNITS))
            }
            (None, Some(serial)) => write!(f, ", device serial number {serial:016x}"),
            (None, None) => f.write_str(", no serial number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_is_one_line() {
        let label = |capacity| Some(Label { serial: "FL1".into(), capacity });
        let summary = Summary {
            bdf: Bdf::new(3, 0, 0),
            id: (0xfa12, 1),
            label: label(16 << 20),
            serial: Some(0x5f),
        };
        let start = "PCI address 03:00.0, [fa12:0001], ";
        assert_eq!(summary.to_string(), format!("{start}serial number FL1, 16 MiB"));
        let odd = Summary { label: label(512), ..summary.clone() };
        assert_eq!(odd.to_string(), format!("{start}serial number FL1, 512 bytes"));
        let other = Summary { label: None, ..summary };
        assert_eq!(other.to_string(), format!("{start}device serial number 000000000000005f"));
    }
}
