//! A PCI-PCI bridge function: the type 1 header of root ports, upstream and
//! downstream switch ports, and its address decoding.

use crate::config::{self, ConfigSpace, PcieCapability, PcieKind, command, register};
use bytes::Bytes;
use std::ops::RangeInclusive;
use wire::Bdf;
use wire::tlp::{Class, ConfigRequest, Packet, Status, Tlp};

/// Vendor ID of farlane's bridges: the ID of Red Hat, which QEMU's virtual devices have. Linux
/// binds `pcieport` by class, not by ID.
pub const VENDOR: u16 = 0x1b36;
/// Device ID of farlane's bridges.
pub const DEVICE: u16 = 0x000c;

/// The type 1 function of a port.
#[derive(Debug)]
pub struct Bridge {
    kind: PcieKind,
    max_payload: usize,
    config: ConfigSpace,
    pcie: PcieCapability,
}

impl Bridge {
    /// A port after power-on that supports payloads up to `max_payload`.
    pub fn new(kind: PcieKind, max_payload: usize) -> Self {
        let mut config = ConfigSpace::default();
        config.set_u16(register::VENDOR, VENDOR);
        config.set_u16(register::DEVICE, DEVICE);
        config.make_rw(register::COMMAND, &[0x46, 0x05]);
        config.set(register::REVISION, &[0, 0, 4, 6]);
        config.set(register::HEADER_TYPE, &[1]);
        config.make_rw(register::PRIMARY_BUS, &[0xff, 0xff, 0xff]);
        config.make_rw(register::MEMORY_BASE, &[0xf0, 0xff, 0xf0, 0xff]);
        // The prefetchable window is 64 bits wide.
        config.set(register::PREFETCH_BASE, &[1, 0, 1, 0]);
        config.make_rw(register::PREFETCH_BASE, &[0xf0, 0xff, 0xf0, 0xff]);
        config.make_rw(register::PREFETCH_BASE_UPPER, &[0xff; 8]);
        config.make_rw(register::INTERRUPT_LINE, &[0xff]);
        config.make_rw(register::BRIDGE_CONTROL, &[0x43, 0]);
        config::add_power_management(&mut config);
        let pcie = PcieCapability::add(&mut config, kind, max_payload);
        Self { kind, max_payload, config, pcie }
    }

    /// Resets every register to its power-on value, except the link state.
    pub fn reset(&mut self) {
        let up = self.link_up();
        *self = Self::new(self.kind, self.max_payload);
        self.pcie.set_link(&mut self.config, up);
    }

    /// Sets the link of this port up or down: the link above an upstream port, below any other
    /// port.
    pub fn set_link(&mut self, up: bool) {
        self.pcie.set_link(&mut self.config, up);
    }

    /// Sets Max_Payload_Size Supported to `max_payload` bytes, which must not exceed what the far
    /// end of the link accepts.
    pub fn set_max_payload_supported(&mut self, max_payload: usize) {
        self.max_payload = max_payload;
        self.pcie.set_max_payload_supported(&mut self.config, max_payload);
    }

    /// Whether the link is up (Data Link Layer Link Active).
    pub fn link_up(&self) -> bool {
        self.pcie.link_up(&self.config)
    }

    /// The secondary bus number.
    pub fn secondary(&self) -> u8 {
        self.config.u8(register::SECONDARY_BUS)
    }

    /// The secondary to the subordinate bus; not meaningful before software sets these registers.
    pub fn buses(&self) -> RangeInclusive<u8> {
        self.secondary()..=self.config.u8(register::SUBORDINATE_BUS)
    }

    /// Whether `bus` is below this bridge.
    pub fn claims_bus(&self, bus: u8) -> bool {
        self.secondary() != 0 && self.buses().contains(&bus)
    }

    /// Whether a memory window contains `address` and memory space is enabled.
    pub fn claims_address(&self, address: u64) -> bool {
        if self.config.u16(register::COMMAND) & command::MEMORY_SPACE == 0 {
            return false;
        }
        let word = |at| u64::from(self.config.u16(at) & 0xfff0) << 16;
        let upper = |at| u64::from(self.config.u32(at)) << 32;
        let windows = [
            (word(register::MEMORY_BASE), word(register::MEMORY_LIMIT)),
            (
                word(register::PREFETCH_BASE) | upper(register::PREFETCH_BASE_UPPER),
                word(register::PREFETCH_LIMIT) | upper(register::PREFETCH_LIMIT_UPPER),
            ),
        ];
        // A window at 0 is not set up by software.
        windows.into_iter().any(|(base, limit)| {
            base != 0 && base <= limit && (base..=limit | 0xf_ffff).contains(&address)
        })
    }

    /// Bus Master Enable: whether requests are forwarded upstream.
    pub fn bus_master(&self) -> bool {
        self.config.u16(register::COMMAND) & command::BUS_MASTER != 0
    }

    /// Max_Payload_Size in bytes, as software configured it.
    pub fn max_payload(&self) -> usize {
        self.pcie.max_payload(&self.config)
    }

    /// Reads the double word at `at`.
    pub fn read(&self, at: u16) -> u32 {
        self.config.read(at)
    }

    /// Writes the enabled bytes of the double word at `at`. Returns whether Secondary Bus Reset
    /// went from 0 to 1: then the caller must reset everything below.
    pub fn write(&mut self, at: u16, enables: u8, value: u32) -> bool {
        let reset = |config: &ConfigSpace| config.u16(register::BRIDGE_CONTROL) & 1 << 6 != 0;
        let before = reset(&self.config);
        self.config.write(at, enables, value);
        !before && reset(&self.config)
    }

    /// Executes a configuration request for this function. Returns the completion, and whether the
    /// request resets everything below.
    pub fn configure(&mut self, tlp: &Tlp, request: ConfigRequest) -> (Tlp, bool) {
        let (mut reset, mut data) = (false, Bytes::new());
        match tlp.packet {
            Packet::ConfigWrite(_) => {
                let word = tlp.data[..].try_into().unwrap_or_default();
                reset = self.write(request.register, request.first_be, u32::from_le_bytes(word));
            }
            _ => data = Bytes::copy_from_slice(&self.read(request.register).to_le_bytes()),
        }
        (Tlp { data, ..completion_for(request.target, tlp, Status::Success) }, reset)
    }
}

/// A completion without data for the request `tlp`, with the same trace ID.
///
/// # Panics
/// If `tlp` is not a non-posted request.
pub fn completion_for(completer: Bdf, tlp: &Tlp, status: Status) -> Tlp {
    let completion = match tlp.packet {
        Packet::MemoryRead(r) => r.completion(completer, status, r.byte_count()),
        Packet::ConfigRead(c) | Packet::ConfigWrite(c) => c.completion(completer, status),
        _ => panic!("{} has no completion", tlp.mnemonic()),
    };
    let (tc, attributes, trace_id) = (tlp.tc, tlp.attributes, tlp.trace_id);
    Tlp { tc, attributes, trace_id, ..Tlp::completion(completion) }
}

/// The requester ID; `None` for completions.
pub fn requester(tlp: &Tlp) -> Option<Bdf> {
    match tlp.packet {
        Packet::MemoryRead(r) | Packet::MemoryWrite(r) => Some(r.requester),
        Packet::ConfigRead(c) | Packet::ConfigWrite(c) => Some(c.requester),
        Packet::Message(m) => Some(m.requester),
        Packet::Completion(_) => None,
    }
}

/// The Unsupported Request completion for a request; `None` for posted requests and completions.
pub fn unsupported_request(completer: Bdf, tlp: &Tlp) -> Option<Tlp> {
    (tlp.class() == Class::NonPosted)
        .then(|| completion_for(completer, tlp, Status::UnsupportedRequest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge() -> Bridge {
        let mut bridge = Bridge::new(PcieKind::DownstreamPort { slot: 3 }, 512);
        bridge.write(register::PRIMARY_BUS, 0xf, 0x0005_0302);
        bridge.write(register::MEMORY_BASE, 0xf, 0xe010_e000);
        bridge
    }

    #[test]
    fn windows_count_only_while_memory_space_is_enabled() {
        let mut bridge = bridge();
        assert!(!bridge.claims_address(0xe000_0000));
        bridge.write(register::COMMAND, 3, u32::from(command::MEMORY_SPACE));
        assert!(bridge.claims_address(0xe000_0000) && bridge.claims_address(0xe01f_ffff));
        assert!(!bridge.claims_address(0xe020_0000) && !bridge.claims_address(0xdfff_ffff));
        assert!(!bridge.claims_address(0), "the empty prefetchable window claims nothing");
        bridge.write(register::PREFETCH_BASE, 0xf, 0x0000_0000);
        bridge.write(register::PREFETCH_BASE_UPPER, 0xf, 0x10);
        bridge.write(register::PREFETCH_LIMIT_UPPER, 0xf, 0x10);
        assert!(bridge.claims_address(0x10_000f_ffff) && !bridge.claims_address(0x10_0010_0000));
    }

    #[test]
    fn buses_and_link_state() {
        let mut bridge = bridge();
        assert_eq!(bridge.secondary(), 3);
        assert!(bridge.claims_bus(3) && bridge.claims_bus(5));
        assert!(!bridge.claims_bus(2) && !bridge.claims_bus(6));
        assert!(!bridge.link_up());
        bridge.set_link(true);
        assert!(bridge.link_up());
        bridge.reset();
        assert!(bridge.link_up() && bridge.secondary() == 0);
    }

    #[test]
    fn secondary_bus_reset_is_an_edge() {
        let mut bridge = bridge();
        let set = 1 << 22;
        assert!(bridge.write(register::INTERRUPT_LINE, 0xf, set));
        assert!(!bridge.write(register::INTERRUPT_LINE, 0xf, set));
        bridge.write(register::INTERRUPT_LINE, 0xf, 0);
        assert!(bridge.write(register::INTERRUPT_LINE, 0xf, set));
    }
}
