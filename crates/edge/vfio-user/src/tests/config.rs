//! Tests of configuration space as the VMM sees it.

use super::EndpointInfo;
use super::plain_endpoint;
use crate::config::{Config, RemoteWrite, WriteEffect};

fn config() -> Config {
    Config::new(&plain_endpoint())
}

fn read32(config: &Config, at: u16) -> u32 {
    u32::from_le_bytes(config.read(at, 4).unwrap())
}

/// The bytes `far`, which were read from the far function at offset `at`, as the VMM sees them.
fn overlaid<const N: usize>(config: &Config, at: u16, mut far: [u8; N]) -> [u8; N] {
    config.overlay(at, &mut far);
    far
}

#[test]
fn bars_are_sized_and_kept_here() {
    let mut config = config();
    assert_eq!(read32(&config, 0x10), 0x4);
    for at in [0x10, 0x14, 0x18, 0x30] {
        assert_eq!(config.write(at, &[0xff; 4]), WriteEffect::default());
    }
    assert_eq!(read32(&config, 0x10), 0xffff_c004);
    assert_eq!(read32(&config, 0x14), 0xffff_ffff);
    assert_eq!(read32(&config, 0x18), 0);
    assert_eq!(read32(&config, 0x30), 0);
    config.write(0x10, &0xfebf_0000_u32.to_le_bytes());
    assert_eq!(read32(&config, 0x10), 0xfebf_0004);
    config.reset();
    assert_eq!(read32(&config, 0x14), 0);
}

#[test]
fn command_keeps_memory_enabled_on_the_far_side() {
    let mut config = config();
    let written = config.write(4, &[0x04, 0x04]);
    // The far function receives Bus Master Enable and Interrupt Disable from the VMM, and also
    // Memory Space Enable, which the VMM did not set.
    assert_eq!(written.far, [RemoteWrite { offset: 4, size: 2, value: 0x0406 }]);
    assert_eq!(config.command, [Some(0x06), Some(0x04)]);
    assert_eq!(overlaid(&config, 4, [0x06, 0x04, 0x10, 0x00]), [0x04, 0x04, 0x10, 0x00]);
    config.write(4, &[0x02]);
    assert_eq!(overlaid(&config, 4, [0x04, 0x04, 0x10, 0x00])[0], 0x06);
    assert_eq!(config.command, [Some(0x02), Some(0x04)]);
}

#[test]
fn a_write_to_an_absent_function_only_takes_bits_away() {
    let mut config = config();
    // Bus mastering of the function was never enabled.
    config.clear_command(4, &[0xff, 0xff]);
    assert_eq!(config.command, [None, None]);
    config.write(4, &[0x06, 0x00]);
    config.clear_command(0, &[0, 0, 0, 0, 0xff]);
    config.clear_command(6, &[0]);
    assert_eq!(config.command, [Some(0x06), Some(0x00)]);
    // As pci_clear_master of Linux after FFFFh was read.
    config.clear_command(4, &[0xfb, 0xff]);
    assert_eq!(config.command, [Some(0x02), Some(0x00)]);
    config.clear_command(4, &[0xff, 0xff]);
    assert_eq!(config.command, [Some(0x02), Some(0x00)]);
    config.clear_command(4, &[0x00, 0x00]);
    assert_eq!(config.command, [Some(0x02), Some(0x00)], "memory space stays");
    config.reset();
    assert_eq!(config.command, [None, None]);
}

#[test]
fn the_contents_capability_is_the_host_nodes() {
    let mut info = plain_endpoint();
    // The contents capability follows the serial number at 140h: VSEC ID 0001h, revision 1, 14h
    // bytes.
    info.config[0x140..0x144].copy_from_slice(&0x1501_0003_u32.to_le_bytes());
    info.config[0x150..0x158].copy_from_slice(&[0x0b, 0, 1, 0x16, 1, 0, 0x41, 1]);
    info.config[0x158..0x168].fill(0x5a);
    info.config[0x160..0x164].copy_from_slice(&0x0001_0001_u32.to_le_bytes());
    let shown = |info: &EndpointInfo| -> Vec<u32> {
        let config = Config::new(info);
        let words = (0x150..0x160).step_by(4);
        words.map(|at| config.read(at, 4).map_or(0, u32::from_le_bytes)).collect()
    };
    assert_eq!(shown(&info), [0; 4], "another vendor's is the function's own");
    info.config[..2].copy_from_slice(&0xfa12_u16.to_le_bytes());
    assert_eq!(shown(&info), [0x1600_0000, 0, 0, 0], "a null capability");
    let mut config = Config::new(&info);
    assert_eq!(config.write(0x158, &[1; 4]), WriteEffect::default(), "nobody else is the owner");
}

#[test]
fn msix_control_is_the_hosts() {
    let mut config = config();
    let msix = config.msix.unwrap();
    assert_eq!((msix.vectors, msix.table, msix.pba), (4, (0, 0x2000), (0, 0x3000)));
    assert!(!config.msix_enabled());
    assert_eq!(config.write(0x52, &[0xff, 0xc0]), WriteEffect::default());
    assert!(config.msix_enabled() && config.msix_masked());
    assert_eq!(overlaid(&config, 0x50, [0x11, 0x60, 0x03, 0x80]), [0x11, 0x60, 0x03, 0xc0]);
}

#[test]
fn function_level_reset_is_intercepted_and_sizes_are_shadowed() {
    let mut config = config();
    let written = config.write(0x68, &[0x5f, 0xa0]);
    assert!(written.reset);
    // MPS 128 and MRRS 512 of the far function stay unchanged, and the FLR bit is not written to
    // the far function.
    assert_eq!(written.far, [RemoteWrite { offset: 0x68, size: 2, value: 0x201f }]);
    assert_eq!(overlaid(&config, 0x68, [0x1f, 0x20]), [0x5f, 0x20]);
}

#[test]
fn msi_and_sriov_are_not_shown() {
    let config = config();
    // The far function's list is: PCI Express at 0x60, MSI at 0xa0, Power Management at 0xc0.
    assert_eq!(overlaid(&config, 0x60, [0x10, 0xa0, 0x02, 0x00]), [0x10, 0xc0, 0x02, 0x00]);
    assert_eq!(read32(&config, 0x100), 0x1400_0000);
    assert_eq!(read32(&config, 0x108), 0);
    assert_eq!(config.read(0x140, 4), None);
}

#[test]
fn hostile_snapshots_do_no_harm() {
    for fill in [0xff, 0x40, 0x11, 0x05, 0xfc] {
        let mut info = plain_endpoint();
        info.config.fill(fill);
        let mut config = Config::new(&info);
        for at in (0..4096).step_by(4) {
            config.write(at, &[0xff; 4]);
            let _ = config.read(at, 4);
        }
    }
}

#[test]
fn a_power_state_stays_here() {
    let mut config = config();
    let written = config.write(0xc4, &[0x03, 0x00]);
    assert_eq!(written.far, [RemoteWrite { offset: 0xc4, size: 2, value: 0 }]);
    assert_eq!(overlaid(&config, 0xc4, [0, 0]), [3, 0]);
}
