//! The identity of drives and namespaces: names derived from a serial number, and the identity on
//! PCIe.

use crate::config::Settings;
use crate::state::Drive;
use pcie::EndpointConfig;

/// PCI vendor ID. The ID is not assigned to a vendor, and the quirk table of Linux's nvme driver
/// (`nvme_id_table`) does not contain it. So the driver binds by class code and applies no quirk.
/// With 1b36:0010, the ID of QEMU's drive, Linux would ignore the namespace identifiers
/// (NVME_QUIRK_BOGUS_NID).
pub(crate) const VENDOR: u16 = pcie::config::contents::VENDOR;
/// PCI device ID.
const DEVICE: u16 = 0x0001;
/// Class code: mass storage, non-volatile memory, NVM Express I/O controller.
const CLASS: [u8; 3] = [0x01, 0x08, 0x02];
/// The minimum size of BAR 0.
const BAR0: u64 = 64 << 10;

/// Bytes of BAR 0. The lower half has registers and doorbells. The third quarter has the MSI-X
/// table with 16 bytes per vector (PCIe Base 4.0, section 7.7.2.6), the last quarter the pending
/// bits. Doorbells have 8 bytes per queue pair, so they need less room than the table.
fn bar0(vectors: u16) -> u64 {
    (u64::from(vectors) * 16 * 4).next_power_of_two().max(BAR0)
}

/// The PCIe device serial number, derived from the serial number of the drive and, for all but the
/// first controller, from the CNTLID: each controller has a link of its own. The probability that two
/// have the same number is 2^-64.
pub fn device_serial(serial: &str, controller: u16) -> u64 {
    let hash = match controller {
        1 => fingerprint(serial.as_bytes()),
        _ => fingerprint(&[serial.as_bytes(), &controller.to_le_bytes()].concat()),
    };
    u64::from(hash as u32) << 32 | u64::from((hash >> 32) as u32)
}

/// The PCIe function of a controller of the drive.
pub(crate) fn endpoint(drive: &Drive, controller: u16, settings: &Settings) -> EndpointConfig {
    EndpointConfig {
        vendor: VENDOR,
        device: DEVICE,
        subsystem: (VENDOR, DEVICE),
        class: CLASS,
        revision: 1,
        serial: device_serial(&drive.serial, controller),
        incarnation: Some(drive.incarnation),
        bar0_size: bar0(settings.vectors()),
        vectors: settings.vectors(),
        max_payload: settings.max_payload,
        read_request: settings.read_request,
        reads_in_flight: settings.reads_in_flight,
        foreign: None,
    }
}

/// The UUID derived from a name.
pub(crate) fn derived_uuid(name: &str) -> [u8; 16] {
    custom_uuid(fingerprint(name.as_bytes()))
}

/// A UUID derived from the UUID of a drive and a number.
pub(crate) fn numbered_uuid(drive: [u8; 16], number: u64) -> [u8; 16] {
    custom_uuid(fingerprint(&[&number.to_le_bytes()[..], &drive].concat()))
}

/// A UUID of version 8 (RFC 9562, section 5.8) with these bits, except version and variant.
fn custom_uuid(bits: u128) -> [u8; 16] {
    let mut uuid = bits.to_be_bytes();
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// 128-bit FNV-1a: distributes names, without cryptographic strength.
fn fingerprint(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MAX_QUEUES;
    use wire::nvme::register::DOORBELLS;

    #[test]
    fn the_fingerprint_is_fnv_1a() {
        // The published test value for "a".
        assert_eq!(fingerprint(b"a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    #[test]
    fn bar_0_holds_doorbells_and_vectors() {
        for queues in 1..=MAX_QUEUES {
            let settings = Settings { io_queues: queues, ..Settings::default() };
            let size = bar0(settings.vectors());
            let end = DOORBELLS + 8 * (u64::from(queues) + 1);
            assert!(end <= size / 2, "doorbells of {queues} pairs");
            assert!(u64::from(settings.vectors()) * 16 <= size / 4);
        }
        // A table of 1024 vectors has 16 KiB, a quarter of 64 KiB.
        assert_eq!([65, 1024, 1025, 2048].map(bar0), [64 << 10, 64 << 10, 128 << 10, 128 << 10]);
    }

    #[test]
    fn the_device_serial_number_is_that_of_the_serial_number() {
        // Bits 31:0 of the value above, then bits 63:32.
        assert_eq!(device_serial("a", 1), 0x4e4a_8964_7891_2b70);
        assert_ne!(device_serial("A", 1), device_serial("B", 1));
        assert_ne!(device_serial("a", 2), device_serial("a", 1));
        assert_ne!(device_serial("a", 2), device_serial("a", 3));
    }
}
