//! Identify data structures.

use super::golden;
use crate::nvme::*;

#[test]
fn identify_controller() {
    let mut nqn = [0; 256];
    nqn[..3].copy_from_slice(b"nqn");
    let identify = IdentifyController {
        vendor: 0x1234,
        subsystem_vendor: 0x5678,
        serial: ascii("SN1"),
        model: ascii("farlane"),
        firmware: ascii("0.1"),
        arbitration_burst: 4,
        ieee: [1, 2, 3],
        multi_path: 2,
        max_transfer: 5,
        controller_id: 0x0102,
        version: register::VERSION_1_4,
        rtd3_resume: 0x11,
        rtd3_entry: 0x22,
        async_events: 0x33,
        attributes: 0x44,
        controller_type: 1,
        admin_commands: 0x55,
        abort_limit: 3,
        async_event_limit: 7,
        firmware_slots: 3,
        log_page_attributes: 6,
        error_log_entries: 63,
        power_states: 0,
        vendor_admin: 1,
        warning_temperature: 0x0161,
        critical_temperature: 0x016b,
        total_capacity: 0x1000,
        unallocated_capacity: 0x2000,
        sanitize: 0x4000_0006,
        access_transition: 0x0a,
        access_capabilities: 0x47,
        max_access_group: 0x0201,
        access_groups: 0x0403,
        persistent_log: 0x0102,
        sq_entry_size: 0x66,
        cq_entry_size: 0x44,
        max_commands: 0x80,
        namespaces: 2,
        nvm_commands: 0x1c,
        fused: 1,
        write_cache: 7,
        atomic_write: 9,
        atomic_write_power_fail: 8,
        write_protection: 1,
        atomic_compare_and_write: 0x0304,
        copy_formats: 1,
        sgl: 0x99,
        max_namespaces: 0x0506,
        subsystem_nqn: nqn,
        self_test_minutes: 0x0102,
        self_test_options: 1,
        firmware_granularity: 0xff,
        keep_alive: 10,
        power_state: [
            PowerState {
                max_power: 2500,
                entry_latency: 16,
                exit_latency: 4,
                read_throughput: 1,
                read_latency: 2,
                write_throughput: 3,
                write_latency: 4,
            },
            PowerState { max_power: 900, ..PowerState::default() },
            PowerState::default(),
        ],
    };
    there_and_back!(
        IdentifyController,
        identify,
        golden(&[
            (0, &[0x34, 0x12, 0x78, 0x56]),
            (4, b"SN1                 "),
            (24, b"farlane                                 "),
            (64, b"0.1     "),
            (72, &[4, 1, 2, 3, 2, 5, 2, 1]),
            (80, &[0, 4, 1, 0, 0x11, 0, 0, 0, 0x22, 0, 0, 0, 0x33, 0, 0, 0, 0x44]),
            (111, &[1]),
            (256, &[0x55, 0, 3, 7, 3, 6, 63, 0, 1]),
            (266, &[0x61, 0x01, 0x6b, 0x01]),
            (281, &[0x10]),
            (297, &[0x20]),
            (328, &[6, 0, 0, 0x40]),
            (342, &[0x0a, 0x47, 1, 2, 0, 0, 3, 4]),
            (352, &[2, 1]),
            (512, &[0x66, 0x44, 0x80, 0, 2, 0, 0, 0, 0x1c, 0, 1]),
            (525, &[7, 9, 0, 8]),
            (531, &[1]),
            (532, &[4, 3, 1]),
            (536, &[0x99, 0, 0, 0, 6, 5]),
            (768, b"nqn"),
            (316, &[2, 1, 1, 0xff, 10]),
            (2048, &[0xc4, 0x09, 0, 0, 16, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4]),
            (2080, &[0x84, 0x03]),
        ])
    );
}

#[test]
fn identify_namespace() {
    let identify = IdentifyNamespace {
        size: 0x1000,
        capacity: 0x1001,
        utilization: 0x1002,
        features: 0x10,
        lba_formats: 0,
        formatted: 1,
        metadata_capabilities: 3,
        protection_capabilities: 0x1f,
        protection: 2,
        sharing: 1,
        reservations: 0x81,
        deallocate_features: 9,
        media_capacity: 0x20_0000,
        write_granularity: 7,
        write_alignment: 8,
        deallocate_granularity: 9,
        deallocate_alignment: 10,
        optimal_write: 11,
        copy_range: 12,
        copy_length: 13,
        copy_ranges: 14,
        access_group: 0x0304,
        attributes: 1,
        nvm_set: 0x0506,
        nguid: [0xa5; 16],
        eui64: [0x5a; 8],
        lba_format: LbaFormat { metadata: 8, data_shift: 12, performance: 2 },
    };
    there_and_back!(
        IdentifyNamespace,
        identify,
        golden(&[
            (0, &[0x00, 0x10]),
            (8, &[0x01, 0x10]),
            (16, &[0x02, 0x10]),
            (24, &[0x10]),
            (26, &[1, 3, 0x1f, 2, 1, 0x81]),
            (33, &[9]),
            (50, &[0x20]),
            (64, &[7, 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 0, 0, 14]),
            (92, &[4, 3]),
            (99, &[1, 6, 5]),
            (104, &[0xa5; 16]),
            (120, &[0x5a; 8]),
            // FLBAS selects format 1.
            (132, &[8, 0, 12, 2]),
        ])
    );
    let format = |data_shift| LbaFormat { data_shift, ..LbaFormat::default() };
    let formats = IdentifyNamespace::default().encode_with(&[format(9), format(12)]);
    assert_eq!(formats, golden::<IDENTIFY>(&[(130, &[9, 0, 0, 0, 12])]));
}

#[test]
fn identify_independent_namespace() {
    let identify = IndependentNamespace {
        sharing: 1,
        reservations: 4,
        access_group: 5,
        attributes: 2,
        status: 3,
    };
    let bytes = golden(&[(1, &[1, 4, 0, 5]), (8, &[2]), (14, &[3])]);
    there_and_back!(IndependentNamespace, identify, bytes);
}

#[test]
fn identify_lists() {
    let descriptors = [NamespaceDescriptor::Nguid([2; 16]), NamespaceDescriptor::Uuid([3; 16])];
    let bytes: [u8; IDENTIFY] =
        golden(&[(0, &[2, 16]), (4, &[2; 16]), (20, &[3, 16]), (24, &[3; 16])]);
    assert_eq!(NamespaceDescriptor::list(&descriptors), bytes);
    let eui: [u8; IDENTIFY] = golden(&[(0, &[1, 8]), (4, &[7; 8])]);
    assert_eq!(NamespaceDescriptor::list(&[NamespaceDescriptor::Eui64([7; 8])]), eui);
    let set: [u8; IDENTIFY] = golden(&[(0, &[4, 1, 0, 0, 9])]);
    assert_eq!(NamespaceDescriptor::list(&[NamespaceDescriptor::CommandSet(9)]), set);
    let ids: [u8; IDENTIFY] = golden(&[(0, &[1, 0, 0, 0, 2])]);
    assert_eq!(namespace_list(1..=2), ids);
    assert_eq!(namespace_list(1..=2000)[4092..], 1024u32.to_le_bytes());
    let controllers: [u8; IDENTIFY] = golden(&[(0, &[1, 0, 9, 0])]);
    assert_eq!(controller_list([9]), controllers);
    assert_eq!(decode_controller_list(&controllers), Some(vec![9]));
    assert_eq!(decode_controller_list(&controller_list([3, 7])), Some(vec![3, 7]));
    for bad in [vec![], vec![7, 3], vec![3, 3]] {
        assert_eq!(decode_controller_list(&controller_list(bad)), None);
    }
    assert_eq!(decode_controller_list(&golden(&[(0, &[0x00, 0x08])])), None, "2048 of them");
}
