//! Capability structures shared by endpoints and bridges.

use super::{ConfigSpace, capability};
use wire::Duration;

/// Device/Port Type (PCIe Base 4.0, section 7.5.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PcieKind {
    /// 0000b.
    Endpoint,
    /// 0100b.
    RootPort,
    /// 0101b.
    UpstreamPort,
    /// 0110b, a port with a slot.
    DownstreamPort {
        /// Physical Slot Number, up to 13 bits.
        slot: u16,
    },
}

/// The PCI Express capability (PCIe Base 4.0, section 7.5.3), version 2.
#[derive(Clone, Copy, Debug)]
pub struct PcieCapability {
    at: u16,
}

/// The register code of a payload or request size: 0 for 128 bytes to 5 for 4096 bytes.
fn size_code(bytes: usize) -> u16 {
    (bytes.clamp(128, 4096).ilog2() - 7) as u16
}

impl PcieCapability {
    const LENGTH: u16 = 0x3c;
    const DEVICE_CONTROL: u16 = 0x08;
    const DEVICE_STATUS: u16 = 0x0a;
    const LINK_CAPABILITIES: u16 = 0x0c;
    const LINK_STATUS: u16 = 0x12;
    const SLOT_CAPABILITIES: u16 = 0x14;
    const SLOT_CONTROL: u16 = 0x18;
    const SLOT_STATUS: u16 = 0x1a;
    const DEVICE_CAPABILITIES_2: u16 = 0x24;
    const DEVICE_CONTROL_2: u16 = 0x28;
    const FLR: u16 = 1 << 15;

    /// Adds the capability, with Max_Payload_Size Supported of `max_payload` bytes.
    pub fn add(config: &mut ConfigSpace, kind: PcieKind, max_payload: usize) -> Self {
        let at = config.add_capability(capability::PCIE, Self::LENGTH);
        let (port_type, slot) = match kind {
            PcieKind::Endpoint => (0, None),
            PcieKind::RootPort => (4, None),
            PcieKind::UpstreamPort => (5, None),
            PcieKind::DownstreamPort { slot } => (6, Some(slot)),
        };
        let implemented = if slot.is_some() { 1 << 8 } else { 0 };
        config.set_u16(at + 2, 2 | port_type << 4 | implemented);
        // Extended tags, role-based error reporting, and FLR for endpoints.
        let flr = if kind == PcieKind::Endpoint { 1 << 28 } else { 0 };
        config.set_u32(at + 4, u32::from(size_code(max_payload)) | 1 << 5 | 1 << 15 | flr);
        // MRRS 512 and both orderings enabled after reset (section 7.5.3.4).
        config.set_u16(at + Self::DEVICE_CONTROL, 2 << 12 | 1 << 11 | 1 << 4);
        config.make_rw(at + Self::DEVICE_CONTROL, &[0xff, 0x79]);
        config.make_rw1c(at + Self::DEVICE_STATUS, &[0x0f, 0]);
        // The link reports 2.5 GT/s x1, although the network carries it.
        config.set_u32(at + Self::LINK_CAPABILITIES, 1 | 1 << 4 | 1 << 20);
        config.make_rw(at + 0x10, &[0xc3, 0x0f]);
        config.set_u16(at + Self::LINK_STATUS, 1 | 1 << 4);
        if let Some(slot) = slot {
            // Hot-plug capable, surprise removal possible.
            config.set_u32(at + Self::SLOT_CAPABILITIES, u32::from(slot) << 19 | 1 << 6 | 1 << 5);
            config.make_rw(at + Self::SLOT_CONTROL, &[0xff, 0x1f]);
            config.make_rw1c(at + Self::SLOT_STATUS, &[0x1f, 0x01]);
        }
        // Completion timeout ranges A to D and disable, 10-bit tags both ways.
        config.set_u32(at + Self::DEVICE_CAPABILITIES_2, 0xf | 1 << 4 | 1 << 16 | 1 << 17);
        config.make_rw(at + Self::DEVICE_CONTROL_2, &[0x1f, 0x10]);
        Self { at }
    }

    /// Byte offset of the capability in configuration space.
    pub fn offset(self) -> u16 {
        self.at
    }

    /// Sets Max_Payload_Size Supported to `max_payload` bytes.
    pub fn set_max_payload_supported(self, config: &mut ConfigSpace, max_payload: usize) {
        let others = config.u32(self.at + 4) & !7;
        config.set_u32(self.at + 4, others | u32::from(size_code(max_payload)));
    }

    /// Max_Payload_Size in bytes, as software configured it.
    pub fn max_payload(self, config: &ConfigSpace) -> usize {
        128 << (config.u16(self.at + Self::DEVICE_CONTROL) >> 5 & 7).min(5)
    }

    /// Sets Max_Payload_Size to `max_payload` bytes.
    pub fn set_max_payload(self, config: &mut ConfigSpace, max_payload: usize) {
        let others = config.u16(self.at + Self::DEVICE_CONTROL) & !(7 << 5);
        config.set_u16(self.at + Self::DEVICE_CONTROL, others | size_code(max_payload) << 5);
    }

    /// Max_Read_Request_Size in bytes, as software configured it.
    pub fn max_read_request(self, config: &ConfigSpace) -> usize {
        128 << (config.u16(self.at + Self::DEVICE_CONTROL) >> 12 & 7).min(5)
    }

    /// Number of tags that the function may use: 32, 256 or 1024.
    pub fn tags(self, config: &ConfigSpace) -> usize {
        if config.u16(self.at + Self::DEVICE_CONTROL_2) & 1 << 12 != 0 {
            1024
        } else if config.u16(self.at + Self::DEVICE_CONTROL) & 1 << 8 != 0 {
            256
        } else {
            32
        }
    }

    /// The configured completion timeout: the upper end of the configured range; `None` if the
    /// timeout is disabled (section 7.5.3.16).
    pub fn completion_timeout(self, config: &ConfigSpace) -> Option<Duration> {
        let control = config.u16(self.at + Self::DEVICE_CONTROL_2);
        if control & 1 << 4 != 0 {
            return None;
        }
        Some(match control & 0xf {
            0b0001 => Duration::from_us(100),
            0b0010 => Duration::from_ms(10),
            0b0101 => Duration::from_ms(55),
            0b0110 => Duration::from_ms(210),
            0b1001 => Duration::from_ms(900),
            0b1010 => Duration::from_ms(3_500),
            0b1101 => Duration::from_ms(13_000),
            0b1110 => Duration::from_ms(64_000),
            _ => Duration::from_ms(50),
        })
    }

    /// Whether this write of a double word sets Initiate Function Level Reset.
    pub fn initiates_flr(self, at: u16, enables: u8, value: u32) -> bool {
        at == self.at + Self::DEVICE_CONTROL && enables & 2 != 0 && value as u16 & Self::FLR != 0
    }

    /// Sets the link up or down: Data Link Layer Link Active, Presence
    /// Detect State, and the changed bits of the slot.
    pub fn set_link(self, config: &mut ConfigSpace, up: bool) {
        let set = |bit: u16, on: bool, value: u16| if on { value | bit } else { value & !bit };
        let link = config.u16(self.at + Self::LINK_STATUS);
        let was_up = link & 1 << 13 != 0;
        config.set_u16(self.at + Self::LINK_STATUS, set(1 << 13, up, link));
        let mut slot = config.u16(self.at + Self::SLOT_STATUS);
        slot = set(1 << 6, up, slot);
        if up != was_up {
            slot |= 1 << 8 | 1 << 3;
        }
        config.set_u16(self.at + Self::SLOT_STATUS, slot);
    }

    /// Whether the link is up (Data Link Layer Link Active).
    pub fn link_up(self, config: &ConfigSpace) -> bool {
        config.u16(self.at + Self::LINK_STATUS) & 1 << 13 != 0
    }
}

/// Adds the power management capability (PCI PM 1.2) with D0 and D3hot, without PME. Returns the
/// offset.
pub fn add_power_management(config: &mut ConfigSpace) -> u16 {
    let at = config.add_capability(capability::POWER_MANAGEMENT, 8);
    config.set_u16(at + 2, 3);
    // No_Soft_Reset: D3hot to D0 keeps the state.
    config.set_u16(at + 4, 1 << 3);
    config.make_rw(at + 4, &[3, 0]);
    at
}

/// Adds MSI-X (PCIe Base 4.0, section 7.7.2) with 1 to 2048 vectors. `table` and `pba` are byte
/// offsets in BAR 0. Returns the offset of the capability.
pub fn add_msix(config: &mut ConfigSpace, vectors: u16, table: u32, pba: u32) -> u16 {
    assert!((1..=2048).contains(&vectors), "MSI-X has 1 to 2048 vectors");
    let at = config.add_capability(capability::MSIX, 12);
    config.set_u16(at + 2, vectors - 1);
    config.make_rw(at + 2, &[0, 0xc0]);
    config.set_u32(at + 4, table);
    config.set_u32(at + 8, pba);
    at
}
