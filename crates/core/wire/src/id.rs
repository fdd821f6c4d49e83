//! Identities on a PCIe hierarchy.

use std::fmt;

/// Vendor ID of farlane's own functions and messages. It is not an assigned Vendor ID.
pub const VENDOR: u16 = 0xfa12;

/// Bus, device and function number of a function: a requester or completer ID.
///
/// PCIe Base 4.0, section 2.2.6.2: bus in bits 15:8, device in 7:3, function in 2:0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bdf(u16);

impl Bdf {
    /// The function `bus:device.function`; device and function are truncated to 5 and 3 bits.
    pub const fn new(bus: u8, device: u8, function: u8) -> Self {
        Self(((bus as u16) << 8) | (((device & 0x1f) as u16) << 3) | (function & 7) as u16)
    }

    /// The function with these 16 bits of a requester, completer or target ID.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The 16 bits as they stand in a TLP header.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Bus number.
    pub const fn bus(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Device number, 0 to 31.
    pub const fn device(self) -> u8 {
        ((self.0 >> 3) & 0x1f) as u8
    }

    /// Function number, 0 to 7.
    pub const fn function(self) -> u8 {
        (self.0 & 7) as u8
    }
}

impl fmt::Display for Bdf {
    /// In the form of `lspci`: `bb:dd.f`, with bus and device in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:02x}:{:02x}.{}", self.bus(), self.device(), self.function()))
    }
}

/// A transaction tag of up to 10 bits (PCIe Base 4.0, section 2.2.6.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u16);

impl Tag {
    /// The largest tag.
    pub const MAX: u16 = 0x3ff;

    /// The tag with this number; `None` above [`MAX`](Self::MAX).
    pub const fn new(tag: u16) -> Option<Self> {
        if tag <= Self::MAX { Some(Self(tag)) } else { None }
    }

    /// A tag from the low 10 bits of `bits`.
    pub const fn truncate(bits: u16) -> Self {
        Self(bits & Self::MAX)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bdf_packs_as_in_a_header() {
        let bdf = Bdf::new(0x12, 0x1f, 7);
        assert_eq!(bdf.bits(), 0x12ff);
        assert_eq!((bdf.bus(), bdf.device(), bdf.function()), (0x12, 0x1f, 7));
        assert_eq!(Bdf::new(1, 2, 3).to_string(), "01:02.3");
    }

    #[test]
    fn tags_have_ten_bits() {
        assert_eq!(Tag::new(0x400), None);
        assert_eq!(Tag::new(0x3ff).map(Tag::get), Some(0x3ff));
    }
}
