//! Identifies a device that comes back to a host, and detects whether its data have changed.

use super::{Bar, Msix, Node, scan};
use crate::config::contents::{self, ContentsCapability};
use crate::config::{capability, register};
use crate::software::Bus;
use std::fmt;
use wire::Bdf;

/// The contents capability of a function, see [`contents`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Byte offset of the capability in configuration space.
    pub capability: u16,
    /// A number that stays the same as long as no data were lost.
    pub incarnation: u64,
    /// The host that last attached the function; 0 if none since power-on.
    pub owner: u32,
}

/// Distinguishes functions that are found at the same BDF one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor and device ID.
    pub id: (u16, u16),
    /// Device serial number, if it has one.
    pub serial: Option<u64>,
    /// The contents capability, if the function has one and its vendor ID was requested.
    pub contents: Option<Contents>,
}

/// BARs (with address 0) and MSI-X capability of a function: what a driver depends on.
pub type Layout = (Vec<Bar>, Option<Msix>);

/// The result of comparing the device found now with the device attached before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same device with the same data.
    Same,
    /// The same device, but data may have been lost or changed.
    NewContents(ContentsChange),
    /// Another device, with a text about the differences.
    Another(String),
}

/// Why contents may have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentsChange {
    /// The incarnation differs.
    Incarnation,
    /// Another host has attached the device and may have written to it.
    OtherHost,
}

impl fmt::Display for ContentsChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incarnation => "the data written before is lost",
            Self::OtherHost => "another host used the device and may have written to it",
        })
    }
}

impl Identity {
    /// Compares this identity with `after`, which was found at the same place later. `owner` is the
    /// number that this host writes into its devices. Compares serial numbers as Linux does for
    /// hot-plug slots (`pciehp_device_replaced`).
    pub fn compare(&self, after: &Self, owner: u32) -> Comparison {
        if self.id != after.id {
            let [old, new] = [self, after].map(|who| format!("{:04x}:{:04x}", who.id.0, who.id.1));
            return Comparison::Another(format!("{new} instead of {old}"));
        }
        if self.serial != after.serial {
            let [old, new] = [self, after].map(|who| match who.serial {
                Some(number) => format!("serial number {number:016x}"),
                None => "no serial number".to_owned(),
            });
            return Comparison::Another(format!("{new} instead of {old}"));
        }
        let incarnation = |who: &Self| who.contents.map(|contents| contents.incarnation);
        if incarnation(self) != incarnation(after) {
            return Comparison::NewContents(ContentsChange::Incarnation);
        }
        match after.contents {
            Some(contents) if contents.owner != 0 && contents.owner != owner => {
                Comparison::NewContents(ContentsChange::OtherHost)
            }
            _ => Comparison::Same,
        }
    }
}

impl Comparison {
    /// This comparison, or [`Self::Another`] if BARs or interrupts differ.
    #[must_use]
    pub fn with_layout(self, before: &Layout, after: &Layout) -> Self {
        match self {
            Self::Another(why) => Self::Another(why),
            _ if before != after => Self::Another("different BARs or interrupts".to_owned()),
            returned => returned,
        }
    }
}

impl Node {
    /// The identity of an endpoint; `None` for a bridge.
    pub fn identity(&self) -> Option<Identity> {
        let device = self.device()?;
        Some(Identity { id: self.id, serial: device.serial, contents: device.contents })
    }

    /// Compares this endpoint with `after`, which was found at the same place later, by
    /// [`Identity::compare`] and [`Comparison::with_layout`].
    pub fn compare(&self, after: &Self, owner: u32) -> Comparison {
        let (Some(before), Some(found)) = (self.identity(), after.identity()) else {
            return Comparison::Another("no endpoint".to_owned());
        };
        before.compare(&found, owner).with_layout(&self.layout(), &after.layout())
    }

    /// BARs and MSI-X capability; empty for a bridge.
    pub fn layout(&self) -> Layout {
        let Some(device) = self.device() else { return (Vec::new(), None) };
        let bars = device.bars.iter().map(|bar| Bar { address: 0, ..*bar });
        (bars.collect(), device.msix)
    }
}

/// Reads the identity of the function at `bdf`; `None` if no function answers.
pub async fn identify(bus: &Bus, bdf: Bdf) -> Option<Identity> {
    let id = bus.config_read(bdf, register::VENDOR, 4).await;
    if id == !0 || id as u16 == 0 {
        return None;
    }
    let id = (id as u16, (id >> 16) as u16);
    let (serial, contents) = numbers(bus, bdf, Some(id.0)).await;
    Some(Identity { id, serial, contents })
}

/// Reads BARs and MSI-X capability of the endpoint at `bdf`. This disables the memory space of the
/// endpoint: program the endpoint again afterwards.
pub async fn layout(bus: &Bus, bdf: Bdf) -> Layout {
    let mut capabilities = scan::capabilities(bus, bdf).await.into_iter();
    let msix = capabilities.find(|(id, _)| *id == capability::MSIX);
    scan::layout(bus, bdf, msix.map(|(_, at)| at)).await
}

/// Writes `owner`, unless it is 0, into the contents capability of the function at `bdf`.
pub async fn write_owner(bus: &Bus, bdf: Bdf, contents: Option<Contents>, owner: u32) {
    let Some(contents) = contents.filter(|_| owner != 0) else { return };
    let at = contents.capability + ContentsCapability::OWNER;
    bus.config_write(bdf, at, 4, owner).await;
}

/// Reads the device serial number and, if `vendor` is given, the contents capability of this
/// vendor.
pub(super) async fn numbers(
    bus: &Bus,
    bdf: Bdf,
    vendor: Option<u16>,
) -> (Option<u64>, Option<Contents>) {
    let (mut serial, mut contents) = (None, None);
    let mut walk = scan::Extended::new();
    while let Some((id, at)) = walk.next(bus, bdf).await {
        match id {
            capability::EXT_SERIAL_NUMBER if serial.is_none() => {
                serial = Some(quad_word(bus, bdf, at + 4).await);
            }
            capability::EXT_VENDOR_SPECIFIC if vendor == Some(contents::VENDOR) => {
                let header = bus.config_read(bdf, at + ContentsCapability::HEADER, 4).await;
                if header == ContentsCapability::HEADER_VALUE && contents.is_none() {
                    let incarnation = at + ContentsCapability::INCARNATION;
                    contents = Some(Contents {
                        capability: at,
                        incarnation: quad_word(bus, bdf, incarnation).await,
                        owner: bus.config_read(bdf, at + ContentsCapability::OWNER, 4).await,
                    });
                }
            }
            _ => {}
        }
        if serial.is_some() && vendor.is_none() {
            break;
        }
    }
    (serial, contents)
}

async fn quad_word(bus: &Bus, bdf: Bdf, at: u16) -> u64 {
    let low = bus.config_read(bdf, at, 4).await;
    let high = bus.config_read(bdf, at + 4, 4).await;
    u64::from(low) | u64::from(high) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(serial: u64, incarnation: u64, owner: u32) -> Identity {
        let contents = Some(Contents { capability: 0x10c, incarnation, owner });
        Identity { id: (contents::VENDOR, 1), serial: Some(serial), contents }
    }

    #[test]
    fn returning_device_is_compared_by_identity() {
        let before = identity(5, 70, 0);
        let silent = Identity { contents: None, ..before };
        let new = Comparison::NewContents(ContentsChange::Incarnation);
        for (after, expected) in [
            (identity(5, 70, 9), Comparison::Same),
            // The device was powered on again, and no other host has attached it.
            (identity(5, 70, 0), Comparison::Same),
            (identity(5, 70, 8), Comparison::NewContents(ContentsChange::OtherHost)),
            (identity(5, 71, 0), new.clone()),
            (identity(5, 71, 9), new.clone()),
            (silent, new.clone()),
        ] {
            assert_eq!(before.compare(&after, 9), expected, "{after:?}");
        }
        assert_eq!(silent.compare(&silent, 9), Comparison::Same, "it has no capability");
        assert_eq!(silent.compare(&before, 9), new);
        let another = |after: Identity| match before.compare(&after, 9) {
            Comparison::Another(why) => why,
            returned => panic!("{returned:?}"),
        };
        assert_eq!(
            another(identity(6, 70, 9)),
            "serial number 0000000000000006 instead of serial number 0000000000000005"
        );
        assert_eq!(another(Identity { id: (1, 2), ..before }), "0001:0002 instead of fa12:0001");
    }
}
